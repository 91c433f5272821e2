package blackbox_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestSession is the session that a person has who tries the program: alice
// makes an algorithm of an uploaded directory, bob sees it when it is
// published, mallory of another tenant never does, audra reads the audit.
func TestSession(t *testing.T) {
	alice, bob := as(t, "alice"), as(t, "bob")
	alice.upload("lenet/train.py", script)
	alice.upload("lenet/data/labels.txt", strings.Repeat("cat\ndog\n", 1000))
	t.Run("STO-02_the_upload_is_listed_and_comes_back", func(t *testing.T) {
		files := as(t, "alice").ask(`{ files(path: "lenet") { nodes { name kind sizeBytes url } } }`, nil)
		if got := files.strs("files.nodes", "name"); !slices.Equal(got, []string{"data", "train.py"}) {
			t.Errorf("files: %v", got)
		}
		if status, body := as(t, "alice").file(http.MethodGet, "home/lenet/train.py", ""); status != http.StatusOK || body != script {
			t.Errorf("download: %d %q", status, body)
		}
	})
	project := alice.ask(`{ me { projects { id } } }`, nil).str("me.projects.0.id")
	name := unique("lenet")
	live := alice.subscribe(`subscription($p: ID!) { algorithmEvents(filter: {projectId: $p}) { kind cursor change { event }
		algorithm { name } algorithmVersion { id label state visibility } } }`, vars{"p": project})
	if first := live.next(); first.str("kind") != "SNAPSHOT" {
		t.Fatalf("LIV-02: the first item is %s", first)
	}
	made := alice.do("createAlgorithm", vars{
		"projectId": project, "name": name, "label": "v1", "reason": "the first one",
		"image":      vars{"framework": "PYTORCH", "reference": "pytorch:2.6"},
		"source":     vars{"script": vars{"directory": "lenet", "script": "train.py"}},
		"parameters": []vars{{"name": "--epochs", "value": "3"}},
	})
	algorithm, version := made.str("algorithm.id"), made.str("algorithmVersion.id")
	t.Run("ALG-01_defaults_are_chosen_by_the_framework", func(t *testing.T) {
		got := as(t, "alice").ask(`query($id: ID!) { algorithmVersion(id: $id) { state deploymentType resources { workers } visibility fingerprint } }`, vars{"id": version})
		if s := got.at("algorithmVersion").String(); s != `{"deploymentType":"SINGLE","fingerprint":null,"resources":{"workers":1},"state":"CREATED","visibility":null}` {
			t.Error(s)
		}
	})
	t.Run("ALG-05_bob_does_not_see_it_before", func(t *testing.T) {
		if as(t, "bob").lists(nil, name) {
			t.Error("bob sees it")
		}
		if got := as(t, "bob").ask(`query($id: ID!) { node(id: $id) { id } }`, vars{"id": version}); got.at("node").v != nil {
			t.Errorf("bob gets %s", got)
		}
	})
	alice.do("publishAlgorithmVersion", vars{"id": version, "visibility": "GLOBAL", "reason": "for everybody"})
	seen := live.until("PUBLISHED", func(item value) bool {
		return item.str("algorithmVersion.id") == version && item.str("algorithmVersion.state") == "PUBLISHED"
	})
	t.Run("LIV-02_every_change_came_in_order", func(t *testing.T) {
		var states []string
		for _, item := range seen {
			if item.str("algorithmVersion.id") == version {
				states = append(states, item.str("algorithmVersion.state"))
			}
		}
		if !slices.Equal(states, []string{"CREATED", "PUBLISHING", "PUBLISHED"}) {
			t.Errorf("states: %v in %s", states, seen)
		}
	})
	bob.settled()
	t.Run("ALG-05_bob_sees_it_after", func(t *testing.T) {
		if !as(t, "bob").lists(nil, name) || !as(t, "bob").lists(vars{"scope": "GLOBAL"}, name) {
			t.Error("bob does not see it")
		}
		got := as(t, "bob").ask(`query($id: ID!) { algorithmVersion(id: $id) { fingerprint fileCount fileBytes publishedBy { loginName }
			viewerCanEdit viewerCanDelete viewerCanPublish } }`, vars{"id": version}).at("algorithmVersion")
		if got.str("fileCount") != "2" || !strings.HasPrefix(got.str("fingerprint"), "sha256:") || got.str("publishedBy.loginName") != "alice" || got.str("viewerCanEdit") != "false" {
			t.Errorf("bob sees %s", got)
		}
	})
	t.Run("ALG-02_a_second_version", func(t *testing.T) {
		second := as(t, "alice").do("createAlgorithmVersion", vars{"algorithmId": algorithm, "label": "v2", "basedOnId": version, "source": vars{"command": "python train.py"}})
		got := as(t, "alice").ask(`query($id: ID!) { algorithm(id: $id) { latestVersion { label basedOn { version { label } fingerprint } } versions(first: 10) { nodes { label } } } }`, vars{"id": algorithm})
		if got.str("algorithm.latestVersion.label") != "v2" || !slices.Equal(got.strs("algorithm.versions.nodes", "label"), []string{"v2", "v1"}) ||
			got.str("algorithm.latestVersion.basedOn.version.label") != "v1" {
			t.Errorf("%s", got)
		}
		if got := as(t, "bob").ask(`query($id: ID!) { algorithm(id: $id) { latestVersion { label } versions(first: 10) { totalCount nodes { label } } } }`, vars{"id": algorithm}); got.str("algorithm.latestVersion.label") != "v1" || got.str("algorithm.versions.totalCount") != "1" {
			t.Errorf("bob sees the unpublished one: %s", got)
		}
		as(t, "alice").do("deleteAlgorithmVersion", vars{"id": second.str("algorithmVersion.id")})
	})
	t.Run("AUD-01_audra_reads_who_when_and_from_where", func(t *testing.T) {
		audra := as(t, "audra")
		audra.settled()
		lines := audra.ask(`query($id: ID!) { auditEntries(filter: {subjectId: $id, personsOnly: true}, first: 100) { nodes { at action outcome reason address userAgent requestId
			actor { kind user { loginName } } subject { kind id } changes { field from to } events } } }`, vars{"id": version}).list("auditEntries.nodes")
		i := slices.IndexFunc(lines, func(v value) bool { return v.str("action") == "publishAlgorithmVersion" })
		if i < 0 {
			t.Fatalf("no publication in %s", lines)
		}
		l := lines[i]
		if l.str("actor.user.loginName") != "alice" || l.str("outcome") != "DONE" || l.str("reason") != "for everybody" ||
			!strings.HasPrefix(l.str("address"), "127.0.0.1") || l.str("userAgent") != "blackbox/1" || l.str("requestId") == "" || l.str("at") == "" {
			t.Errorf("the line is %s", l)
		}
		if fields := l.strs("changes", "field"); !slices.Contains(fields, "state") {
			t.Errorf("changes: %s", l.at("changes"))
		}
	})
	t.Run("TEN-01_mallory_never_sees_it", func(t *testing.T) { unseen(t, algorithm, version, name, project) })
	t.Run("TEN-02_audra_sees_it_and_changes_nothing", func(t *testing.T) {
		audra := as(t, "audra")
		if !audra.lists(nil, name) {
			t.Error("audra does not see it")
		}
		audra.refuse("publishAlgorithmVersion", vars{"id": version, "visibility": "GROUP"}, "FORBIDDEN")
	})
}

