package blackbox_test

import (
	"slices"
	"testing"
)

// TestLeaving has somebody leave who owns things that others see.
func TestLeaving(t *testing.T) {
	w := newWorld(t)
	who, id := w.person("leaves", "MEMBER")
	login := who.ask(`{ me { user { loginName } } }`, nil).str("me.user.loginName")
	owned := map[string]string{} // ids by names
	for _, visibility := range []string{"PRIVATE", "GROUP", ""} {
		name := unique("left")
		made := who.do("createAlgorithm", w.command(name))
		owned[name] = made.str("algorithm.id")
		if visibility != "" {
			who.do("publishAlgorithmVersion", vars{"id": made.str("algorithmVersion.id"), "visibility": visibility})
			who.reaches(made.str("algorithmVersion.id"), "PUBLISHED")
		}
	}
	token := client{t, w.p, who.do("createApiToken", vars{"expiresAt": soon()}).str("token")}
	remove := vars{"userId": id, "reason": "leaves the company"}
	give := vars{"fromUserId": id, "toUserId": w.peerID, "reason": "takes over", "idempotencyKey": unique("key")}
	live := w.peer.subscribe(watchAll, vars{"f": vars{"projectId": w.project}})
	live.next()
	theirs := who.subscribe(watchAll, vars{"f": vars{"projectId": w.project}})
	theirs.next()
	t.Run("TEN-05_who_owns_something_stays_and_is_told_what", func(t *testing.T) {
		got := w.admin.refuse("removeUser", remove, "IN_USE", "IN_USE", "IN_USE")
		for _, e := range got.list("userErrors") {
			details := map[string]string{}
			for _, d := range e.list("details") {
				details[d.str("name")] = d.str("value")
			}
			if details["kind"] != "algorithm" || owned[details["name"]] == "" || details["id"] != owned[details["name"]] {
				t.Errorf("%s", e)
			}
		}
		if r := who.send(`{ me { user { state } } }`, nil); r.str("me.user.state") != "ACTIVE" {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("TEN-05_one_command_moves_all", func(t *testing.T) {
		got := w.admin.do("transferOwnership", give)
		if got.str("moved") != "3" || got.str("toUser.id") != w.peerID {
			t.Fatalf("%s", got)
		}
		if again := w.admin.do("transferOwnership", give); again.str("moved") != "3" || again.str("receipt.replayed") != "true" {
			t.Errorf("GEN-03 %s", again)
		}
		for _, id := range owned {
			got := w.peer.ask(`query($id: ID!) { algorithm(id: $id) { owner { id } viewerCanCreateVersion } }`, vars{"id": id})
			if got.str("algorithm.owner.id") != w.peerID || got.str("algorithm.viewerCanCreateVersion") != "true" {
				t.Errorf("%s", got)
			}
		}
		// Of the three the old owner sees the one that the project sees.
		seen := 0
		for name := range owned {
			if who.lists(nil, name) {
				seen++
			}
		}
		if seen != 1 {
			t.Errorf("the old owner sees %d", seen)
		}
	})
	t.Run("TEN-05_LIV-03_who_watches_is_told", func(t *testing.T) {
		var came []string
		for len(came) < 2 {
			if item := live.soon(t); item.str("kind") == "CREATED" {
				came = append(came, item.str("algorithm.id"))
			}
		}
		for _, id := range came {
			if !slices.ContainsFunc(slices.Collect(values(owned)), func(o string) bool { return o == id }) {
				t.Errorf("%s", id)
			}
		}
		gone := 0
		for gone < 2 {
			if item := theirs.soon(t); item.str("kind") == "REMOVED" {
				gone += len(item.list("removedIds"))
			}
		}
	})
	t.Run("TEN-05_then_they_are_removed_with_their_tokens", func(t *testing.T) {
		got := w.admin.do("removeUser", remove)
		if got.str("user.state") != "REMOVED" || got.str("user.loginName") != login || len(got.list("user.roles")) != 0 {
			t.Errorf("%s", got)
		}
		for _, c := range []client{who, token} {
			if r := c.send(`{ me { user { id } } }`, nil); r.code() != "UNAUTHENTICATED" {
				t.Errorf("%s", r.body)
			}
		}
		if end := theirs.end(within); end.code != 4403 {
			t.Errorf("TEN-07 %+v", end)
		}
		w.admin.settled()
		if got := w.admin.ask(`query($p: ID!) { project(id: $p) { members(first: 100) { nodes { user { id } } } } users(filter: {state: REMOVED}, first: 100) { nodes { id } } }`, vars{"p": w.project}); slices.Contains(got.strs("project.members.nodes", "user.id"), id) || !slices.Contains(got.strs("users.nodes", "id"), id) {
			t.Errorf("%s", got)
		}
		w.admin.refuse("reinstateUser", vars{"userId": id, "reason": "test"}, "INVALID_STATE")
	})
	t.Run("TEN-05_W25_history_keeps_the_name", func(t *testing.T) {
		for _, algorithm := range owned {
			list := w.admin.ask(`query($id: ID!) { algorithm(id: $id) { history(first: 100) { nodes { event reason actor { user { id loginName } } changes { field from to } } } } }`, vars{"id": algorithm}).list("algorithm.history.nodes")
			last := list[len(list)-1]
			if list[0].str("actor.user.loginName") != login || last.str("event") != "algorithm.ownership_transferred.v1" || last.str("reason") != "takes over" {
				t.Errorf("%v", list)
			}
		}
	})
	t.Run("TEN-05_nothing_goes_to_who_can_do_nothing", func(t *testing.T) {
		_, auditor := w.person("audit", "AUDITOR")
		for to, code := range map[string]string{id: "INVALID_STATE", auditor: "INVALID_STATE", w.peerID: "INVALID_VALUE", "none": "NOT_FOUND"} {
			w.admin.refuse("transferOwnership", vars{"fromUserId": w.peerID, "toUserId": to, "reason": "test"}, code)
		}
		w.admin.refuse("transferOwnership", vars{"fromUserId": w.peerID, "toUserId": w.ownerID, "reason": ""}, "REQUIRED")
		as(t, "mallory").refuse("transferOwnership", vars{"fromUserId": w.peerID, "toUserId": w.ownerID, "reason": "mine"}, "NOT_FOUND", "NOT_FOUND")
	})
}

func values(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

// TestCloseProject closes a project once it is empty.
func TestCloseProject(t *testing.T) {
	w := newWorld(t)
	name := unique("close")
	algorithm, version := w.create(w.command(name))
	in := vars{"id": w.project, "reason": "over"}
	t.Run("TEN-11_what_lives_in_it_is_the_answer", func(t *testing.T) {
		got := w.admin.refuse("closeProject", in, "IN_USE")
		if details := got.list("userErrors.0.details"); !slices.ContainsFunc(details, func(d value) bool { return d.str("name") == "id" && d.str("value") == algorithm }) {
			t.Errorf("%s", got)
		}
		w.owner.refuse("closeProject", in, "FORBIDDEN")
		w.outside.refuse("closeProject", in, "NOT_FOUND")
	})
	t.Run("TEN-11_an_empty_one_is_closed", func(t *testing.T) {
		w.owner.do("deleteAlgorithmVersion", vars{"id": version})
		if got := w.admin.do("closeProject", in); got.str("project.state") != "CLOSED" {
			t.Fatalf("%s", got)
		}
		w.admin.settled()
		if got := w.owner.ask(`query($id: ID!) { project(id: $id) { state version history(first: 100) { nodes { event reason } } } }`, vars{"id": w.project}); got.str("project.state") != "CLOSED" || got.str("project.history.nodes.1.reason") != "over" {
			t.Errorf("%s", got)
		}
		w.owner.refuse("createAlgorithm", w.command(unique("late")), "INVALID_STATE")
		w.admin.refuse("updateProject", vars{"id": w.project, "description": "x"}, "INVALID_STATE")
		w.admin.refuse("addProjectMember", vars{"projectId": w.project, "userId": w.outsideID, "reason": "test"}, "NOT_FOUND")
	})
}
