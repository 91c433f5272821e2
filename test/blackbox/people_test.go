package blackbox_test

import (
	"slices"
	"strings"
	"testing"
)

const seePowers = `query($id: ID!) { user(id: $id) { permissions businessScope roles { role project { id } } } me { permissions businessScope onlyAdmin } }`

// TestPermissions grants and revokes what people may do beside their roles.
func TestPermissions(t *testing.T) {
	w := newWorld(t)
	mine := func() string { return w.owner.ask(`{ me { permissions } }`, nil).at("me.permissions").String() }
	t.Run("TEN-04_off_by_default_and_working_at_the_next_request", func(t *testing.T) {
		if got := mine(); got != "[]" {
			t.Fatalf("%s", got)
		}
		got := w.admin.do("grantPermission", vars{"userId": w.ownerID, "permission": "PUBLISH_MODELS", "reason": "publishes for the team"})
		if got.at("user.permissions").String() != `["PUBLISH_MODELS"]` || mine() != `["PUBLISH_MODELS"]` {
			t.Errorf("%s, %s", got, mine())
		}
		w.admin.do("grantPermission", vars{"userId": w.ownerID, "permission": "SUBMIT_URGENT_JOBS", "reason": "test"})
		w.admin.do("revokePermission", vars{"userId": w.ownerID, "permission": "PUBLISH_MODELS", "reason": "moves on"})
		if got := mine(); got != `["SUBMIT_URGENT_JOBS"]` {
			t.Errorf("%s", got)
		}
	})
	t.Run("TEN-04_in_the_lists_of_who_may_read_them", func(t *testing.T) {
		w.admin.settled()
		for who, c := range map[string]client{`["SUBMIT_URGENT_JOBS"]`: w.admin, `[]`: w.peer} {
			list := c.ask(`query($p: ID!) { users(filter: {projectId: $p}) { nodes { id permissions businessScope } } }`, vars{"p": w.project}).list("users.nodes")
			i := slices.IndexFunc(list, func(v value) bool { return v.str("id") == w.ownerID })
			if i < 0 || list[i].at("permissions").String() != who {
				t.Errorf("%s: %v", who, list)
			}
		}
	})
	t.Run("TEN-04_tenant_admins_alone_with_a_reason", func(t *testing.T) {
		w.owner.refuse("grantPermission", vars{"userId": w.ownerID, "permission": "PUBLISH_MODELS", "reason": "me"}, "FORBIDDEN")
		w.admin.refuse("grantPermission", vars{"userId": w.ownerID, "permission": "PUBLISH_MODELS", "reason": ""}, "REQUIRED")
		as(t, "mallory").refuse("grantPermission", vars{"userId": w.ownerID, "permission": "PUBLISH_MODELS", "reason": "mine"}, "NOT_FOUND")
	})
	t.Run("AUD-03_what_they_had_at_a_moment", func(t *testing.T) {
		var at string
		for _, n := range w.admin.ask(`query($id: ID!) { user(id: $id) { `+entries+` } }`, vars{"id": w.ownerID}).list("user.history.nodes") {
			if n.str("event") == "user.permission_granted.v1" && at == "" {
				at = n.str("position")
				if n.str("changes.0.to") != "PUBLISH_MODELS" || n.str("reason") != "publishes for the team" {
					t.Errorf("%s", n)
				}
			}
		}
		got := w.admin.ask(`query($id: ID!, $at: Position) { user(id: $id, asOfPosition: $at) { permissions } }`, vars{"id": w.ownerID, "at": at})
		if got.at("user.permissions").String() != `["PUBLISH_MODELS"]` {
			t.Errorf("%s", got)
		}
	})
	t.Run("TEN-02_an_admin_among_others_is_not_the_only_one", func(t *testing.T) {
		if got := w.admin.ask(seePowers, vars{"id": w.ownerID}); got.str("me.onlyAdmin") == "" {
			t.Errorf("%s", got)
		}
		if got := as(t, "mallory").ask(`{ me { onlyAdmin } }`, nil); got.str("me.onlyAdmin") != "true" {
			t.Errorf("%s", got)
		}
		if got := w.owner.ask(`{ me { onlyAdmin } }`, nil); got.str("me.onlyAdmin") != "false" {
			t.Errorf("%s", got)
		}
	})
}

