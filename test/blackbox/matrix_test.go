package blackbox_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// golden compares a text with a file, or writes it when BLACKBOX_UPDATE is set.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("BLACKBOX_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path) //nolint:gosec // G304: the test's own file
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	have, wanted := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(have), len(wanted)) {
		h, w := "", ""
		if i < len(have) {
			h = have[i]
		}
		if i < len(wanted) {
			w = wanted[i]
		}
		if h != w {
			t.Errorf("%s:%d\n got %s\nwant %s", filepath.Base(path), i+1, h, w)
		}
	}
}

// stage is what everybody is measured on: things of the owner, seen by the
// members of their project.
type stage struct {
	*world
	algorithm, version  string // published to the project
	operation, space    string
	tenant              string
	line                string // of the audit, about the version
	shared              string // the project's space
	dataSet, image      string // for the project
	model, modelVersion string // shared with the project
	approval            string // asked for by the owner
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{world: newWorld(t)}
	s.algorithm, s.version = s.create(s.input(unique("matrix")))
	s.publish(s.version, "GROUP")
	s.shared = s.sharedSpace("PROJECT")
	s.dataSet, s.image = s.newDataSet("GROUP"), s.newImage()
	if status, body := s.owner.file(http.MethodPut, s.shared+"/matrix/a.txt", "a"); status/100 != 2 {
		t.Fatalf("%d %s", status, body)
	}
	made := s.owner.do("importModel", s.modelOf(unique("matrix"), 1))
	s.model, s.modelVersion = made.str("model.id"), made.str("modelVersion.id")
	s.owner.do("shareModels", vars{"ids": []string{s.modelVersion}, "visibility": "GROUP"})
	s.operation = s.owner.operationOf(s.version).str("id")
	s.admin.do("updateSettings", vars{"id": s.project, "modelApprovalRequired": true, "reason": "test"})
	_, s.approval = s.asked(s.owner)
	s.admin.do("grantPermission", vars{"userId": s.ownerID, "permission": "SUBMIT_URGENT_JOBS", "reason": "test"})
	me := s.owner.ask(`{ me { home { id } tenant { id } } }`, nil)
	s.space, s.tenant = me.str("me.home.id"), me.str("me.tenant.id")
	s.line = s.owner.ask(`query($id: ID!) { auditEntries(filter: {subjectId: $id}, first: 1) { nodes { id } } }`, vars{"id": s.version}).str("auditEntries.nodes.0.id")
	return s
}

// newDataSet registers a data set of the owner.
func (w *world) newDataSet(visibility string) string {
	w.t.Helper()
	return w.owner.do("registerDataSet", vars{
		"projectId": w.project, "name": unique("set"), "visibility": visibility, "directory": "resnet",
	}).str("dataSet.id")
}

// newImage registers an image of the owner for the project.
func (w *world) newImage() string {
	w.t.Helper()
	return w.owner.do("registerImage", vars{
		"kind": "EXTERNAL", "name": unique("image"), "reference": "registry.example/x:1", "scope": "GROUP", "projectId": w.project,
	}).str("registeredImage.id")
}

// fresh makes a version that a cell may use up.
func (s *stage) fresh(visibility string) string {
	s.t.Helper()
	v := s.world.version(s.algorithm, unique("m"), nil)
	if visibility != "" {
		s.owner.do("publishAlgorithmVersion", vars{"id": v, "visibility": visibility})
	}
	return v
}

// request makes a request of the owner that a cell may use up.
func (s *stage) request() string {
	s.t.Helper()
	_, id := s.asked(s.owner)
	return id
}

func (s *stage) victim() string {
	s.t.Helper()
	login := unique("victim")
	return s.admin.do("createUser", vars{"loginName": login, "displayName": login}).str("user.id")
}

