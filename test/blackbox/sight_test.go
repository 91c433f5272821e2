package blackbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	watchOne = `subscription($id: ID!, $after: String) { algorithmEvents(filter: {algorithmId: $id}, after: $after) { ` + watched + ` } }`
	watchAll = `subscription($f: AlgorithmEventsFilter!, $after: String) { algorithmEvents(filter: $f, after: $after) { ` + watched + ` } }`
	watched  = `cursor kind removedIds change { event } algorithm { id name } algorithmVersion { id } algorithms { id name }`
)

// soon waits for an item no longer than a change of rights may take.
func (w *watch) soon(t *testing.T) value {
	t.Helper()
	select {
	case item, ok := <-w.items:
		if !ok {
			end := <-w.ended
			t.Fatalf("the subscription ended: %d %s %s", end.code, end.reason, end.errors)
		}
		return item
	case <-time.After(within):
		t.Fatalf("nothing came within %s", within)
	}
	return value{}
}

// loses reads REMOVED items until the ids came, in any order, and wants them to
// tell nothing else.
func (w *watch) loses(t *testing.T, ids ...string) (items []value) {
	t.Helper()
	var came []string
	for len(came) < len(ids) {
		item := w.soon(t)
		if item.str("kind") != "REMOVED" || item.at("change").v != nil || item.at("algorithm").v != nil ||
			item.at("algorithmVersion").v != nil || item.at("operation").v != nil {
			t.Fatalf("%s", item)
		}
		for _, id := range item.list("removedIds") {
			came = append(came, fmt.Sprint(id.v))
		}
		items = append(items, item)
	}
	if slices.Sort(came); !slices.Equal(came, slices.Sorted(slices.Values(ids))) {
		t.Errorf("removed were %v, not %v", came, ids)
	}
	return items
}

// quiet wants nothing to come before something that everybody sees.
func (w *watch) quiet(t *testing.T, by *world) {
	t.Helper()
	mark := unique("mark")
	_, version := by.create(by.command(mark))
	by.publish(version, "GLOBAL")
	for _, item := range w.until(mark, func(v value) bool { return v.str("algorithm.name") == mark }) {
		if item.str("algorithm.name") != mark {
			t.Errorf("comes %s", item)
		}
	}
}

func (w *watch) still(t *testing.T) {
	t.Helper()
	select {
	case item, open := <-w.items:
		t.Errorf("comes %s, open %v", item, open)
	default:
	}
}