// TestUserQuota bounds what runs for somebody.
func TestUserQuota(t *testing.T) {
	w := newWorld(t)
	t.Run("TEN-09_a_quota_is_set_read_and_cleared", func(t *testing.T) {
		w.admin.do("setUserQuota", vars{"userId": w.ownerID, "cpuMillis": "4000", "accelerators": []vars{{"type": "A100", "count": "2"}}, "reason": "shared machines"})
		got := w.admin.do("setUserQuota", vars{"userId": w.ownerID, "cpuMillis": nil, "memoryBytes": "1073741824", "reason": "no bound on CPUs"})
		const want = `{"accelerators":[{"count":"2","type":"A100"}],"cpuMillis":null,"memoryBytes":"1073741824"}`
		w.admin.settled()
		seen := w.owner.ask(`query($id: ID!) { user(id: $id) { quota { cpuMillis memoryBytes accelerators { type count } } } }`, vars{"id": w.ownerID})
		if got.at("user.quota").String() != want || seen.at("user.quota").String() != want {
			t.Errorf("%s, read %s", got, seen)
		}
	})
	t.Run("TEN-09_by_tenant_admins_with_a_reason", func(t *testing.T) {
		w.admin.refuse("setUserQuota", vars{"userId": w.ownerID, "cpuMillis": "-1", "memoryBytes": "-1", "reason": "test"}, "OUT_OF_RANGE", "OUT_OF_RANGE")
		w.admin.refuse("setUserQuota", vars{"userId": w.ownerID, "cpuMillis": "1", "reason": ""}, "REQUIRED")
		w.owner.refuse("setUserQuota", vars{"userId": w.ownerID, "cpuMillis": nil, "reason": "mine"}, "FORBIDDEN")
	})
}

// TestBusinessScope takes training from somebody who has things of training.
func TestBusinessScope(t *testing.T) {
	w := newWorld(t)
	name := unique("scope")
	algorithm, version := w.create(w.command(name))
	set := func(to string) {
		w.admin.do("setBusinessScope", vars{"userId": w.ownerID, "businessScope": to, "reason": "test"})
	}
	live := w.owner.subscribe(watchAll, vars{"f": vars{"projectId": w.project}})
	if first := live.next(); len(first.list("algorithms")) != 1 {
		t.Fatalf("%s", first)
	}
	set("INFERENCE")
	t.Run("TEN-08_lists_are_empty", func(t *testing.T) {
		if got := w.owner.ask(seeAlgorithms, nil); got.str("algorithms.totalCount") != "0" || len(got.list("algorithms.nodes")) != 0 {
			t.Errorf("%s", got)
		}
		if got := w.owner.ask(`{ algorithmVersions { totalCount nodes { id } } }`, nil); got.str("algorithmVersions.totalCount") != "0" {
			t.Errorf("%s", got)
		}
		if !w.admin.lists(nil, name) {
			t.Error("others' lists are cut as well")
		}
	})
	t.Run("TEN-08_LIV-03_and_so_is_what_is_watched", func(t *testing.T) { live.loses(t, algorithm) })
	t.Run("TEN-08_commands_are_refused", func(t *testing.T) {
		w.owner.refuse("createAlgorithm", w.command(unique("scope")), "SCOPE_NOT_ENABLED")
		w.owner.refuse("publishAlgorithmVersion", vars{"id": version, "visibility": "GROUP"}, "SCOPE_NOT_ENABLED")
		w.owner.refuse("favoriteAlgorithm", vars{"id": algorithm}, "SCOPE_NOT_ENABLED")
		if got := w.owner.ask(`{ me { businessScope } }`, nil); got.str("me.businessScope") != "INFERENCE" {
			t.Errorf("%s", got)
		}
	})
	t.Run("TEN-08_TEN-01_which_tells_nothing_of_what_is_not_seen", func(t *testing.T) {
		other := newWorld(t)
		_, hidden := other.create(other.command(unique("hidden")))
		w.owner.refuse("publishAlgorithmVersion", vars{"id": hidden, "visibility": "GROUP"}, "NOT_FOUND")
	})
	t.Run("TEN-08_with_training_all_is_back", func(t *testing.T) {
		set("TRAINING")
		if item := live.soon(t); item.str("kind") != "SNAPSHOT" || !slices.Contains(item.strs("algorithms", "id"), algorithm) {
			t.Errorf("%s", item)
		}
		w.owner.do("publishAlgorithmVersion", vars{"id": version, "visibility": "GROUP"})
		if !w.owner.lists(nil, name) {
			t.Error("the list is empty")
		}
	})
	w.admin.refuse("setBusinessScope", vars{"userId": w.ownerID, "businessScope": "TRAINING", "reason": ""}, "REQUIRED")
}