// reads are the queries and subscriptions: a document, its variables, and a
// text that the answer has when the thing is seen.
var reads = map[string]func(s *stage) (document string, v vars, seen string){
	"algorithm":        func(s *stage) (string, vars, string) { return one("algorithm", s.algorithm) },
	"algorithmVersion": func(s *stage) (string, vars, string) { return one("algorithmVersion", s.version) },
	"model":            func(s *stage) (string, vars, string) { return one("model", s.model) },
	"modelVersion":     func(s *stage) (string, vars, string) { return one("modelVersion", s.modelVersion) },
	"operation":        func(s *stage) (string, vars, string) { return one("operation", s.operation) },
	"approval":         func(s *stage) (string, vars, string) { return one("approval", s.approval) },
	"project":          func(s *stage) (string, vars, string) { return one("project", s.project) },
	"storageSpace":     func(s *stage) (string, vars, string) { return one("storageSpace", s.space) },
	"tenant":           func(s *stage) (string, vars, string) { return one("tenant", s.tenant) },
	"user":             func(s *stage) (string, vars, string) { return one("user", s.ownerID) },
	"settings": func(s *stage) (string, vars, string) {
		return `query($id: ID) { settings(id: $id) { scope } }`, vars{"id": s.tenant}, "TENANT"
	},
	"node":       func(s *stage) (string, vars, string) { return one("node", s.version) },
	"auditEntry": func(s *stage) (string, vars, string) { return one("auditEntry", s.line) },
	"dataSet":    func(s *stage) (string, vars, string) { return one("dataSet", s.dataSet) },
	"image":      func(s *stage) (string, vars, string) { return one("image", s.image) },
	"dataSets": func(s *stage) (string, vars, string) {
		return many("dataSets", "DataSetFilter", vars{"projectId": s.project}, s.dataSet)
	},
	"images": func(s *stage) (string, vars, string) {
		return `{ images(first: 100) { nodes { id } } }`, nil, s.image
	},
	"nodes": func(s *stage) (string, vars, string) {
		return `query($id: [ID!]!) { nodes(ids: $id) { id } }`, vars{"id": []string{s.version}}, s.version
	},
	"algorithms": func(s *stage) (string, vars, string) {
		return many("algorithms", "AlgorithmFilter", vars{"projectId": s.project}, s.algorithm)
	},
	"algorithmVersions": func(s *stage) (string, vars, string) {
		return many("algorithmVersions", "AlgorithmVersionFilter", vars{"projectId": s.project}, s.version)
	},
	"models": func(s *stage) (string, vars, string) {
		return many("models", "ModelFilter", vars{"projectId": s.project}, s.model)
	},
	"approvals": func(s *stage) (string, vars, string) {
		return many("approvals", "ApprovalFilter", vars{"requesterId": s.ownerID}, s.approval)
	},
	"operations": func(s *stage) (string, vars, string) {
		return many("operations", "OperationFilter", vars{"ownerId": s.ownerID}, s.operation)
	},
	"users": func(s *stage) (string, vars, string) {
		return many("users", "UserFilter", vars{"projectId": s.project}, s.ownerID)
	},
	"auditEntries": func(s *stage) (string, vars, string) {
		return many("auditEntries", "AuditFilter", vars{"projectId": s.project}, s.line)
	},
	"files": func(s *stage) (string, vars, string) {
		return `query($id: ID!) { files(spaceId: $id) { nodes { name } } }`, vars{"id": s.space}, "resnet"
	},
	"me": func(*stage) (string, vars, string) { return `{ me { user { id } } }`, nil, "id" },
	"storageSpaces": func(s *stage) (string, vars, string) {
		return `{ storageSpaces(first: 100) { nodes { id } } }`, nil, s.space
	},
	"tenants": func(*stage) (string, vars, string) { return `{ tenants { nodes { name } } }`, nil, "acme" },
	"projects": func(s *stage) (string, vars, string) {
		return `{ projects(first: 100) { nodes { id } } }`, nil, s.project
	},
	"algorithmEvents": func(s *stage) (string, vars, string) {
		return `subscription($id: ID!) { algorithmEvents(filter: {algorithmId: $id}) { algorithm { id } } }`, vars{"id": s.algorithm}, s.algorithm
	},
	"approvalEvents": func(s *stage) (string, vars, string) {
		return `subscription($id: ID!) { approvalEvents(filter: {approvalId: $id}) { approval { id } } }`, vars{"id": s.approval}, s.approval
	},
	"operationEvents": func(s *stage) (string, vars, string) {
		return `subscription($id: ID!) { operationEvents(filter: {operationId: $id}) { operation { id } } }`, vars{"id": s.operation}, s.operation
	},
	"auditTail": func(*stage) (string, vars, string) {
		return `subscription { auditTail(filter: {}) { kind } }`, nil, "SNAPSHOT"
	},
}

