package blackbox_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// script is what a person trains with.
const script = `import argparse, json, random

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

loss = 1.0
for epoch in range(args.epochs):
    loss *= 0.5 + random.random() / 4
    print(json.dumps({"epoch": epoch, "loss": round(loss, 4)}))
`

var serial atomic.Int64

// unique makes a name that no other test uses.
func unique(prefix string) string { return fmt.Sprintf("%s%d", prefix, serial.Add(1)) }

// world is a project of its own with people of its own, so that tests don't
// see each other.
type world struct {
	t           *testing.T
	p           *program
	admin       client
	owner, peer client // members of the project
	ownerID     string
	peerID      string
	project     string
	outside     client // of the tenant, in no project
	outsideID   string
}

func newWorld(t *testing.T) *world { t.Helper(); return worldOf(t, shared) }

func worldOf(t *testing.T, p *program) *world {
	t.Helper()
	w := &world{t: t, p: p, admin: client{t, p, "dev-admin"}}
	w.project = w.admin.do("createProject", vars{"name": unique("a_project")}).str("project.id")
	w.owner, w.ownerID = w.person("owner", "MEMBER")
	w.peer, w.peerID = w.person("peer", "MEMBER")
	w.outside, w.outsideID = w.person("outside", "")
	w.owner.upload("resnet/train.py", script)
	w.owner.upload("resnet/lib/model.py", "LAYERS = 18\n")
	return w
}

// person makes one, with a role in the project.
func (w *world) person(name, role string) (client, string) {
	w.t.Helper()
	login := unique(name)
	id := w.admin.do("createUser", vars{"loginName": login, "displayName": login}).str("user.id")
	if role != "" {
		w.grant(id, role)
	}
	return client{w.t, w.p, "dev-" + login}, id
}

func (w *world) grant(user, role string) {
	w.t.Helper()
	in := vars{"userId": user, "role": role, "reason": "test"}
	if role == "MEMBER" || role == "PROJECT_ADMIN" {
		in["projectId"] = w.project
	}
	w.admin.do("grantRole", in)
}

// input is a valid createAlgorithm.
func (w *world) input(name string) vars {
	return vars{
		"projectId": w.project, "name": name, "label": "v1",
		"image":  vars{"framework": "PYTORCH", "reference": "pytorch:2.6"},
		"source": vars{"script": vars{"directory": "resnet", "script": "train.py"}},
	}
}

// command is a valid createAlgorithm without files.
func (w *world) command(name string) vars {
	return with(w.input(name), vars{"source": vars{"command": "python -m train"}})
}

// create makes an algorithm of the owner and gives its and its version's id.
func (w *world) create(input vars) (algorithm, version string) {
	w.t.Helper()
	got := w.owner.do("createAlgorithm", input)
	return got.str("algorithm.id"), got.str("algorithmVersion.id")
}

// version adds a version to an algorithm of the owner.
func (w *world) version(algorithm, label string, more vars) string {
	w.t.Helper()
	in := vars{
		"algorithmId": algorithm, "label": label,
		"image": vars{"reference": "busybox"}, "source": vars{"command": "true"},
	}
	return w.owner.do("createAlgorithmVersion", with(in, more)).str("algorithmVersion.id")
}

// publish publishes a version of the owner and waits until it is.
func (w *world) publish(version, visibility string) {
	w.t.Helper()
	w.owner.do("publishAlgorithmVersion", vars{"id": version, "visibility": visibility})
	w.owner.reaches(version, "PUBLISHED")
}

// reaches waits until a version is in a state. It watches the algorithm: the
// first item is the state as it is.
func (c client) reaches(version, state string) value {
	c.t.Helper()
	algorithm := c.ask(`query($id: ID!) { algorithmVersion(id: $id) { algorithm { id } } }`, vars{"id": version}).str("algorithmVersion.algorithm.id")
	s := c.subscribe(`subscription($id: ID!) { algorithmEvents(filter: {algorithmId: $id}) { kind algorithmVersion { id state problem }
		algorithm { versions(first: 100) { nodes { id state problem } } } } }`, vars{"id": algorithm})
	defer func() { _ = s.conn.CloseNow() }() // one socket for one wait
	var found value
	s.until(state, func(item value) bool {
		for _, v := range append(item.list("algorithm.versions.nodes"), item.at("algorithmVersion")) {
			if v.str("id") == version && v.str("state") == state {
				found = v
				return true
			}
		}
		return false
	})
	c.settled()
	return found
}

// settled waits until the lists have all that was done before: a command's
// receipt says where that was.
func (c client) settled() {
	c.t.Helper()
	admin := client{c.t, c.p, "dev-admin"}
	at := admin.do("createProject", vars{"name": unique("mark")}).str("receipt.position")
	for deadline := time.Now().Add(patience); ; {
		r := admin.send(`query($at: Position) { projects(first: 1, atLeast: $at) { nodes { id } } }`, vars{"at": at})
		if r.code() == "" {
			return
		}
		if r.code() != "STALE_READ" || time.Now().After(deadline) {
			c.t.Fatalf("%s", r.body)
		}
	}
}

// operationOf is the last operation of a version.
func (c client) operationOf(version string) value {
	c.t.Helper()
	return c.ask(`query($id: ID!) { algorithmVersion(id: $id) { operation { id state kind attempt viewerCanRetry
		doneBytes totalBytes doneFiles totalFiles error { code message } } } }`, vars{"id": version}).at("algorithmVersion.operation")
}

const seeAlgorithms = `query($f: AlgorithmFilter) { algorithms(filter: $f, first: 100) { totalCount nodes { id name } } }`

// lists tells whether a list of algorithms has one.
func (c client) lists(filter vars, name string) bool {
	c.t.Helper()
	return strings.Contains(c.ask(seeAlgorithms, vars{"f": filter}).String(), `"name":"`+name+`"`)
}

// soon is a moment that a token may end at.
func soon() string { return time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339) }
