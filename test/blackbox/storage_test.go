package blackbox_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// sharedSpace is the space of the world's project, or the tenant's; it comes
// into being a moment after what it belongs to.
func (w *world) sharedSpace(kind string) string {
	w.t.Helper()
	f := vars{"kinds": []string{kind}}
	if kind == "PROJECT" {
		f["projectId"] = w.project
	}
	var id string
	w.eventually("a space of kind "+kind, func() bool {
		got := w.owner.ask(`query($f: StorageSpaceFilter) { storageSpaces(filter: $f) { totalCount nodes { id } } }`, vars{"f": f})
		if id = got.str("storageSpaces.nodes.0.id"); id != "" && got.str("storageSpaces.totalCount") != "1" {
			w.t.Errorf("%s", got)
		}
		return id != ""
	})
	return id
}

// eventually waits until something has come about.
func (w *world) eventually(what string, done func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("never: %s", what)
		}
	}
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

// onDisk is where a file of a space lies.
func onDisk(t *testing.T, tenant, space, name string) string {
	t.Helper()
	id := func(opaque string) string {
		b, err := base64.RawURLEncoding.DecodeString(opaque)
		if err != nil || len(b) < 18 {
			t.Fatalf("%s is no id: %v", opaque, err)
		}
		return uuid.UUID(b[2:18]).String()
	}
	return filepath.Join(shared.dir, "spaces", id(tenant), id(space), name)
}