func one(field, id string) (string, vars, string) {
	return fmt.Sprintf(`query($id: ID!) { %s(id: $id) { id } }`, field), vars{"id": id}, id
}

func many(field, filter string, f vars, seen string) (string, vars, string) {
	return fmt.Sprintf(`query($f: %s) { %s(filter: $f, first: 100) { nodes { id } } }`, filter, field), vars{"f": f}, seen
}

// acts are the mutations, each on something of its own.
var acts = map[string]func(s *stage) vars{
	"setUserQuota": func(s *stage) vars { return vars{"userId": s.victim(), "cpuMillis": "4000", "reason": "test"} },

	"transferOwnership": func(s *stage) vars {
		return vars{"fromUserId": s.victim(), "toUserId": s.ownerID, "reason": "test"}
	},
	"removeUser": func(s *stage) vars { return vars{"userId": s.victim(), "reason": "test"} },
	// Something lives in it, so who may do this is told what.
	"closeProject": func(s *stage) vars { return vars{"id": s.project, "reason": "test"} },

	"createTenant": func(*stage) vars {
		return vars{"name": unique("matrix"), "admin": vars{"loginName": "boss", "displayName": "Boss"}}
	},
	"updateTenant":  func(s *stage) vars { return vars{"id": s.tenant} },
	"updateProject": func(s *stage) vars { return vars{"id": s.project, "description": unique("d")} },
	"grantPermission": func(s *stage) vars {
		return vars{"userId": s.victim(), "permission": "PUBLISH_MODELS", "reason": "test"}
	},
	"revokePermission": func(s *stage) vars {
		return vars{"userId": s.victim(), "permission": "PUBLISH_MODELS", "reason": "test"}
	},
	"setBusinessScope":  func(s *stage) vars { return vars{"userId": s.victim(), "businessScope": "INFERENCE", "reason": "test"} },
	"addProjectMember":  func(s *stage) vars { return vars{"userId": s.victim(), "projectId": s.project, "reason": "test"} },
	"erasePersonalData": func(s *stage) vars { return vars{"userId": s.victim(), "confirm": true, "reason": "test"} },
	"changeProjectRole": func(s *stage) vars {
		id := s.victim()
		s.grant(id, "MEMBER")
		return vars{"userId": id, "projectId": s.project, "role": "PROJECT_ADMIN", "reason": "test"}
	},
	"removeProjectMember": func(s *stage) vars {
		id := s.victim()
		s.grant(id, "MEMBER")
		return vars{"userId": id, "projectId": s.project, "reason": "test"}
	},
	"updateSettings": func(s *stage) vars { return vars{"id": s.tenant, "approvalExpiryDays": nil, "reason": "test"} },

	"createAlgorithm": func(s *stage) vars { return s.command(unique("matrix")) },
	"createAlgorithmVersion": func(s *stage) vars {
		return vars{"algorithmId": s.algorithm, "label": unique("m"), "image": vars{"reference": "x"}, "source": vars{"command": "x"}}
	},
	"updateAlgorithmVersion":  func(s *stage) vars { return vars{"id": s.version, "description": unique("d")} },
	"publishAlgorithmVersion": func(s *stage) vars { return vars{"id": s.fresh(""), "visibility": "GROUP"} },
	"deleteAlgorithmVersion":  func(s *stage) vars { return vars{"id": s.fresh("GROUP")} },
	"deleteAlgorithmVersions": func(s *stage) vars { return vars{"ids": []string{s.fresh("")}} },
	"favoriteAlgorithm":       func(s *stage) vars { return vars{"id": s.algorithm} },
	"unfavoriteAlgorithm":     func(s *stage) vars { return vars{"id": s.algorithm} },
	"importModel":             func(s *stage) vars { return s.modelOf(unique("matrix"), 1) },
	"updateModelVersion":      func(s *stage) vars { return vars{"id": s.modelVersion, "description": unique("d")} },
	"shareModels": func(s *stage) vars {
		return vars{"ids": []string{s.imported("")}, "visibility": "GROUP"}
	},
	"unshareModels": func(s *stage) vars { return vars{"ids": []string{s.imported("GROUP")}} },
	"deleteModels":  func(s *stage) vars { return vars{"ids": []string{s.imported("GROUP")}} },
	// It succeeded, so who may do this is told that its state does not allow it.
	"approveRequest":    func(s *stage) vars { return vars{"id": s.request()} },
	"rejectRequest":     func(s *stage) vars { return vars{"id": s.request(), "reason": "test"} },
	"withdrawRequest":   func(s *stage) vars { return vars{"id": s.request()} },
	"retryOperation":    func(s *stage) vars { return vars{"id": s.operation} },
	"cancelOperation":   func(s *stage) vars { return vars{"id": s.operation} },
	"dismissOperations": func(s *stage) vars { return vars{"ids": []string{s.operation}} },
	"createDirectory":   func(s *stage) vars { return vars{"spaceId": s.space, "path": unique("dir")} },
	"deleteFiles":       func(s *stage) vars { return vars{"spaceId": s.space, "paths": []string{"resnet/lib"}} },
	"registerDataSet": func(s *stage) vars {
		return vars{"projectId": s.project, "name": unique("set"), "spaceId": s.shared, "directory": "matrix"}
	},
	"updateDataSet":  func(s *stage) vars { return vars{"id": s.dataSet, "description": unique("d")} },
	"deleteDataSet":  func(s *stage) vars { return vars{"id": s.newDataSet("GROUP")} },
	"cacheDataSet":   func(s *stage) vars { return vars{"id": s.newDataSet("GROUP")} },
	"refreshDataSet": func(s *stage) vars { return vars{"id": s.newDataSet("GROUP")} },
	// It is not cached, so who may do this is told that its state does not allow it.
	"unzipDataSet": func(s *stage) vars { return vars{"id": s.dataSet} },
	"registerImage": func(s *stage) vars {
		return vars{"kind": "EXTERNAL", "name": unique("image"), "reference": "x", "projectId": s.project}
	},
	"deleteImage": func(s *stage) vars { return vars{"id": s.newImage()} },
	"setStorageQuota": func(s *stage) vars {
		return vars{"spaceId": s.shared, "quotaBytes": strconv.Itoa(1<<40 + int(serial.Add(1))), "reason": "test"}
	},
	"createProject": func(*stage) vars { return vars{"name": unique("matrix")} },
	"createUser":    func(*stage) vars { return vars{"loginName": unique("matrix"), "displayName": "M"} },
	"grantRole": func(s *stage) vars {
		return vars{"userId": s.victim(), "role": "MEMBER", "projectId": s.project, "reason": "test"}
	},
	"revokeRole": func(s *stage) vars {
		id := s.victim()
		s.grant(id, "MEMBER")
		return vars{"userId": id, "role": "MEMBER", "projectId": s.project, "reason": "test"}
	},
	"suspendUser":   func(s *stage) vars { return vars{"userId": s.victim(), "reason": "test"} },
	"reinstateUser": func(s *stage) vars { return vars{"userId": s.victim(), "reason": "test"} },
	"createApiToken": func(*stage) vars {
		return vars{"expiresAt": soon()}
	},
	"revokeApiToken": func(s *stage) vars {
		return vars{"userId": s.ownerID, "tokenId": s.owner.do("createApiToken", vars{"expiresAt": soon()}).str("tokenId")}
	},
}

