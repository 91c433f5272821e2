package blackbox_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"
)

const watchAlgorithm = `subscription($id: ID!, $after: String) { algorithmEvents(filter: {algorithmId: $id}, after: $after) { cursor kind
	change { event } algorithm { id } algorithmVersion { description } } }`

// TestResume writes while a subscriber comes and goes, also over a restart of
// the program, and wants every change once and in its order.
func TestResume(t *testing.T) {
	p := own(t)
	w := worldOf(t, p)
	algorithm, version := w.create(w.command(unique("live")))
	edit := func(i int) { w.owner.do("updateAlgorithmVersion", vars{"id": version, "description": fmt.Sprint(i)}) }
	live := w.owner.subscribe(watchAlgorithm, vars{"id": algorithm})
	snapshot := live.next()
	t.Run("LIV-02_the_snapshot_comes_first", func(t *testing.T) {
		if snapshot.str("kind") != "SNAPSHOT" || snapshot.str("cursor") == "" || snapshot.str("algorithm.id") != algorithm || snapshot.at("change").v != nil {
			t.Errorf("%s", snapshot)
		}
	})
	var got []string
	cursor := snapshot.str("cursor")
	follow := func(n int) {
		t.Helper()
		for len(got) < n {
			item := live.next()
			if item.str("kind") == "SNAPSHOT" {
				t.Fatalf("a snapshot in the middle: %s", item)
			}
			got, cursor = append(got, item.str("algorithmVersion.description")), item.str("cursor")
		}
	}
	want := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint(i))
		}
		return list
	}
	for i := range 10 {
		edit(i)
	}
	follow(10)
	t.Run("LIV-02_resume_misses_nothing_and_repeats_nothing", func(t *testing.T) {
		live.t = t
		_ = live.conn.CloseNow() // the connection breaks
		for i := 10; i < 20; i++ {
			edit(i)
		}
		live = w.owner.subscribe(watchAlgorithm, vars{"id": algorithm, "after": cursor})
		follow(15)
		_ = live.conn.CloseNow()
		live = w.owner.subscribe(watchAlgorithm, vars{"id": algorithm, "after": cursor})
		edit(20)
		follow(21)
		if !slices.Equal(got, want(21)) {
			t.Errorf("%v", got)
		}
	})
	t.Run("LIV-02_resume_over_a_restart", func(t *testing.T) {
		edit(21) // on its way while the program stops
		body, still := io.Pipe()
		defer still.Close() //nolint:errcheck // a pipe
		stalled, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.url+"/files/home/stalled", body)
		if err != nil {
			t.Fatal(err)
		}
		stalled.Header.Set("Authorization", "Bearer "+w.owner.token)
		stalled.ContentLength = 1 << 20
		go func() {
			if r, err := http.DefaultClient.Do(stalled); err == nil {
				_ = r.Body.Close()
			}
		}()
		if _, err := still.Write([]byte("some bytes")); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		t.Logf("stopped in %s with a subscriber", time.Since(began))
		for item := range live.items {
			got, cursor = append(got, item.str("algorithmVersion.description")), item.str("cursor")
		}
		if end := <-live.ended; end.code != 1001 && end.code != 1012 {
			t.Errorf("the stop closes with %d %q", end.code, end.reason)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("an upload that stands still holds the stop for %s", took)
		}
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
		for i := 22; i < 25; i++ {
			edit(i)
		}
		live = w.owner.subscribe(watchAlgorithm, vars{"id": algorithm, "after": cursor})
		follow(25)
		if !slices.Equal(got, want(25)) {
			t.Errorf("%v", got)
		}
	})
	t.Run("LIV-02_a_cursor_of_no_use", func(t *testing.T) {
		bad := w.owner.subscribe(watchAlgorithm, vars{"id": algorithm, "after": "nonsense"})
		if end := bad.end(patience); end.errors.str("0.extensions.code") != "CURSOR_INVALID" {
			t.Errorf("%+v", end)
		}
	})
}