// TestMembership brings people into a project and out of it.
func TestMembership(t *testing.T) {
	w := newWorld(t)
	lead, leadID := w.person("lead", "PROJECT_ADMIN")
	roles := func() []string {
		return w.admin.ask(`query($p: ID!) { project(id: $p) { members(first: 100) { nodes { role user { id } } } } }`, vars{"p": w.project}).strs("project.members.nodes", "role")
	}
	in := func(id, role string) vars {
		v := vars{"userId": id, "projectId": w.project, "reason": "test"}
		if role != "" {
			v["role"] = role
		}
		return v
	}
	t.Run("TEN-11_a_project_admin_brings_people_in", func(t *testing.T) {
		got := lead.do("addProjectMember", in(w.outsideID, ""))
		if got.str("project.id") != w.project || got.str("user.id") != w.outsideID {
			t.Errorf("%s", got)
		}
		if got := w.outside.ask(`{ me { projects { id } } }`, nil); got.str("me.projects.0.id") != w.project {
			t.Errorf("%s", got)
		}
		lead.refuse("addProjectMember", in(w.outsideID, "PROJECT_ADMIN"), "INVALID_STATE")
	})
	t.Run("TEN-11_changes_what_they_are", func(t *testing.T) {
		lead.do("changeProjectRole", in(w.outsideID, "PROJECT_ADMIN"))
		w.outside.do("changeProjectRole", in(leadID, "MEMBER")) // who was made one may do so
		lead.refuse("changeProjectRole", in(w.peerID, "PROJECT_ADMIN"), "FORBIDDEN")
		w.admin.settled()
		if got := roles(); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"MEMBER", "MEMBER", "MEMBER", "PROJECT_ADMIN"}) {
			t.Errorf("%v", got)
		}
		w.admin.refuse("changeProjectRole", in(w.outsideID, "TENANT_ADMIN"), "INVALID_VALUE")
	})
	t.Run("TEN-11_and_takes_them_out", func(t *testing.T) {
		w.outside.do("removeProjectMember", in(w.peerID, ""))
		if got := w.peer.ask(`query($p: ID!) { project(id: $p) { id } }`, vars{"p": w.project}); got.at("project").v != nil {
			t.Errorf("%s", got)
		}
		w.admin.refuse("changeProjectRole", in(w.peerID, "MEMBER"), "INVALID_STATE")
		w.admin.refuse("removeProjectMember", vars{"userId": w.peerID, "projectId": w.project, "reason": ""}, "REQUIRED")
		w.peer.refuse("addProjectMember", in(w.peerID, ""), "NOT_FOUND")
	})
}