// read tells what came of a query or subscription: yes, none, or a code.
func (s *stage) read(c client, question func(s *stage) (string, vars, string)) string {
	doc, v, seen := question(s)
	if strings.HasPrefix(doc, "subscription") {
		w := c.subscribe(doc, v)
		defer func() { _ = w.conn.CloseNow() }() // one item is enough
		if item, ok := <-w.items; ok {
			return yes(strings.Contains(item.String(), seen))
		}
		switch end := <-w.ended; {
		case end.errors.v != nil:
			return end.errors.str("0.extensions.code")
		case end.code == 4403:
			return "UNAUTHENTICATED"
		default:
			return fmt.Sprint("closed with ", end.code)
		}
	}
	r := c.send(doc, v)
	if r.code() != "" {
		return r.code()
	}
	return yes(strings.Contains(r.value.String(), seen))
}

func yes(seen bool) string {
	if seen {
		return "yes"
	}
	return "none"
}

func (s *stage) act(c client, mutation string) string {
	r := c.send(document(mutation), vars{"input": acts[mutation](s)})
	if r.code() != "" {
		return r.code()
	}
	p := r.at(mutation)
	if codes := slices.Compact(append(p.strs("userErrors", "code"), p.strs("results.0.userErrors", "code")...)); len(codes) > 0 {
		return strings.Join(codes, " ")
	}
	return "yes"
}