// within is how soon rights that are taken away end subscriptions (TEN-07).
const within = 5 * time.Second

func TestRightsOfSubscribers(t *testing.T) {
	w := newWorld(t)
	algorithm, version := w.create(w.command(unique("right")))
	w.publish(version, "GROUP")
	t.Run("TEN-07_suspension_ends_them", func(t *testing.T) {
		who, id := w.person("susp", "MEMBER")
		live := who.subscribe(watchAlgorithm, vars{"id": algorithm})
		live.next()
		began := time.Now()
		w.admin.do("suspendUser", vars{"userId": id, "reason": "test"})
		end := live.end(within)
		t.Logf("closed with %d %q after %s", end.code, end.reason, time.Since(began))
		if end.code != 4403 {
			t.Errorf("closed with %d %q", end.code, end.reason)
		}
		if r := who.send(`{ me { user { id } } }`, nil); r.code() != "UNAUTHENTICATED" {
			t.Errorf("%s", r.body)
		}
		w.admin.do("reinstateUser", vars{"userId": id, "reason": "test"})
		who.subscribe(watchAlgorithm, vars{"id": algorithm}).next()
	})
	t.Run("TEN-07_a_revoked_token_ends_them", func(t *testing.T) {
		made := w.peer.do("createApiToken", vars{"expiresAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
		live := client{t, w.p, made.str("token")}.subscribe(watchAlgorithm, vars{"id": algorithm})
		live.next()
		w.peer.do("revokeApiToken", vars{"tokenId": made.str("tokenId")})
		if end := live.end(within); end.code != 4403 {
			t.Errorf("closed with %d %q", end.code, end.reason)
		}
		if r := (client{t, w.p, made.str("token")}).send(`{ me { user { id } } }`, nil); r.code() != "UNAUTHENTICATED" {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("TEN-06_an_expired_token_ends_them", func(t *testing.T) {
		made := w.peer.do("createApiToken", vars{"expiresAt": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)})
		live := client{t, w.p, made.str("token")}.subscribe(watchAlgorithm, vars{"id": algorithm})
		live.next()
		if end := live.end(2*time.Second + within); end.code != 4403 {
			t.Errorf("closed with %d %q", end.code, end.reason)
		}
	})
}

func TestAuditTail(t *testing.T) {
	w := newWorld(t)
	auditor, _ := w.person("auditor", "AUDITOR")
	document := `subscription($p: ID!, $after: String) { auditTail(filter: {projectId: $p}, after: $after) { cursor kind auditEntry { action outcome reason } } }`
	live := auditor.subscribe(document, vars{"p": w.project})
	if first := live.next(); first.str("kind") != "SNAPSHOT" {
		t.Errorf("%s", first)
	}
	_, version := w.create(w.command(unique("tail")))
	edit := func(i int) {
		w.owner.do("updateAlgorithmVersion", vars{"id": version, "description": fmt.Sprint(i), "reason": fmt.Sprint(i)})
	}
	var got []string
	read := func(live *watch, n int) (cursor string) {
		for len(got) < n {
			item := live.next()
			if item.str("auditEntry.action") == "updateAlgorithmVersion" {
				got = append(got, item.str("auditEntry.reason"))
			}
			cursor = item.str("cursor")
		}
		return cursor
	}
	t.Run("LIV-04_no_line_is_left_out", func(t *testing.T) {
		for i := range 30 {
			edit(i)
		}
		cursor := read(live, 15)
		_ = live.conn.CloseNow()
		edit(30)
		read(auditor.subscribe(document, vars{"p": w.project, "after": cursor}), 31)
		for i, reason := range got {
			if reason != fmt.Sprint(i) {
				t.Fatalf("%v", got)
			}
		}
	})
	t.Run("AUD-01_a_command_refused_half_way_is_told_as_refused", func(t *testing.T) {
		w.owner.upload("late/file", "content")
		tail := auditor.subscribe(`subscription($a: ID!) { auditTail(filter: {actorId: $a}) { kind auditEntry { action outcome } } }`, vars{"a": w.ownerID})
		tail.next()
		if got := w.owner.attempt("createDirectory", vars{"path": "late/file"}); len(got.strs("userErrors", "code")) != 1 {
			t.Fatalf("%s", got)
		}
		for {
			item := tail.next()
			if item.str("auditEntry.action") == "createDirectory" && item.str("auditEntry.outcome") == "REFUSED" {
				break
			}
		}
	})
	t.Run("LIV-02_what_a_command_adds_to_its_line_is_told", func(t *testing.T) {
		tail := auditor.subscribe(`subscription($a: ID!) { auditTail(filter: {actorId: $a, actions: ["uploadFile"]}) { kind auditEntry { changes { field } } } }`, vars{"a": w.ownerID})
		tail.next()
		w.owner.upload("added/file", "content")
		if item := tail.next(); item.str("kind") != "CREATED" {
			t.Errorf("it began with %s", item)
		}
		if item := tail.next(); item.str("kind") != "CHANGED" || !slices.Contains(item.strs("auditEntry.changes", "field"), "sha256") {
			t.Errorf("then came %s", item)
		}
	})
	t.Run("AUD-02_the_tail_is_for_who_may_read_it", func(t *testing.T) {
		for _, c := range []client{w.owner, as(t, "oscar")} {
			if end := c.subscribe(document, vars{"p": w.project}).end(patience); end.errors.str("0.extensions.code") != "FORBIDDEN" {
				t.Errorf("%s: %+v", c.token, end)
			}
		}
	})
}

// TestWhatCanBeWatched follows one publication from every side that there is:
// each subscription begins with the state and hears of it.
func TestWhatCanBeWatched(t *testing.T) {
	w := newWorld(t)
	w.owner.upload("watched/train.py", script)
	algorithm, version := w.create(w.fromDirectory(unique("watched"), "watched"))
	const (
		algorithms = `subscription($f: AlgorithmEventsFilter!) { algorithmEvents(filter: $f) { kind change { event } algorithm { id } algorithmVersion { id state } } }`
		operations = `subscription($f: OperationEventsFilter!) { operationEvents(filter: $f) { kind change { event } operation { state } } }`
		audit      = `subscription($f: AuditFilter!) { auditTail(filter: $f) { kind auditEntry { action } } }`
	)
	published := func(v value) bool {
		return v.str("algorithmVersion.state") == "PUBLISHED" && v.str("algorithm.id") == algorithm
	}
	succeeded := func(v value) bool { return v.str("operation.state") == "SUCCEEDED" }
	recorded := func(v value) bool { return v.str("auditEntry.action") == "publishAlgorithmVersion" }
	sides := []struct {
		name, document string
		filter         vars
		hears          func(value) bool
		live           *watch
	}{
		{name: "one_algorithm", document: algorithms, filter: vars{"algorithmId": algorithm}, hears: published},
		{name: "the_algorithms_of_a_project", document: algorithms, filter: vars{"projectId": w.project}, hears: published},
		{name: "the_algorithms_of_a_tab", document: algorithms, filter: vars{"scope": "PERSONAL"}, hears: published},
		{name: "the_operations_of_a_thing", document: operations, filter: vars{"subjectId": version}, hears: succeeded},
		{name: "all_operations", document: operations, filter: vars{"all": true}, hears: succeeded},
		{name: "the_audit_of_a_thing", document: audit, filter: vars{"subjectId": version}, hears: recorded},
	}
	for i := range sides {
		s := &sides[i]
		s.live = w.owner.subscribe(s.document, vars{"f": s.filter})
		if first := s.live.next(); first.str("kind") != "SNAPSHOT" {
			t.Fatalf("%s begins with %s", s.name, first)
		}
	}
	w.owner.do("publishAlgorithmVersion", vars{"id": version, "visibility": "GROUP"})
	for _, s := range sides {
		t.Run("LIV-01_"+s.name, func(t *testing.T) {
			s.live.t = t
			s.live.until("the publication", s.hears)
		})
	}
}
