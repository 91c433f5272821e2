package blackbox_test

import (
	"slices"
	"testing"
	"time"
)

func TestHistory(t *testing.T) {
	w := newWorld(t)
	algorithm, version := w.create(with(w.command(unique("hist")), vars{"description": "first", "reason": "because"}))
	time1 := w.owner.ask(`query($id: ID!) { algorithmVersion(id: $id) { updatedAt } }`, vars{"id": version}).str("algorithmVersion.updatedAt")
	w.owner.do("updateAlgorithmVersion", vars{"id": version, "description": "second", "reason": "better"})
	w.publish(version, "GROUP")
	t.Run("AUD-03_the_history_tells_every_change_field_by_field", func(t *testing.T) {
		got := w.owner.ask(`query($id: ID!) { algorithmVersion(id: $id) { history(first: 100) { nodes { position event action reason actor { kind part user { id } } changes { field from to } } } } }`, vars{"id": version})
		events := got.strs("algorithmVersion.history.nodes", "event")
		if want := []string{"algorithm.version_added.v1", "algorithm.version_edited.v1", "algorithm.published.v1"}; !slices.Equal(events, want) {
			t.Fatalf("%v, want %v", events, want)
		}
		edit := got.at("algorithmVersion.history.nodes.1")
		if edit.at("changes").String() != `[{"field":"description","from":"first","to":"second"}]` || edit.str("reason") != "better" || edit.str("actor.user.id") != w.ownerID || edit.str("action") != "updateAlgorithmVersion" {
			t.Errorf("%s", edit)
		}
	})
	t.Run("AUD-03_as_of_a_moment_and_of_a_position", func(t *testing.T) {
		past := func(argument, kind, at string) value {
			return w.owner.ask(`query($id: ID!, $at: `+kind+`) { algorithmVersion(id: $id, `+argument+`: $at) { description state visibility version } }`, vars{"id": version, "at": at}).at("algorithmVersion")
		}
		if got := past("asOf", "Time", time1); got.str("description") != "first" || got.str("state") != "CREATED" {
			t.Errorf("as of %s: %s", time1, got)
		}
		positions := w.owner.ask(`query($id: ID!) { algorithmVersion(id: $id) { history(first: 100) { nodes { position } } } }`, vars{"id": version}).strs("algorithmVersion.history.nodes", "position")
		var seen []string
		for _, p := range positions {
			got := past("asOfPosition", "Position", p)
			seen = append(seen, got.str("description")+" "+got.str("state"))
		}
		if want := []string{"first CREATED", "second CREATED", "second PUBLISHED"}; !slices.Equal(seen, want) {
			t.Errorf("%v, want %v", seen, want)
		}
		if got := past("asOf", "Time", "2001-01-01T00:00:00Z"); got.v != nil {
			t.Errorf("before it was: %s", got)
		}
		if r := w.owner.send(`query($id: ID!, $at: Time, $p: Position) { algorithmVersion(id: $id, asOf: $at, asOfPosition: $p) { id } }`, vars{"id": version, "at": time1, "p": positions[0]}); r.code() != "BAD_REQUEST" {
			t.Errorf("both: %s", r.body)
		}
		if got := w.owner.ask(`query($id: ID!, $at: Time) { algorithm(id: $id, asOf: $at) { name } }`, vars{"id": algorithm, "at": time1}); got.at("algorithm").v == nil {
			t.Errorf("%s", got)
		}
	})
	t.Run("AUD-03_the_past_is_cut_by_todays_rights", func(t *testing.T) {
		if got := w.outside.ask(`query($id: ID!, $at: Time) { algorithmVersion(id: $id, asOf: $at) { id } }`, vars{"id": version, "at": time.Now().UTC().Format(time.RFC3339)}); got.at("algorithmVersion").v != nil {
			t.Errorf("%s", got)
		}
	})
}