// TestTenantsAndProjects makes and changes them.
func TestTenantsAndProjects(t *testing.T) {
	w := newWorld(t)
	oscar := as(t, "oscar")
	t.Run("TEN-11_an_operator_makes_a_tenant_that_has_an_admin", func(t *testing.T) {
		name := unique("tenant")
		admin := vars{"loginName": "chief", "displayName": "Chief"}
		got := oscar.do("createTenant", vars{"name": name, "admin": admin})
		id := got.str("tenant.id")
		if got.str("tenant.name") != name || got.str("tenant.version") != "1" {
			t.Fatalf("%s", got)
		}
		oscar.refuse("createTenant", vars{"name": name, "admin": admin}, "NAME_TAKEN")
		oscar.refuse("createTenant", vars{"name": "a b", "admin": vars{"loginName": "", "displayName": "x"}}, "INVALID_CHARACTERS", "REQUIRED")
		w.admin.refuse("createTenant", vars{"name": unique("tenant"), "admin": admin}, "FORBIDDEN")
		other := unique("tenant")
		oscar.do("updateTenant", vars{"id": id, "name": other, "expectedVersion": 1})
		oscar.refuse("updateTenant", vars{"id": id, "name": name, "expectedVersion": 1}, "VERSION_CONFLICT")
		oscar.refuse("updateTenant", vars{"id": id, "name": nil}, "NOT_CLEARABLE")
		if seen := oscar.ask(`query($id: ID!) { tenant(id: $id) { name version } }`, vars{"id": id}); seen.str("tenant.name") != other || seen.str("tenant.version") != "2" {
			t.Errorf("%s", seen)
		}
		if seen := w.admin.ask(`query($id: ID!) { tenant(id: $id) { name } }`, vars{"id": id}); seen.at("tenant").v != nil {
			t.Errorf("a tenant admin of another one sees %s", seen)
		}
	})
	t.Run("TEN-11_a_tenant_admin_changes_a_project", func(t *testing.T) {
		name := unique("renamed")
		got := w.admin.do("updateProject", vars{"id": w.project, "name": name, "description": "new", "expectedVersion": 1})
		if got.str("project.name") != name || got.str("project.version") != "2" {
			t.Fatalf("%s", got)
		}
		if got := w.admin.do("updateProject", vars{"id": w.project, "description": nil}); got.str("project.description") != "" || got.str("project.version") != "3" {
			t.Errorf("%s", got)
		}
		w.admin.refuse("updateProject", vars{"id": w.project, "name": nil}, "NOT_CLEARABLE")
		w.admin.refuse("updateProject", vars{"id": w.project, "name": name, "expectedVersion": 1}, "VERSION_CONFLICT")
		w.owner.refuse("updateProject", vars{"id": w.project, "name": "mine"}, "FORBIDDEN")
		if seen := w.peer.ask(`query($id: ID!) { project(id: $id) { name version } }`, vars{"id": w.project}); seen.str("project.name") != name || seen.str("project.version") != "3" {
			t.Errorf("%s", seen)
		}
	})
}

// TestErasePersonalData erases somebody who did things.
func TestErasePersonalData(t *testing.T) {
	w := newWorld(t)
	login := w.peer.ask(`{ me { user { loginName } } }`, nil).str("me.user.loginName")
	live := w.peer.subscribe(watchAll, vars{"f": vars{"projectId": w.project}})
	live.next()
	w.admin.refuse("erasePersonalData", vars{"userId": w.peerID, "confirm": false, "reason": "asked"}, "REQUIRED")
	w.owner.refuse("erasePersonalData", vars{"userId": w.peerID, "confirm": true, "reason": "asked"}, "FORBIDDEN")
	got := w.admin.do("erasePersonalData", vars{"userId": w.peerID, "confirm": true, "reason": "asked for it"})
	t.Run("AUD-06_nobody_can_tell_who_it_was", func(t *testing.T) {
		if got.str("user.state") != "ERASED" || got.str("user.loginName") != "erased person" || got.at("user.email").v != nil {
			t.Errorf("%s", got)
		}
		w.admin.settled()
		everything := w.admin.ask(`query($id: ID!) { user(id: $id) { loginName displayName email `+entries+` }
			auditEntries(filter: {subjectId: $id}, first: 100) { nodes { changes { field from to } } } users(first: 100) { nodes { loginName } } }`, vars{"id": w.peerID})
		if strings.Contains(everything.String(), `"`+login+`"`) {
			t.Errorf("%s is named in %s", login, everything)
		}
	})
	t.Run("AUD-06_TEN-07_they_are_out", func(t *testing.T) {
		if end := live.end(within); end.code != 4403 {
			t.Errorf("%+v", end)
		}
		if r := w.peer.send(`{ me { user { id } } }`, nil); r.code() != "UNAUTHENTICATED" {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("AUD-06_the_login_name_is_free", func(t *testing.T) {
		if id := w.admin.do("createUser", vars{"loginName": login, "displayName": "Another"}).str("user.id"); id == w.peerID {
			t.Error("the erased person is back")
		}
	})
}