// unseen tries every way from mallory's tenant to something of another one.
func unseen(t *testing.T, algorithm, version, name, project string) {
	t.Helper()
	alice, mallory := as(t, "alice"), as(t, "mallory")
	nowhere := `{"a":null,"n":null,"ns":[null,null],"v":null}`
	if got := mallory.ask(`query($a: ID!, $v: ID!) { n: node(id: $v) { id } ns: nodes(ids: [$a, $v]) { id } a: algorithm(id: $a) { id } v: algorithmVersion(id: $v) { id } }`,
		vars{"a": algorithm, "v": version}); got.String() != nowhere {
		t.Errorf("by id: %s", got)
	}
	for _, f := range []vars{nil, {"scope": "GLOBAL"}, {"projectId": project}} {
		if got := mallory.ask(seeAlgorithms, vars{"f": f}); strings.Contains(got.String(), name) {
			t.Errorf("in the list %v: %s", f, got)
		}
	}
	if got := mallory.ask(`query($s: String!) { algorithmVersions(filter: {search: $s}) { totalCount nodes { id } } }`, vars{"s": name}); got.str("algorithmVersions.totalCount") != "0" {
		t.Errorf("by name: %s", got)
	}
	cursor := alice.ask(`{ algorithms(first: 1) { pageInfo { endCursor } } }`, nil).str("algorithms.pageInfo.endCursor")
	if r := mallory.send(`query($c: String) { algorithms(first: 1, after: $c) { nodes { id } } }`, vars{"c": cursor}); r.code() != "CURSOR_INVALID" {
		t.Errorf("by cursor: %s", r.body)
	}
	if got := mallory.ask(`query($id: ID!) { auditEntries(filter: {subjectId: $id}) { totalCount nodes { id } } all: auditEntries(first: 100) { nodes { subject { id } } } }`,
		vars{"id": version}); got.str("auditEntries.totalCount") != "0" || strings.Contains(got.String(), version) {
		t.Errorf("in the audit: %s", got)
	}
	for mutation, in := range map[string]vars{
		"publishAlgorithmVersion": {"id": version, "visibility": "GLOBAL"}, "deleteAlgorithmVersion": {"id": version},
		"updateAlgorithmVersion": {"id": version, "description": "mine"}, "favoriteAlgorithm": {"id": algorithm},
		"createAlgorithmVersion": {"algorithmId": algorithm, "label": "x", "image": vars{"reference": "x"}, "source": vars{"command": "x"}},
	} {
		mallory.refuse(mutation, in, "NOT_FOUND")
	}
	// The name is free in the other tenant: no check of uniqueness tells of it.
	own := mallory.ask(`{ me { projects { id } } }`, nil).str("me.projects.0.id")
	mallory.do("createAlgorithm", vars{"projectId": own, "name": name, "label": "v1", "image": vars{"reference": "x"}, "source": vars{"command": "x"}})

	// A subscription of everything tells of mallory's own and of nothing else.
	live := mallory.subscribe(`subscription { algorithmEvents(filter: {scope: ALL}) { kind algorithm { id name } algorithmVersion { id } algorithms { id } } }`, nil)
	live.next()
	alice.do("updateAlgorithmVersion", vars{"id": version, "description": "seen in the own tenant alone"})
	mark := unique("mark")
	mallory.do("createAlgorithm", vars{"projectId": own, "name": mark, "label": "v1", "image": vars{"reference": "x"}, "source": vars{"command": "x"}})
	for _, item := range live.until(mark, func(v value) bool { return v.str("algorithm.name") == mark }) {
		if strings.Contains(item.String(), version) || strings.Contains(item.String(), algorithm) {
			t.Errorf("by subscription: %s", item)
		}
	}
	if end := mallory.subscribe(`subscription($id: ID!) { algorithmEvents(filter: {algorithmId: $id}) { kind } }`, vars{"id": algorithm}).end(patience); end.errors.str("0.extensions.code") != "NOT_FOUND" {
		t.Errorf("a subscription of it: %+v", end)
	}
}
