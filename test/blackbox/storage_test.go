package blackbox_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// sharedSpace is the space of the world's project, or the tenant's; it comes
// into being a moment after what it belongs to.
func (w *world) sharedSpace(kind string) string {
	w.t.Helper()
	f := vars{"kinds": []string{kind}}
	if kind == "PROJECT" {
		f["projectId"] = w.project
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		got := w.owner.ask(`query($f: StorageSpaceFilter) { storageSpaces(filter: $f) { totalCount nodes { id } } }`, vars{"f": f})
		if id := got.str("storageSpaces.nodes.0.id"); id != "" {
			if got.str("storageSpaces.totalCount") != "1" {
				w.t.Errorf("%s", got)
			}
			return id
		}
	}
	w.t.Fatalf("there is no space of kind %s", kind)
	return ""
}

func TestSharedSpaces(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	lead, _ := w.person("lead", "PROJECT_ADMIN")
	auditor, _ := w.person("audit", "AUDITOR")
	project, tenant := w.sharedSpace("PROJECT"), w.sharedSpace("TENANT")
	const ok, hidden, refused = http.StatusOK, http.StatusNotFound, http.StatusForbidden
	for _, c := range []struct {
		who                      string
		c                        client
		read, write, tread, twrt int
	}{
		{"the_owner", w.owner, ok, ok, ok, ok},
		{"a_member", w.peer, ok, ok, ok, ok},
		{"the_project_admin", lead, ok, ok, ok, ok},
		{"another_project", other.peer, hidden, hidden, ok, ok},
		{"no_project", w.outside, hidden, hidden, ok, ok},
		{"a_tenant_admin", w.admin, ok, ok, ok, ok},
		{"an_auditor", auditor, ok, refused, ok, refused},
		{"another_tenant", as(t, "mallory"), hidden, hidden, hidden, hidden},
	} {
		t.Run("STO-01_"+c.who, func(t *testing.T) {
			c.c.t = t
			for _, s := range []struct {
				space       string
				read, write int
			}{{project, c.read, c.write}, {tenant, c.tread, c.twrt}} {
				w.owner.t = t
				name := unique("file")
				if status, body := w.owner.file(http.MethodPut, s.space+"/"+name, "shared"); status != http.StatusCreated {
					t.Fatalf("%d %s", status, body)
				}
				if status, body := c.c.file(http.MethodGet, s.space+"/"+name, ""); status != s.read || status == ok && body != "shared" {
					t.Errorf("reads: %d %s, want %d", status, body, s.read)
				}
				if status, body := c.c.file(http.MethodPut, s.space+"/"+name, "changed"); status != s.write {
					t.Errorf("writes: %d %s, want %d", status, body, s.write)
				}
				listed := c.c.send(`query($s: ID!) { files(spaceId: $s, first: 100) { nodes { name } } }`, vars{"s": s.space})
				if sees := slices.Contains(listed.strs("files.nodes", "name"), name); sees != (s.read == ok) {
					t.Errorf("lists: %s", listed.body)
				}
				code := map[int]string{ok: "", hidden: "NOT_FOUND", refused: "FORBIDDEN"}[s.write]
				if got := c.c.attempt("deleteFiles", vars{"spaceId": s.space, "paths": []string{name}}); got.str("results.0.userErrors.0.code") != code {
					t.Errorf("deletes: %s, want %q", got, code)
				}
				if got := c.c.attempt("createDirectory", vars{"spaceId": s.space, "path": unique("dir")}); got.str("userErrors.0.code") != code {
					t.Errorf("makes a directory: %s, want %q", got, code)
				}
			}
		})
	}
	t.Run("STO-01_who_leaves_the_project_is_out_at_the_next_request", func(t *testing.T) {
		w.peer.t, w.admin.t = t, t
		w.admin.do("revokeRole", vars{"userId": w.peerID, "role": "MEMBER", "projectId": w.project, "reason": "left"})
		if status, _ := w.peer.file(http.MethodGet, project+"/x", ""); status != hidden {
			t.Errorf("%d", status)
		}
		if got := w.peer.ask(`query($id: ID!) { storageSpace(id: $id) { id } }`, vars{"id": project}); got.at("storageSpace").v != nil {
			t.Errorf("%s", got)
		}
	})
}

