package user

import (
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/fault"
)

func TestGrants(t *testing.T) {
	w := newWorld(t)
	operator := w.user("oscar", access.Operator)
	auditor := w.user("audra", access.Auditor, access.TenantAdmin)
	lead, member, guest := w.user("carol", access.ProjectAdmin), w.user("bob", access.Member), w.user("guest")

	for _, c := range []struct {
		name string
		by   uuid.UUID
		role Grant
		code fault.Code
	}{
		{"TEN-11_tenant_admin_grants_tenant_roles", w.admin, Grant{Role: access.Auditor}, ""},
		{"TEN-11_tenant_admin_grants_project_roles", w.admin, Grant{access.ProjectAdmin, vision}, ""},
		{"TEN-11_project_admin_grants_in_the_project", lead, Grant{access.Member, vision}, ""},
		{"TEN-11_project_admin_grants_nothing_in_the_tenant", lead, Grant{Role: access.TenantAdmin}, fault.CodeForbidden},
		{"TEN-11_member_grants_nothing", member, Grant{access.Member, vision}, fault.CodeForbidden},
		{"TEN-01_outside_the_project_it_is_missing", guest, Grant{access.Member, vision}, fault.CodeNotFound},
		{"TEN-02_only_operators_make_operators", w.admin, Grant{Role: access.Operator}, fault.CodeForbidden},
		{"TEN-02_operator_makes_operators", operator, Grant{Role: access.Operator}, ""},
		{"TEN-02_operator_is_no_tenant_admin", operator, Grant{Role: access.Auditor}, fault.CodeForbidden},
		{"TEN-02_auditor_changes_nothing", auditor, Grant{access.Member, vision}, fault.CodeForbidden},
		{"TEN-01_a_project_of_nobody_is_missing", w.admin, Grant{access.Member, uuid.New()}, fault.CodeNotFound},
		{"TEN-02_a_project_role_needs_a_project", w.admin, Grant{Role: access.Member}, fault.CodeRequired},
		{"TEN-02_a_tenant_role_has_no_project", w.admin, Grant{access.Auditor, vision}, fault.CodeNotAllowed},
		{"TEN-02_an_unknown_role_is_refused", w.admin, Grant{Role: "KING"}, fault.CodeInvalidValue},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := w.user(uuid.NewString())
			_, err := w.GrantRole(t.Context(), w.by(c.by, "grantRole"), id, c.role)
			if c.code == "" {
				if err != nil || !w.state(id).Holds(c.role) {
					t.Fatalf("got %v", err)
				}
				_, err = w.RevokeRole(t.Context(), w.by(c.by, "revokeRole"), id, c.role)
				if err != nil || w.state(id).Holds(c.role) {
					t.Fatalf("revoke: %v", err)
				}
				return
			}
			if !fault.Is(err, c.code) || len(w.state(id).Roles) != 0 {
				t.Fatalf("got %v, want %s", err, c.code)
			}
		})
	}
	t.Run("TEN-11_a_reason_is_needed", func(t *testing.T) {
		cmd := w.by(w.admin, "grantRole")
		cmd.Reason = ""
		_, err := w.GrantRole(t.Context(), cmd, guest, Grant{Role: access.Auditor})
		if faults, _ := fault.All(err); len(faults) != 1 || faults[0].Code != fault.CodeRequired || faults[0].Field[0] != "reason" {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-01_another_tenant_sees_no_user", func(t *testing.T) {
		cmd := w.by(w.admin, "grantRole")
		cmd.Tenant = uuid.New()
		if _, err := w.GrantRole(t.Context(), cmd, guest, Grant{Role: access.Auditor}); !fault.Is(err, fault.CodeNotFound) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-07_suspended_has_no_rights_at_the_next_request", func(t *testing.T) {
		if _, err := w.Suspend(t.Context(), w.by(w.admin, "suspendUser"), lead); err != nil {
			t.Fatal(err)
		}
		if g := w.rights(lead); g.Active || g.In(vision) {
			t.Fatalf("got %+v", g)
		}
		if _, err := w.Reinstate(t.Context(), w.by(w.admin, "reinstateUser"), lead); err != nil {
			t.Fatal(err)
		}
		if g := w.rights(lead); !g.Administers(vision) {
			t.Fatalf("got %+v", g)
		}
	})
}

func TestStateIsShared(t *testing.T) {
	w := newWorld(t)
	id := w.user("bob", access.Member, access.ProjectAdmin)
	before := w.state(id)
	kept := append([]Grant(nil), before.Roles...)
	w.grant(w.system("grantRole"), id, access.Auditor)
	if _, err := w.RevokeRole(t.Context(), w.system("revokeRole"), id, Grant{access.Member, vision}); err != nil {
		t.Fatal(err)
	}
	for i, g := range kept {
		if before.Roles[i] != g {
			t.Fatalf("a state in use changed: %v, was %v", before.Roles, kept)
		}
	}
	t.Run("TEN-02_the_strongest_role_of_a_project_counts", func(t *testing.T) {
		if g := before.Grants(w.tenant, id); g.Projects[vision] != access.ProjectAdmin {
			t.Fatalf("got %v", g.Projects)
		}
	})
}

func TestLastAdmin(t *testing.T) {
	admin := Grant{Role: access.TenantAdmin}
	t.Run("TEN-11_the_last_admin_stays", func(t *testing.T) {
		w := newWorld(t)
		for name, try := range map[string]func() error{
			"revoke": func() error {
				_, err := w.RevokeRole(t.Context(), w.by(w.admin, "revokeRole"), w.admin, admin)
				return err
			},
			"suspend": func() error { _, err := w.Suspend(t.Context(), w.by(w.admin, "suspendUser"), w.admin); return err },
			"auditor": func() error {
				_, err := w.GrantRole(t.Context(), w.by(w.admin, "grantRole"), w.admin, Grant{Role: access.Auditor})
				return err
			},
			"erase": func() error {
				_, err := w.ErasePersonalData(t.Context(), w.by(w.admin, "erasePersonalData"), w.admin)
				return err
			},
		} {
			if err := try(); !fault.Is(err, fault.CodeLastAdmin) || !w.state(w.admin).governs() {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	t.Run("TEN-11_with_another_one_the_first_may_go", func(t *testing.T) {
		w := newWorld(t)
		second := w.user("ann", access.TenantAdmin)
		if _, err := w.RevokeRole(t.Context(), w.by(w.admin, "revokeRole"), w.admin, admin); err != nil {
			t.Fatal(err)
		}
		if _, err := w.RevokeRole(t.Context(), w.by(second, "revokeRole"), second, admin); !fault.Is(err, fault.CodeLastAdmin) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-11_a_suspended_admin_does_not_count", func(t *testing.T) {
		w := newWorld(t)
		second := w.user("ann", access.TenantAdmin)
		if _, err := w.Suspend(t.Context(), w.by(w.admin, "suspendUser"), second); err != nil {
			t.Fatal(err)
		}
		if _, err := w.RevokeRole(t.Context(), w.by(w.admin, "revokeRole"), w.admin, admin); !fault.Is(err, fault.CodeLastAdmin) {
			t.Fatalf("got %v", err)
		}
		if _, err := w.Reinstate(t.Context(), w.by(w.admin, "reinstateUser"), second); err != nil {
			t.Fatal(err)
		}
		if _, err := w.RevokeRole(t.Context(), w.by(w.admin, "revokeRole"), w.admin, admin); err != nil {
			t.Fatal(err)
		}
	})
}
