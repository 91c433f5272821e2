package blackbox_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

const entries = `history(first: 100) { nodes { position event action reason at requestId actor { kind part user { id } } changes { field from to } } }`

// TestPastOfPeople asks what people, projects, tenants and spaces were and what
// happened to them.
func TestPastOfPeople(t *testing.T) {
	w := newWorld(t)
	w.admin.do("grantRole", vars{"userId": w.peerID, "role": "PROJECT_ADMIN", "projectId": w.project, "reason": "leads"})
	w.admin.do("revokeRole", vars{"userId": w.ownerID, "role": "MEMBER", "projectId": w.project, "reason": "moves on"})
	w.admin.do("suspendUser", vars{"userId": w.outsideID, "reason": "on leave"})
	w.admin.settled()
	adminID := w.admin.ask(`{ me { user { id } } }`, nil).str("me.user.id")
	past := func(c client, field, id, at, what string) value {
		return c.ask(`query($id: ID!, $at: Position) { `+field+`(id: $id, asOfPosition: $at) { `+what+` } }`, vars{"id": id, "at": at}).at(field)
	}
	history := func(c client, field, id string) []value {
		return c.ask(`query($id: ID!) { `+field+`(id: $id) { `+entries+` } }`, vars{"id": id}).list(field + ".history.nodes")
	}
	names := func(list []value) (out []string) {
		for _, n := range list {
			out = append(out, n.str("event"))
		}
		return out
	}
	t.Run("AUD-03_a_person_entry_by_entry", func(t *testing.T) {
		list := history(w.admin, "user", w.peerID)
		if got, want := names(list), []string{"person.described.v1", "user.created.v1", "user.role_granted.v1", "user.role_granted.v1"}; !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		last := list[3]
		if last.str("reason") != "leads" || last.str("action") != "grantRole" || last.str("actor.user.id") != adminID || last.str("actor.kind") != "USER" ||
			last.str("at") == "" || last.str("requestId") == "" || last.str("changes.0.to") != "PROJECT_ADMIN" {
			t.Errorf("%s", last)
		}
		for i, want := range []string{"", "[]", `["MEMBER"]`, `["MEMBER","PROJECT_ADMIN"]`} {
			got := past(w.admin, "user", w.peerID, list[i].str("position"), "loginName state roles { role project { id } }")
			roles := value{[]any{}}
			for _, r := range got.list("roles") {
				roles.v = append(roles.v.([]any), r.str("role"))
			}
			if want == "" && got.v != nil || want != "" && (roles.String() != want || got.str("state") != "ACTIVE" || got.str("loginName") == "") {
				t.Errorf("as of entry %d: %s, want %s", i, got, want)
			}
		}
	})
	t.Run("AUD-03_a_state_by_time", func(t *testing.T) {
		list := history(w.peer, "user", w.outsideID)
		if got, want := names(list), []string{"person.described.v1", "user.created.v1", "user.suspended.v1"}; !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		for at, want := range map[string]string{list[1].str("at"): "ACTIVE", list[2].str("at"): "SUSPENDED", "2001-01-01T00:00:00Z": ""} {
			if got := w.peer.ask(`query($id: ID!, $at: Time) { user(id: $id, asOf: $at) { state } }`, vars{"id": w.outsideID, "at": at}); got.str("user.state") != want {
				t.Errorf("as of %s: %s, want %s", at, got, want)
			}
		}
		if r := w.peer.send(`query($id: ID!, $p: Position) { user(id: $id, asOf: "2001-01-01T00:00:00Z", asOfPosition: $p) { id } }`, vars{"id": w.outsideID, "p": list[0].str("position")}); r.code() != "BAD_REQUEST" {
			t.Errorf("both: %s", r.body)
		}
	})
	t.Run("AUD-03_a_project_and_its_members", func(t *testing.T) {
		list := history(w.peer, "project", w.project)
		if len(list) != 1 || list[0].str("event") != "project.created.v1" || list[0].str("actor.user.id") != adminID || list[0].str("changes.0.field") != "name" {
			t.Fatalf("%v", list)
		}
		granted := history(w.admin, "user", w.peerID)
		members := func(at string) string {
			got := past(w.peer, "project", w.project, at, "name members(first: 10) { totalCount nodes { role user { id } } }")
			if got.str("name") == "" || got.str("members.totalCount") != strconv.Itoa(len(got.list("members.nodes"))) {
				t.Errorf("%s", got)
			}
			var out []string
			for _, m := range got.list("members.nodes") {
				who := map[string]string{w.ownerID: "owner", w.peerID: "peer"}[m.str("user.id")]
				out = append(out, who+" "+m.str("role"))
			}
			slices.Sort(out)
			return strings.Join(out, ", ")
		}
		if got := members(list[0].str("position")); got != "" {
			t.Errorf("when it was made: %s", got)
		}
		if got := members(granted[2].str("position")); got != "owner MEMBER, peer MEMBER" {
			t.Errorf("with the second member: %s", got)
		}
		if got := members(granted[3].str("position")); got != "owner MEMBER, peer PROJECT_ADMIN" {
			t.Errorf("with an admin: %s", got)
		}
		now := w.peer.ask(`query($id: ID!) { project(id: $id) { members(first: 1) { totalCount nodes { role user { id } } } } }`, vars{"id": w.project})
		if now.str("project.members.totalCount") != "1" || now.str("project.members.nodes.0.user.id") != w.peerID {
			t.Errorf("now: %s", now)
		}
	})
	t.Run("AUD-03_a_space", func(t *testing.T) {
		id := w.owner.ask(`{ me { home { id } } }`, nil).str("me.home.id")
		list := history(w.owner, "storageSpace", id)
		if len(list) < 3 || list[0].str("event") != "space.created.v1" || list[2].str("event") != "space.file_uploaded.v1" || list[2].str("changes.0.to") != "resnet/train.py" {
			t.Fatalf("%v", list)
		}
		if got := past(w.owner, "storageSpace", id, list[0].str("position"), "kind zone owner { id }"); got.str("kind") != "PERSONAL" || got.str("owner.id") != w.ownerID {
			t.Errorf("%s", got)
		}
		made := history(w.admin, "user", w.ownerID)[1].str("position")
		if got := past(w.owner, "storageSpace", id, made, "id"); got.v != nil {
			t.Errorf("before it was: %s", got)
		}
	})
	t.Run("AUD-03_a_tenant", func(t *testing.T) {
		id := w.peer.ask(`{ me { tenant { id } } }`, nil).str("me.tenant.id")
		list := history(w.peer, "tenant", id)
		if len(list) != 1 || list[0].str("event") != "tenant.created.v1" || list[0].str("changes.0.to") != "acme" || list[0].str("actor.kind") != "SYSTEM" {
			t.Fatalf("%v", list)
		}
		if got := past(w.peer, "tenant", id, list[0].str("position"), "name"); got.str("name") != "acme" {
			t.Errorf("%s", got)
		}
		if got := w.peer.ask(`query($id: ID!) { tenant(id: $id, asOf: "2001-01-01T00:00:00Z") { name } }`, vars{"id": id}).at("tenant"); got.v != nil {
			t.Errorf("before it was: %s", got)
		}
	})
	t.Run("AUD-06_names_stand_in_the_persons_own_entries_alone", func(t *testing.T) {
		login := w.peer.ask(`{ me { user { loginName } } }`, nil).str("me.user.loginName")
		for i, n := range history(w.admin, "user", w.peerID) {
			if own := n.str("event") == "person.described.v1"; own != strings.Contains(n.at("changes").String(), login) {
				t.Errorf("entry %d: %s", i, n)
			}
		}
	})
	t.Run("TEN-01_a_cursor_and_a_position_of_one_tenant_are_of_no_use_in_another", func(t *testing.T) {
		mallory := as(t, "mallory")
		globex := mallory.ask(`{ me { tenant { id history(first: 1) { nodes { position } pageInfo { endCursor } } } } }`, nil).at("me.tenant")
		oscar := as(t, "oscar")
		q := `query($id: ID!, $c: String, $p: Position) { now: tenant(id: $id) { history(first: 1, after: $c) { nodes { event } } } then: tenant(id: $id, asOfPosition: $p) { name } }`
		if r := oscar.send(q, vars{"id": globex.str("id"), "c": globex.str("history.pageInfo.endCursor")}); r.code() != "CURSOR_INVALID" {
			t.Errorf("%s", r.body)
		}
		if r := oscar.send(q, vars{"id": globex.str("id"), "p": globex.str("history.nodes.0.position")}); r.code() == "" {
			t.Errorf("%s", r.body)
		}
	})
}