// TestRights asks every field of the schema as everybody and compares with the
// table in testdata. A field without a way to ask it fails.
func TestRights(t *testing.T) {
	s := newStage(t)
	other := newWorld(t)
	person := func(name, role string) client { c, _ := s.person(name, role); return c }
	gone, goneID := s.person("gone", "MEMBER")
	s.admin.do("suspendUser", vars{"userId": goneID, "reason": "test"})
	people := []struct {
		name string
		c    client
	}{
		{"owner", s.owner},
		{"member", s.peer},
		{"project admin", person("lead", "PROJECT_ADMIN")},
		{"other project", other.peer},
		{"no project", s.outside},
		{"tenant admin", person("boss", "TENANT_ADMIN")},
		{"auditor", person("audit", "AUDITOR")},
		{"operator", as(t, "oscar")},
		{"other tenant", as(t, "mallory")},
		{"suspended", gone},
		{"nobody", client{t, shared, ""}},
	}
	var b strings.Builder
	b.WriteString("# Who gets what: `yes`, `none` (as if it did not exist), or the code of the refusal.\n\n| field |")
	for _, p := range people {
		b.WriteString(" " + p.name + " |")
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(people)+1) + "\n")
	schema := s.owner.ask(`{ __schema { queryType { fields { name } } mutationType { fields { name } } subscriptionType { fields { name } } } }`, nil)
	for _, root := range []string{"query", "subscription", "mutation"} {
		fields := schema.strs("__schema."+root+"Type.fields", "name")
		slices.Sort(fields)
		for _, field := range fields {
			t.Run("TEN-02_"+field, func(t *testing.T) {
				s.t, s.owner.t, s.admin.t = t, t, t
				row := "| " + field + " |"
				for _, p := range people {
					p.c.t = t
					switch {
					case root == "mutation" && acts[field] != nil:
						row += " " + s.act(p.c, field) + " |"
					case root != "mutation" && reads[field] != nil:
						row += " " + s.read(p.c, reads[field]) + " |"
					default:
						t.Fatal("this field has no row")
					}
				}
				b.WriteString(row + "\n")
			})
		}
	}
	for _, name := range insides(t, s) {
		t.Run("TEN-02_"+name, func(t *testing.T) {
			s.t, s.owner.t, s.admin.t = t, t, t
			row := "| " + name + " |"
			for _, p := range people {
				p.c.t = t
				row += " " + s.read(p.c, inside[name]) + " |"
			}
			b.WriteString(row + "\n")
		})
	}
	golden(t, filepath.Join("testdata", "rights.md"), b.String())
}
