package blackbox_test

import "testing"

const seeSettings = `query($id: ID, $p: Boolean) { settings(id: $id, platform: $p) { id scope version viewerCanUpdate project { id }
	modelPublishingEnabled { value setIn } globalAlgorithmApprovalRequired { value setIn } approvalExpiryDays { value setIn }
	history(first: 100) { nodes { position at reason actor { user { id } } changes { field from to } } } } }`

// TestSettings reads and changes what holds for a tenant and its projects.
func TestSettings(t *testing.T) {
	w := newWorld(t)
	lead, _ := w.person("lead", "PROJECT_ADMIN")
	auditor, _ := w.person("audit", "AUDITOR")
	see := func(c client, v vars) value { return c.ask(seeSettings, v).at("settings") }
	t.Run("TEN-09_defaults_until_somebody_sets_them", func(t *testing.T) {
		got := see(lead, vars{"id": w.project})
		if got.str("scope") != "PROJECT" || got.str("project.id") != w.project || got.str("version") != "0" || got.str("viewerCanUpdate") != "false" ||
			got.str("approvalExpiryDays.value") != "30" || got.at("approvalExpiryDays.setIn").v != nil || got.str("modelPublishingEnabled.value") != "false" {
			t.Errorf("%s", got)
		}
	})
	t.Run("TEN-09_a_project_says_otherwise_than_its_tenant", func(t *testing.T) {
		got := w.admin.do("updateSettings", vars{"id": w.project, "globalAlgorithmApprovalRequired": true, "expectedVersion": 0, "reason": "new people"})
		if got.str("settings.globalAlgorithmApprovalRequired.value") != "true" || got.str("settings.globalAlgorithmApprovalRequired.setIn") != "PROJECT" || got.str("settings.version") != "1" {
			t.Errorf("%s", got)
		}
		w.admin.refuse("updateSettings", vars{"id": w.project, "globalAlgorithmApprovalRequired": false, "expectedVersion": 0, "reason": "test"}, "VERSION_CONFLICT")
		if got := see(w.admin, nil); got.str("scope") != "TENANT" || got.str("globalAlgorithmApprovalRequired.value") != "false" || got.str("viewerCanUpdate") != "true" {
			t.Errorf("the tenant: %s", got)
		}
		w.admin.do("updateSettings", vars{"id": w.project, "globalAlgorithmApprovalRequired": nil, "reason": "they know by now"})
		if got := see(auditor, vars{"id": w.project}); got.str("globalAlgorithmApprovalRequired.value") != "false" || got.at("globalAlgorithmApprovalRequired.setIn").v != nil || got.str("version") != "2" {
			t.Errorf("unset: %s", got)
		}
	})
	t.Run("AUD-03_what_was_changed_by_whom_and_why", func(t *testing.T) {
		list := see(lead, vars{"id": w.project}).list("history.nodes")
		if len(list) != 2 || list[0].str("reason") != "new people" || list[0].str("changes.0.field") != "globalAlgorithmApprovalRequired" ||
			list[0].str("changes.0.to") != "true" || list[1].str("changes.0.from") != "true" || list[1].at("changes.0.to").v != nil || list[0].str("actor.user.id") == "" {
			t.Fatalf("%v", list)
		}
		past := func(v vars) value {
			return lead.ask(`query($id: ID, $at: Time, $p: Position) { settings(id: $id, asOf: $at, asOfPosition: $p) { globalAlgorithmApprovalRequired { value } } }`, with(v, vars{"id": w.project})).at("settings.globalAlgorithmApprovalRequired.value")
		}
		for _, c := range []struct {
			at   vars
			want string
		}{
			{vars{"at": "2001-01-01T00:00:00Z"}, "false"},
			{vars{"p": list[0].str("position")}, "true"},
			{vars{"at": list[0].str("at")}, "true"},
			{vars{"p": list[1].str("position")}, "false"},
		} {
			if got := past(c.at); got.String() != c.want {
				t.Errorf("%v: %s, want %s", c.at, got, c.want)
			}
		}
	})
	t.Run("GEN-05_all_that_is_wrong_at_once", func(t *testing.T) {
		w.admin.refuse("updateSettings", vars{"approvalExpiryDays": 0, "clientAddressRetentionDays": 4000, "reason": "test"}, "OUT_OF_RANGE", "OUT_OF_RANGE")
		w.admin.refuse("updateSettings", vars{"id": w.project, "modelPublishingEnabled": true, "reason": "test"}, "NOT_ALLOWED")
		w.admin.refuse("updateSettings", vars{"approvalExpiryDays": 10, "reason": ""}, "REQUIRED")
		w.admin.refuse("updateSettings", vars{"id": w.project, "platform": true, "reason": "test"}, "NOT_ALLOWED")
	})
	t.Run("GEN-03_the_same_key_changes_once", func(t *testing.T) {
		in := vars{"id": w.project, "modelApprovalRequired": true, "reason": "test", "idempotencyKey": unique("key")}
		first := w.admin.do("updateSettings", in)
		w.admin.do("updateSettings", vars{"id": w.project, "modelApprovalRequired": false, "reason": "test"})
		again := w.admin.do("updateSettings", in)
		if again.str("receipt.replayed") != "true" || again.at("settings").String() != first.at("settings").String() {
			t.Errorf("%s, first it was %s", again, first)
		}
		if got := see(w.admin, vars{"id": w.project}); got.str("version") != "4" {
			t.Errorf("%s", got)
		}
	})
	t.Run("TEN-09_the_platforms_are_the_operators", func(t *testing.T) {
		oscar := as(t, "oscar")
		w.admin.refuse("updateSettings", vars{"platform": true, "approvalExpiryDays": 40, "reason": "test"}, "FORBIDDEN")
		if got := see(w.admin, vars{"p": true}); got.v != nil {
			t.Errorf("a tenant admin reads %s", got)
		}
		got := oscar.do("updateSettings", vars{"platform": true, "approvalExpiryDays": 40, "reason": "test"})
		if got.str("settings.scope") != "PLATFORM" || got.str("settings.approvalExpiryDays.value") != "40" {
			t.Errorf("%s", got)
		}
		for _, c := range []client{w.admin, as(t, "mallory")} {
			if got := see(c, nil); got.str("approvalExpiryDays.value") != "40" || got.str("approvalExpiryDays.setIn") != "PLATFORM" {
				t.Errorf("%s sees %s", c.token, got)
			}
		}
		oscar.do("updateSettings", vars{"platform": true, "approvalExpiryDays": nil, "reason": "as it was"})
	})
	t.Run("TEN-01_nothing_of_another_tenants", func(t *testing.T) {
		mallory, id := as(t, "mallory"), see(w.admin, vars{"id": w.project}).str("id")
		tenant := w.admin.ask(`{ me { tenant { id } } }`, nil).str("me.tenant.id")
		for _, id := range []string{id, w.project, tenant} {
			if got := see(mallory, vars{"id": id}); got.v != nil {
				t.Errorf("%s", got)
			}
			mallory.refuse("updateSettings", vars{"id": id, "modelApprovalRequired": true, "reason": "test"}, "NOT_FOUND")
		}
		if got := mallory.ask(`query($id: ID!) { node(id: $id) { id } }`, vars{"id": id}); got.at("node").v != nil {
			t.Errorf("%s", got)
		}
		if got := lead.ask(`query($id: ID!) { node(id: $id) { ... on Settings { scope } } }`, vars{"id": id}); got.str("node.scope") != "PROJECT" {
			t.Errorf("a project admin: %s", got)
		}
	})
}