// head asks for the headers of a file.
func (c client) head(path string, headers ...string) http.Header {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodHead, c.p.url+"/files/"+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode/100 != 2 {
		c.t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
	}
	return resp.Header
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

func TestQuota(t *testing.T) {
	w := newWorld(t)
	space := w.sharedSpace("PROJECT")
	ask := func(c client) value {
		c.t = t
		return c.ask(`query($id: ID!) { storageSpace(id: $id) { version quotaBytes usedBytes countedAt viewerCanSetQuota } }`, vars{"id": space}).at("storageSpace")
	}
	put := func(name, content string) (int, string) { return w.owner.file(http.MethodPut, space+"/"+name, content) }
	put("first", "12345")
	t.Run("STO-01_a_space_tells_what_it_holds", func(t *testing.T) {
		if got := ask(w.owner); got.str("usedBytes") != "5" || got.str("quotaBytes") != "" || got.str("countedAt") == "" || got.str("viewerCanSetQuota") != "false" {
			t.Errorf("%s", got)
		}
	})
	t.Run("STO-01_over_its_quota_nothing_comes_in", func(t *testing.T) {
		w.admin.do("setStorageQuota", vars{"spaceId": space, "quotaBytes": "8", "reason": "small"})
		status, body := put("second", "6789")
		if status != http.StatusInsufficientStorage || !strings.Contains(body, "QUOTA_EXCEEDED") || !strings.Contains(body, "holds 5 bytes and may hold 8") {
			t.Errorf("%d %s", status, body)
		}
		if got := ask(w.admin); got.str("usedBytes") != "5" || got.str("quotaBytes") != "8" || got.str("version") != "1" || got.str("viewerCanSetQuota") != "true" {
			t.Errorf("%s", got)
		}
		if status, body := put("second", "678"); status != http.StatusCreated {
			t.Errorf("%d %s", status, body)
		}
	})
	t.Run("STO-01_what_is_deleted_makes_room", func(t *testing.T) {
		w.owner.do("deleteFiles", vars{"spaceId": space, "paths": []string{"first"}})
		if got := ask(w.owner); got.str("usedBytes") != "3" {
			t.Errorf("%s", got)
		}
	})
	t.Run("STO-01_of_a_home_without_looking_into_it", func(t *testing.T) {
		got := w.admin.do("setStorageQuota", vars{"userId": w.ownerID, "quotaBytes": "1", "reason": "small"})
		if got.at("storageSpace").v != nil {
			t.Errorf("%s", got)
		}
		if status, _ := w.owner.file(http.MethodPut, "home/x", "12"); status != http.StatusInsufficientStorage {
			t.Errorf("%d", status)
		}
		w.admin.do("setStorageQuota", vars{"userId": w.ownerID, "quotaBytes": nil, "reason": "none"})
		w.owner.upload("x", "12")
	})
	t.Run("GEN-05_one_of_space_and_person_and_a_number_or_null", func(t *testing.T) {
		w.admin.refuse("setStorageQuota", vars{"reason": "x"}, "INVALID_VALUE", "REQUIRED")
		w.admin.refuse("setStorageQuota", vars{"spaceId": space, "quotaBytes": "-1", "reason": "x"}, "OUT_OF_RANGE")
		w.owner.refuse("setStorageQuota", vars{"spaceId": space, "quotaBytes": "9", "reason": "x"}, "FORBIDDEN")
	})
	t.Run("AUD-03_a_quota_has_a_past", func(t *testing.T) {
		got := w.owner.ask(`query($id: ID!) { storageSpace(id: $id) { history(first: 100) { nodes { event position reason changes { field from to } } } } }`, vars{"id": space})
		for _, n := range got.list("storageSpace.history.nodes") {
			if n.str("event") != "space.quota_set.v1" {
				continue
			}
			then := w.owner.ask(`query($id: ID!, $p: Position) { storageSpace(id: $id, asOfPosition: $p) { quotaBytes version } }`, vars{"id": space, "p": n.str("position")})
			if n.str("changes.0.to") != "8" || n.str("reason") != "small" || then.str("storageSpace.quotaBytes") != "8" {
				t.Errorf("%s %s", n, then)
			}
			return
		}
		t.Errorf("%s", got)
	})
}

func TestRecount(t *testing.T) {
	w := newWorld(t)
	w.owner.upload("a.txt", "hello")
	me := w.owner.ask(`{ me { home { id usedBytes } tenant { id } } }`, nil)
	if err := os.WriteFile(onDisk(t, me.str("me.tenant.id"), me.str("me.home.id"), "by_a_workload"), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("STO-01_what_workloads_wrote_comes_to_light", func(t *testing.T) {
		//nolint:gosec // G204: the program is the one built here
		out, err := exec.CommandContext(t.Context(), binary, "quota", "recount", "--data-dir", shared.dir).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "spaces counted") {
			t.Fatalf("%v\n%s", err, out)
		}
		was := me.str("me.home.usedBytes")
		now := w.owner.ask(`{ me { home { usedBytes } } }`, nil).str("me.home.usedBytes")
		if n, _ := strconv.Atoi(was); now != strconv.Itoa(n+1000) || !strings.Contains(string(out), "was "+was+", holds "+now) {
			t.Errorf("%s, was %s\n%s", now, was, out)
		}
	})
}

func TestChecksums(t *testing.T) {
	w := newWorld(t)
	const tag = `"sha256-2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"` // of "hello"
	const digest = "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:"
	w.owner.upload("a.txt", "hello")
	t.Run("STO-02_the_tag_of_a_file_is_its_SHA-256", func(t *testing.T) {
		got := w.owner.head("home/a.txt")
		if got.Get("ETag") != tag || got.Get("Repr-Digest") != digest {
			t.Errorf("%v", got)
		}
	})
	t.Run("STO-02_what_a_workload_changed_is_read_again", func(t *testing.T) {
		me := w.owner.ask(`{ me { home { id } tenant { id } } }`, nil)
		file := onDisk(t, me.str("me.tenant.id"), me.str("me.home.id"), "a.txt")
		if err := os.WriteFile(file, []byte("HELLO"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := w.owner.head("home/a.txt"); got.Get("ETag") == tag || got.Get("Repr-Digest") != "" {
			t.Errorf("%v", got)
		}
		wanted := w.owner.head("home/a.txt", "Want-Repr-Digest", "sha-256=1")
		if known := w.owner.head("home/a.txt"); known.Get("Repr-Digest") == "" || known.Get("Repr-Digest") == digest || known.Get("ETag") != wanted.Get("ETag") {
			t.Errorf("%v %v", wanted, known)
		}
	})
}