// TestAuditReaders asks for the audit as everybody.
func TestAuditReaders(t *testing.T) {
	w := newWorld(t)
	name := unique("who")
	_, version := w.create(w.command(name))
	w.publish(version, "GROUP")
	w.owner.settled()
	auditor, _ := w.person("auditor", "AUDITOR")
	for _, c := range []struct {
		who          string
		c            client
		thing, whole bool
	}{
		{"the_owner", w.owner, true, false},
		{"a_member", w.peer, true, false},
		{"nobodys_member", w.outside, false, false},
		{"a_tenant_admin", w.admin, true, true},
		{"an_auditor", auditor, true, true},
		{"another_tenant", as(t, "mallory"), false, true}, // their own tenant's
		{"an_operator", as(t, "oscar"), false, false},
	} {
		t.Run("AUD-02_"+c.who, func(t *testing.T) {
			c.c.t = t
			r := c.c.send(`query($id: ID!) { auditEntries(filter: {subjectId: $id}) { nodes { id } } }`, vars{"id": version})
			if got := len(r.list("auditEntries.nodes")) > 0; got != c.thing {
				t.Errorf("a thing's: %s", r.body)
			}
			r = c.c.send(`{ auditEntries(first: 1) { nodes { id } } }`, nil)
			if whole := r.code() == ""; whole != c.whole || !whole && r.code() != "FORBIDDEN" {
				t.Errorf("the tenant's: %s", r.body)
			}
			r = c.c.send(`{ me { user { id } canReadAudit } }`, nil)
			if r.str("me.canReadAudit") == "true" != c.whole {
				t.Errorf("%s", r.body)
			}
			mine := c.c.send(`query($id: ID!) { auditEntries(filter: {actorId: $id}) { nodes { actor { user { id } } } } }`, vars{"id": r.str("me.user.id")})
			if mine.code() != "" {
				t.Errorf("one's own: %s", mine.body)
			}
		})
	}
	line := auditor.ask(`query($id: ID!) { auditEntries(filter: {subjectId: $id}, first: 1) { nodes { id } } }`, vars{"id": version}).str("auditEntries.nodes.0.id")
	t.Run("AUD-02_one_line_by_its_id", func(t *testing.T) {
		for _, c := range []struct {
			c    client
			sees bool
		}{{w.peer, true}, {auditor, true}, {w.outside, false}, {as(t, "mallory"), false}} {
			got := c.c.ask(`query($id: ID!) { auditEntry(id: $id) { id } node(id: $id) { id } }`, vars{"id": line})
			if (got.at("auditEntry").v != nil) != c.sees || (got.at("node").v != nil) != c.sees {
				t.Errorf("%s sees %s", c.c.token, got)
			}
		}
	})
	t.Run("AUD-02_search_and_pages", func(t *testing.T) {
		got := auditor.ask(`query($s: String!, $p: ID!) { auditEntries(filter: {search: $s, projectId: $p, outcomes: [DONE]}) { totalCount nodes { action } } }`, vars{"s": "PublishAlgorithm", "p": w.project})
		if actions := got.strs("auditEntries.nodes", "action"); !slices.Contains(actions, "publishAlgorithmVersion") || slices.Contains(actions, "createAlgorithm") {
			t.Errorf("%s", got)
		}
		all := auditor.ask(`query($p: ID!) { auditEntries(filter: {projectId: $p}, first: 100) { nodes { id } } }`, vars{"p": w.project}).strs("auditEntries.nodes", "id")
		first := auditor.ask(`query($p: ID!) { auditEntries(filter: {projectId: $p}, first: 2) { nodes { id } pageInfo { endCursor } } }`, vars{"p": w.project})
		w.create(w.command(unique("who")))
		rest := auditor.ask(`query($p: ID!, $c: String) { auditEntries(filter: {projectId: $p}, first: 100, after: $c) { nodes { id } } }`, vars{"p": w.project, "c": first.str("auditEntries.pageInfo.endCursor")}).strs("auditEntries.nodes", "id")
		if !slices.Equal(append(first.strs("auditEntries.nodes", "id"), rest...), all) {
			t.Errorf("a page shifted: %v and %v, want %v", first, rest, all)
		}
	})
}