func TestDeletedDirectories(t *testing.T) {
	w := newWorld(t)
	w.owner.upload("tree/a/b/c.txt", "abc")
	w.owner.upload("tree/d.txt", "defg")
	w.owner.upload("single.txt", "x")
	t.Run("OPS-01_a_directory_is_removed_by_an_operation_a_file_at_once", func(t *testing.T) {
		got := w.owner.do("deleteFiles", vars{"paths": []string{"tree", "single.txt"}, "idempotencyKey": "once"})
		if got.str("results.0.deleted") != "false" || got.str("results.0.operation.kind") != "DELETE_DIRECTORY" ||
			got.str("results.1.deleted") != "true" || got.at("results.1.operation").v != nil {
			t.Fatalf("%s", got)
		}
		operation := got.str("results.0.operation.id")
		if last := w.owner.ends(operation, "SUCCEEDED"); last.str("doneFiles") != "5" {
			t.Errorf("%s", last)
		}
		for _, path := range []string{"tree/d.txt", "single.txt"} {
			if status, _ := w.owner.file(http.MethodGet, "home/"+path, ""); status != http.StatusNotFound {
				t.Errorf("%s: %d", path, status)
			}
		}
		again := w.owner.do("deleteFiles", vars{"paths": []string{"tree", "single.txt"}, "idempotencyKey": "once"})
		if again.str("results.0.operation.id") != operation || again.str("receipt.replayed") != "true" {
			t.Errorf("%s", again)
		}
	})
	t.Run("AUD-01_request_and_end_are_in_the_history", func(t *testing.T) {
		home := w.owner.ask(`{ me { home { history(first: 100) { nodes { event } } } } }`, nil)
		var events []string
		for _, n := range home.list("me.home.history.nodes") {
			events = append(events, n.str("event"))
		}
		asked := slices.Index(events, "space.directory_removal_requested.v1")
		deleted := 0
		for _, e := range events[max(asked, 0):] {
			if e == "space.files_deleted.v1" {
				deleted++
			}
		}
		if asked < 0 || deleted != 2 { // the file's, and the directory's
			t.Errorf("%v", events)
		}
	})
	t.Run("OPS-03_nobody_else_sees_it", func(t *testing.T) {
		w.owner.upload("mine/a.txt", "x")
		operation := w.owner.do("deleteFiles", vars{"paths": []string{"mine"}}).str("results.0.operation.id")
		if got := w.peer.ask(`query($id: ID!) { operation(id: $id) { id } }`, vars{"id": operation}); got.at("operation").v != nil {
			t.Errorf("%s", got)
		}
		w.owner.ends(operation, "SUCCEEDED")
	})
}

// TestNamesThatDeceive: what shows in another order than it is written is no
// name of a file, wherever it comes in.
func TestNamesThatDeceive(t *testing.T) {
	w := newWorld(t)
	const name = "report\u202etxt.exe"
	t.Run("STO-01_not_by_upload", func(t *testing.T) {
		if status, body := w.owner.file(http.MethodPut, "home/report%E2%80%AEtxt.exe", "x"); status != http.StatusBadRequest || !strings.Contains(body, "INVALID_CHARACTERS") {
			t.Errorf("%d %s", status, body)
		}
	})
	t.Run("STO-01_not_by_a_directory", func(t *testing.T) {
		w.owner.refuse("createDirectory", vars{"path": name}, "INVALID_CHARACTERS")
	})
	t.Run("STO-01_not_by_deletion", func(t *testing.T) {
		if got := w.owner.attempt("deleteFiles", vars{"paths": []string{name}}); got.str("results.0.userErrors.0.code") != "INVALID_CHARACTERS" {
			t.Errorf("%s", got)
		}
	})
}
