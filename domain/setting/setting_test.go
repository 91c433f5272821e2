package setting

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/internal/golden"
	"tallyard/domain/patch"
)

func to(v Value) *Value { return &v }

func TestGolden(t *testing.T) {
	golden.Check(t, Types, Changed{Scope: Tenant, Settings: []Change{
		{Key: ModelPublishingEnabled, To: to(Flag(true))},
		{Key: ModelApprovalRequired, From: to(Flag(true)), To: to(Flag(false))},
		{Key: ApprovalExpiryDays, From: to(Number(14))},
	}})
}

func fold(events ...es.Event) (s State) {
	for _, e := range events {
		s = evolve(s, es.Envelope{Event: e})
	}
	return s
}

func TestUpdate(t *testing.T) {
	none, one := 0, 1
	had := fold(Changed{Scope: Tenant, Settings: []Change{{Key: ApprovalExpiryDays, To: to(Number(14))}}})
	ask := func(k Key, f patch.Field[Value]) map[Key]patch.Field[Value] {
		return map[Key]patch.Field[Value]{k: f, ModelApprovalRequired: patch.Keep[Value]()}
	}
	for _, c := range []struct {
		name string
		old  State
		in   Scope
		ask  Update
		want []Change
		code fault.Code
	}{
		{
			"TEN-09_a_setting_is_set",
			State{},
			Tenant,
			Update{Settings: ask(ModelPublishingEnabled, patch.To(Flag(true))), ExpectedVersion: &none},
			[]Change{{Key: ModelPublishingEnabled, To: to(Flag(true))}},
			"",
		},
		{
			"TEN-09_the_event_holds_what_was_before", had, Tenant,
			Update{Settings: ask(ApprovalExpiryDays, patch.To(Number(7))), ExpectedVersion: &one},
			[]Change{{Key: ApprovalExpiryDays, From: to(Number(14)), To: to(Number(7))}},
			"",
		},
		{"TEN-09_null_unsets", had, Tenant, Update{Settings: ask(ApprovalExpiryDays, patch.Clear[Value]())}, []Change{{Key: ApprovalExpiryDays, From: to(Number(14))}}, ""},
		{"TEN-09_the_same_is_no_event", had, Tenant, Update{Settings: ask(ApprovalExpiryDays, patch.To(Number(14)))}, nil, ""},
		{"TEN-09_unsetting_what_is_not_set_is_no_event", had, Tenant, Update{Settings: ask(ModelPublishingEnabled, patch.Clear[Value]())}, nil, ""},
		{
			"TEN-09_a_default_that_is_set_is_an_event",
			State{},
			Tenant,
			Update{Settings: ask(ModelPublishingEnabled, patch.To(Flag(false)))},
			[]Change{{Key: ModelPublishingEnabled, To: to(Flag(false))}},
			"",
		},
		{"GEN-04_another_version_is_refused", had, Tenant, Update{Settings: ask(ApprovalExpiryDays, patch.To(Number(7))), ExpectedVersion: &none}, nil, fault.CodeVersionConflict},
		{"TEN-09_the_switch_is_a_tenants", State{}, Platform, Update{Settings: ask(ModelPublishingEnabled, patch.To(Flag(true)))}, nil, fault.CodeNotAllowed},
		{"TEN-09_a_project_keeps_no_addresses_of_its_own", State{}, Project, Update{Settings: ask(ClientAddressRetentionDays, patch.To(Number(9)))}, nil, fault.CodeNotAllowed},
		{"TEN-09_below_the_lowest", State{}, Tenant, Update{Settings: ask(ApprovalExpiryDays, patch.To(Number(0)))}, nil, fault.CodeOutOfRange},
		{"TEN-09_above_the_highest", State{}, Tenant, Update{Settings: ask(ClientAddressRetentionDays, patch.To(Number(3651)))}, nil, fault.CodeOutOfRange},
		{"TEN-09_a_number_is_no_flag", State{}, Tenant, Update{Settings: ask(GlobalAlgorithmApprovalRequired, patch.To(Number(1)))}, nil, fault.CodeInvalidValue},
		{"TEN-09_there_is_no_such_setting", State{}, Tenant, Update{Settings: ask("colour", patch.To(Flag(true)))}, nil, fault.CodeInvalidValue},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.ask.clean(c.in)
			var events []es.Event
			if err == nil {
				events, err = update(c.in, c.ask)(c.old)
			}
			if (c.code != "") != (err != nil) || c.code != "" && !fault.Is(err, c.code) {
				t.Fatalf("got %v, want %q", err, c.code)
			}
			var got []Change
			if len(events) > 0 {
				got = events[0].(Changed).Settings
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("GEN-05_all_faults_at_once_with_their_fields", func(t *testing.T) {
		err := Update{Settings: map[Key]patch.Field[Value]{ApprovalExpiryDays: patch.To(Number(-1)), ClientAddressRetentionDays: patch.To(Number(0))}}.clean(Tenant)
		faults, _ := fault.All(err)
		if len(faults) != 2 || faults[0].Field[0] != "approvalExpiryDays" || faults[1].Field[0] != "clientAddressRetentionDays" {
			t.Fatalf("got %v", err)
		}
	})
}

func TestEvolveLeavesTheOldState(t *testing.T) {
	old := fold(Changed{Settings: []Change{{Key: ApprovalExpiryDays, To: to(Number(14))}}})
	evolve(old, es.Envelope{Event: Changed{Settings: []Change{{Key: ApprovalExpiryDays, From: to(Number(14))}, {Key: ModelApprovalRequired, To: to(Flag(true))}}}})
	if len(old.Values) != 1 || old.Values[ApprovalExpiryDays] != Number(14) || old.Version != 1 {
		t.Fatalf("it is %+v now", old)
	}
}

func TestEffective(t *testing.T) {
	set := func(v Value) State { return State{Values: map[Key]Value{ApprovalExpiryDays: v}} }
	for _, c := range []struct {
		name   string
		levels Levels
		want   Effective
	}{
		{"TEN-09_nowhere", Levels{{Platform, State{}}, {Tenant, State{}}}, Effective{Number(30), ""}},
		{"TEN-09_the_platforms", Levels{{Platform, set(Number(20))}, {Tenant, State{}}}, Effective{Number(20), Platform}},
		{"TEN-09_the_nearer_one_counts", Levels{{Platform, set(Number(20))}, {Tenant, set(Number(10))}, {Project, State{}}}, Effective{Number(10), Tenant}},
		{"TEN-09_also_when_it_is_the_lesser", Levels{{Platform, set(Number(20))}, {Tenant, set(Number(30))}}, Effective{Number(30), Tenant}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.levels.Effective(ApprovalExpiryDays); got != c.want {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
		})
	}
	for _, k := range Keys() {
		d, _ := defined(k)
		if bad := d.check(Fallback(k), d.scopes[0]); bad != nil {
			t.Errorf("the default of %s: %v", k, bad)
		}
		if !slices.Contains(d.scopes, Tenant) {
			t.Errorf("%s can't be set in a tenant", k)
		}
	}
}

func TestRights(t *testing.T) {
	acme, vision := uuid.New(), uuid.New()
	who := func(tenant, in uuid.UUID, role access.Role, roles ...access.Role) access.Grants {
		return access.Grants{Tenant: tenant, User: uuid.New(), Active: true, Roles: roles, Projects: map[uuid.UUID]access.Role{in: role}}
	}
	targets := []Target{OfPlatform(), OfTenant(acme), OfProject(vision)}
	for _, c := range []struct {
		name    string
		g       access.Grants
		reads   [3]bool
		changes [3]fault.Code // of the platform, the tenant, the project
	}{
		{"TEN-09_operator", who(acme, uuid.Nil, "", access.Operator), [3]bool{true, false, false}, [3]fault.Code{"", fault.CodeForbidden, fault.CodeNotFound}},
		{"TEN-09_tenant_admin", who(acme, uuid.Nil, "", access.TenantAdmin), [3]bool{false, true, true}, [3]fault.Code{fault.CodeForbidden, "", ""}},
		{"TEN-02_auditor", who(acme, uuid.Nil, "", access.Auditor, access.TenantAdmin, access.Operator), [3]bool{true, true, true}, [3]fault.Code{fault.CodeForbidden, fault.CodeForbidden, fault.CodeForbidden}},
		{"TEN-09_project_admin", who(acme, vision, access.ProjectAdmin), [3]bool{false, false, true}, [3]fault.Code{fault.CodeForbidden, fault.CodeForbidden, fault.CodeForbidden}},
		{"TEN-09_member", who(acme, vision, access.Member), [3]bool{}, [3]fault.Code{fault.CodeForbidden, fault.CodeForbidden, fault.CodeForbidden}},
		{"TEN-01_in_no_project", who(acme, uuid.Nil, ""), [3]bool{}, [3]fault.Code{fault.CodeForbidden, fault.CodeForbidden, fault.CodeNotFound}},
		{"TEN-01_admin_of_another_tenant", who(uuid.New(), uuid.Nil, "", access.TenantAdmin), [3]bool{false, false, true}, [3]fault.Code{fault.CodeForbidden, fault.CodeNotFound, ""}},
		{"TEN-07_suspended", access.Grants{Tenant: acme, Roles: []access.Role{access.TenantAdmin, access.Operator}}, [3]bool{}, [3]fault.Code{fault.CodeNotFound, fault.CodeNotFound, fault.CodeNotFound}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, target := range targets {
				if got := MayRead(c.g, target); got != c.reads[i] {
					t.Errorf("reads those of the %s: %v", target.Scope, got)
				}
				err := mustChange(c.g, target)
				if (c.changes[i] == "") != (err == nil) || err != nil && !fault.Is(err, c.changes[i]) {
					t.Errorf("changes those of the %s: %v, want %q", target.Scope, err, c.changes[i])
				}
			}
		})
	}
}