// TestOutOfSight has a member of a project watch while they are removed from it
// and added again.
func TestOutOfSight(t *testing.T) {
	w := newWorld(t)
	who, id := w.person("sight", "MEMBER")
	leave := func() {
		w.admin.do("revokeRole", vars{"userId": id, "role": "MEMBER", "projectId": w.project, "reason": "test"})
	}
	group, v1 := w.create(w.command(unique("group")))
	w.publish(v1, "GROUP")
	private, secret := w.create(w.command(unique("private")))
	both, global := w.create(w.command(unique("both")))
	w.publish(global, "GLOBAL")
	part := w.version(both, "v2", nil)
	w.publish(part, "GROUP")
	hidden := w.version(both, "v3", nil) // the owner's alone
	w.owner.settled()

	one := who.subscribe(watchOne, vars{"id": group})
	list := who.subscribe(watchAll, vars{"f": vars{"projectId": w.project}})
	tab := who.subscribe(watchAll, vars{"f": vars{"scope": "GROUP"}})
	outside := w.outside.subscribe(watchAll, vars{"f": vars{"projectId": w.project}})
	for _, s := range []*watch{one, list, tab, outside} {
		s.next()
	}
	leave()
	t.Run("LIV-03_who_leaves_a_project_is_told_what_is_out_of_sight", func(t *testing.T) {
		one.loses(t, group)
		list.loses(t, group, part) // of the third one version stays in view
		tab.loses(t, group)
	})
	t.Run("LIV-03_and_hears_no_more_of_it", func(t *testing.T) {
		w.owner.do("updateAlgorithmVersion", vars{"id": v1, "description": "after they left"})
		w.owner.do("updateAlgorithmVersion", vars{"id": part, "description": "after they left"})
		w.owner.do("deleteAlgorithmVersion", vars{"id": w.version(group, "v9", nil)})
		list.quiet(t, w)
		one.still(t)
		tab.still(t)
	})
	t.Run("LIV-03_others_hear_nothing_of_it", func(t *testing.T) { outside.until("the mark", isMark) })
	t.Run("LIV-03_who_comes_back_is_shown_what_is_in_sight", func(t *testing.T) {
		w.grant(id, "MEMBER")
		if item := one.soon(t); item.str("kind") != "SNAPSHOT" || item.str("algorithm.id") != group {
			t.Errorf("%s", item)
		}
		for _, s := range []*watch{list, tab} {
			item := s.soon(t)
			if ids := item.strs("algorithms", "id"); item.str("kind") != "SNAPSHOT" || !slices.Contains(ids, group) || slices.Contains(ids, private) {
				t.Errorf("%s", item)
			}
		}
	})
	t.Run("LIV-03_a_version_that_is_deleted_goes_alone", func(t *testing.T) {
		w.owner.do("deleteAlgorithmVersion", vars{"id": part})
		items := list.until("the end of it", func(v value) bool { return v.str("kind") == "REMOVED" })
		if last := items[len(items)-1]; last.at("removedIds").String() != `["`+part+`"]` || last.str("algorithm.id") != both || last.at("algorithmVersion").v != nil ||
			last.str("change.event") != "algorithm.version_deleted.v1" {
			t.Errorf("%s", last)
		}
	})
	t.Run("LIV-03_the_last_one_in_sight_takes_the_algorithm_with_it", func(t *testing.T) {
		w.owner.do("deleteAlgorithmVersion", vars{"id": global}) // one that nobody else sees is left
		items := list.until("the end of it", func(v value) bool { return v.str("kind") == "REMOVED" })
		if last := items[len(items)-1]; last.at("removedIds").String() != `["`+both+`"]` || last.at("algorithm").v != nil || last.at("algorithmVersion").v != nil {
			t.Errorf("%s", last)
		}
	})
	t.Run("LIV-03_what_was_never_in_sight_gives_nothing", func(t *testing.T) {
		w.owner.do("deleteAlgorithmVersion", vars{"id": hidden})
		w.owner.do("deleteAlgorithmVersion", vars{"id": secret})
		list.quiet(t, w)
		one.still(t)
	})
	t.Run("LIV-03_LIV-02_who_was_away_is_told_when_they_resume", func(t *testing.T) {
		_, version := w.create(w.command(unique("away")))
		w.publish(version, "GROUP")
		again := who.subscribe(watchOne, vars{"id": group})
		cursor := again.next().str("cursor")
		_ = again.conn.CloseNow()
		w.owner.do("updateAlgorithmVersion", vars{"id": v1, "description": "while they were away"})
		leave()
		who.subscribe(watchOne, vars{"id": group, "after": cursor}).loses(t, group)
		if end := who.subscribe(watchOne, vars{"id": group}).end(patience); end.errors.str("0.extensions.code") != "NOT_FOUND" {
			t.Errorf("without a cursor: %+v", end)
		}
		if end := w.outside.subscribe(watchOne, vars{"id": group, "after": cursor}).end(patience); end.errors.str("0.extensions.code") != "NOT_FOUND" {
			t.Errorf("somebody else with that cursor: %+v", end)
		}
	})
}

func isMark(v value) bool { return strings.HasPrefix(v.str("algorithm.name"), "mark") }

// TestManyOutOfSight has more go out of sight than one item names.
func TestManyOutOfSight(t *testing.T) {
	w := newWorld(t)
	who, id := w.person("many", "MEMBER")
	var all []string
	for range 130 {
		algorithm, version := w.create(w.command(unique("many")))
		w.owner.do("publishAlgorithmVersion", vars{"id": version, "visibility": "GROUP"}) // no files: at once
		all = append(all, algorithm)
	}
	w.owner.settled()
	list := who.subscribe(watchAll, vars{"f": vars{"scope": "ALL"}})
	start := list.next().str("cursor")
	w.admin.do("revokeRole", vars{"userId": id, "role": "MEMBER", "projectId": w.project, "reason": "test"})
	var items []value
	t.Run("LIV-03_all_of_it_is_told_in_items_of_bounded_size", func(t *testing.T) {
		items = list.loses(t, all...)
		if len(items) < 2 {
			t.Errorf("%d items", len(items))
		}
		list.quiet(t, w)
	})
	t.Run("LIV-02_LIV-03_every_cursor_of_it_goes_on_with_the_rest", func(t *testing.T) {
		again := who.subscribe(watchAll, vars{"f": vars{"scope": "ALL"}, "after": start})
		for i := range items {
			if item := again.soon(t); item.String() != items[i].String() {
				t.Errorf("item %d: %s, first it was %s", i, item, items[i])
			}
			rest := who.subscribe(watchAll, vars{"f": vars{"scope": "ALL"}, "after": items[i].str("cursor")})
			for j := i + 1; j < len(items); j++ {
				if item := rest.soon(t); item.String() != items[j].String() {
					t.Errorf("after item %d: %s, first it was %s", i, item, items[j])
				}
			}
			if item := rest.soon(t); item.str("kind") == "REMOVED" {
				t.Errorf("after item %d and all others: %s", i, item)
			}
		}
	})
}

// TestRolesTakenAway has people with roles of the tenant watch while they lose them.
func TestRolesTakenAway(t *testing.T) {
	w := newWorld(t)
	who, id := w.person("auditor", "AUDITOR")
	_, version := w.create(w.input(unique("role")))
	w.publish(version, "GROUP")
	algorithm := w.owner.ask(`query($id: ID!) { algorithmVersion(id: $id) { algorithm { id } } }`, vars{"id": version}).str("algorithmVersion.algorithm.id")
	operation := w.owner.operationOf(version).str("id")
	const document = `subscription($f: OperationEventsFilter!) { operationEvents(filter: $f) { cursor kind removedIds change { event } operation { id } operations { id } } }`
	byID := who.subscribe(document, vars{"f": vars{"operationId": operation}})
	bySubject := who.subscribe(document, vars{"f": vars{"subjectId": version}})
	everything := who.subscribe(document, vars{"f": vars{"all": true}})
	theirs := w.peer.subscribe(document, vars{"f": vars{"all": true}})
	tail := who.subscribe(`subscription($p: ID!) { auditTail(filter: {projectId: $p}) { kind } }`, vars{"p": w.project})
	ofThing := w.peer.subscribe(`subscription($id: ID!) { auditTail(filter: {subjectId: $id}) { kind auditEntry { action } } }`, vars{"id": algorithm})
	for _, s := range []*watch{byID, bySubject, everything, theirs, tail, ofThing} {
		s.next()
	}
	revoke := func(user, role string, project vars) {
		w.admin.do("revokeRole", with(vars{"userId": user, "role": role, "reason": "test"}, project))
	}
	revoke(id, "AUDITOR", nil)
	t.Run("LIV-03_operations_of_others_go_out_of_sight", func(t *testing.T) {
		byID.loses(t, operation)
		bySubject.loses(t, operation)
		for found := false; !found; { // and those of all other tests
			item := everything.soon(t)
			if item.str("kind") != "REMOVED" || item.at("operation").v != nil {
				t.Fatalf("%s", item)
			}
			found = strings.Contains(item.at("removedIds").String(), operation)
		}
		theirs.still(t)
	})
	t.Run("LIV-03_a_tail_ends_when_its_lines_may_not_be_read_any_more", func(t *testing.T) {
		if end := tail.end(within); end.errors.str("0.extensions.code") != "FORBIDDEN" {
			t.Errorf("the auditor's: %+v", end)
		}
		revoke(w.peerID, "MEMBER", vars{"projectId": w.project})
		if end := ofThing.end(within); end.errors.str("0.extensions.code") != "NOT_FOUND" {
			t.Errorf("a thing's: %+v", end)
		}
	})
	t.Run("LIV-03_a_tail_of_what_is_gone_ends", func(t *testing.T) {
		w.grant(w.peerID, "MEMBER")
		again := w.peer.subscribe(`subscription($id: ID!) { auditTail(filter: {subjectId: $id}) { kind } }`, vars{"id": algorithm})
		again.next()
		w.owner.do("deleteAlgorithmVersion", vars{"id": version})
		if end := again.end(patience); end.errors.str("0.extensions.code") != "NOT_FOUND" {
			t.Errorf("%+v", end)
		}
	})
	t.Run("LIV-03_who_is_an_auditor_again_is_shown_them", func(t *testing.T) {
		w.grant(id, "AUDITOR")
		if item := byID.soon(t); item.str("kind") != "SNAPSHOT" || item.str("operation.id") != operation {
			t.Errorf("%s", item)
		}
	})
}

// TestSubscribeAtLeast begins behind the position of a receipt.
func TestSubscribeAtLeast(t *testing.T) {
	w := newWorld(t)
	document := `subscription($f: AlgorithmEventsFilter!, $p: Position) { algorithmEvents(filter: $f, atLeast: $p) { kind algorithms { id } } }`
	for range 5 {
		made := w.owner.do("createAlgorithm", w.command(unique("at")))
		live := w.owner.subscribe(document, vars{"f": vars{"projectId": w.project}, "p": made.str("receipt.position")})
		t.Run("LIV-02_the_state_is_not_older_than_asked_for", func(t *testing.T) {
			if first := live.soon(t); first.str("kind") != "SNAPSHOT" || !slices.Contains(first.strs("algorithms", "id"), made.str("algorithm.id")) {
				t.Errorf("%s", first)
			}
		})
	}
	if end := w.owner.subscribe(document, vars{"f": vars{"projectId": w.project}, "p": "nonsense"}).end(patience); end.errors.str("0.extensions.code") != "BAD_REQUEST" {
		t.Errorf("%+v", end)
	}
}
