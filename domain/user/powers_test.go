package user

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

func TestPermissions(t *testing.T) {
	w := newWorld(t)
	id := w.user("alice", access.Member)
	may := func(want ...access.Permission) {
		t.Helper()
		var got []access.Permission
		for _, p := range []access.Permission{access.PublishModels, access.SubmitUrgentJobs} {
			if w.rights(id).May(p) {
				got = append(got, p)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("may %v, want %v", got, want)
		}
	}
	may()
	for _, step := range []struct {
		name string
		do   func(by uuid.UUID) error
		by   uuid.UUID
		code fault.Code
		want []access.Permission
	}{
		{"TEN-04_granted", w.granting(id, access.PublishModels), w.admin, "", []access.Permission{access.PublishModels}},
		{"TEN-04_granted_twice_is_granted", w.granting(id, access.PublishModels), w.admin, "", []access.Permission{access.PublishModels}},
		{"TEN-04_by_tenant_admins_alone", w.granting(id, access.SubmitUrgentJobs), w.user("carol", access.ProjectAdmin), fault.CodeForbidden, []access.Permission{access.PublishModels}},
		{"TEN-02_not_by_auditors", w.granting(id, access.SubmitUrgentJobs), w.user("audra", access.Auditor, access.TenantAdmin), fault.CodeForbidden, []access.Permission{access.PublishModels}},
		{"TEN-04_there_is_no_such_one", w.granting(id, "FLY"), w.admin, fault.CodeInvalidValue, []access.Permission{access.PublishModels}},
		{"TEN-01_of_nobody", w.granting(uuid.New(), access.PublishModels), w.admin, fault.CodeNotFound, []access.Permission{access.PublishModels}},
		{"TEN-04_revoked", w.revoking(id, access.PublishModels), w.admin, "", nil},
		{"TEN-04_revoked_twice_is_revoked", w.revoking(id, access.PublishModels), w.admin, "", nil},
	} {
		t.Run(step.name, func(t *testing.T) {
			err := step.do(step.by)
			if (step.code == "") != (err == nil) || err != nil && !fault.Is(err, step.code) {
				t.Fatalf("got %v, want %q", err, step.code)
			}
			may(step.want...)
		})
	}
	t.Run("TEN-02_who_becomes_an_auditor_can_use_none", func(t *testing.T) {
		if err := w.granting(id, access.PublishModels)(w.admin); err != nil {
			t.Fatal(err)
		}
		w.grant(w.system("grantRole"), id, access.Auditor)
		may()
		if err := access.MustHave(w.rights(id), access.PublishModels); !fault.Is(err, fault.CodeForbidden) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-04_a_reason_is_needed", func(t *testing.T) {
		cmd := w.by(w.admin, "grantPermission")
		cmd.Reason = ""
		if _, err := w.GrantPermission(t.Context(), cmd, id, access.SubmitUrgentJobs); !fault.Is(err, fault.CodeRequired) {
			t.Fatalf("got %v", err)
		}
	})
}

func (w *world) granting(id uuid.UUID, p access.Permission) func(uuid.UUID) error {
	return func(by uuid.UUID) error {
		_, err := w.GrantPermission(w.t.Context(), w.by(by, "grantPermission"), id, p)
		return err
	}
}

func (w *world) revoking(id uuid.UUID, p access.Permission) func(uuid.UUID) error {
	return func(by uuid.UUID) error {
		_, err := w.RevokePermission(w.t.Context(), w.by(by, "revokePermission"), id, p)
		return err
	}
}

func TestBusinessScope(t *testing.T) {
	w := newWorld(t)
	id := w.user("alice", access.Member)
	for _, step := range []struct {
		name         string
		to           access.BusinessScope
		code         fault.Code
		train, infer bool
		want         int // how many changes the user has then
	}{
		{"TEN-08_both_is_the_default", access.TrainingAndInference, "", true, true, 2},
		{"TEN-08_inference_alone", access.Inference, "", false, true, 3},
		{"TEN-08_training_alone", access.Training, "", true, false, 4},
		{"TEN-08_there_is_no_such_one", "PLAY", fault.CodeInvalidValue, true, false, 4},
		{"TEN-08_both_again", access.TrainingAndInference, "", true, true, 5},
	} {
		t.Run(step.name, func(t *testing.T) {
			_, err := w.SetBusinessScope(t.Context(), w.by(w.admin, "setBusinessScope"), id, step.to)
			if (step.code == "") != (err == nil) || err != nil && !fault.Is(err, step.code) {
				t.Fatalf("got %v, want %q", err, step.code)
			}
			g := w.rights(id)
			if g.Trains() != step.train || g.Infers() != step.infer || (access.MustTrain(g) == nil) != step.train {
				t.Errorf("trains %v, infers %v", g.Trains(), g.Infers())
			}
			if w.state(id).Version != step.want {
				t.Errorf("%d changes, want %d", w.state(id).Version, step.want)
			}
		})
	}
}

func TestMembers(t *testing.T) {
	w := newWorld(t)
	lead := w.user("carol", access.ProjectAdmin)
	member, admin := Grant{access.Member, vision}, Grant{access.ProjectAdmin, vision}
	add := func(id uuid.UUID, g Grant) error {
		_, err := w.AddMember(t.Context(), w.by(lead, "addProjectMember"), id, g)
		return err
	}
	change := func(id uuid.UUID, g Grant) error {
		_, err := w.ChangeMember(t.Context(), w.by(lead, "changeProjectRole"), id, g)
		return err
	}
	remove := func(id uuid.UUID, _ Grant) error {
		_, err := w.RemoveMember(t.Context(), w.by(lead, "removeProjectMember"), id, vision)
		return err
	}
	for _, c := range []struct {
		name string
		had  []access.Role
		do   func(uuid.UUID, Grant) error
		to   Grant
		code fault.Code
		want []Grant
	}{
		{"TEN-11_somebody_comes", nil, add, member, "", []Grant{member}},
		{"TEN-11_somebody_comes_as_an_admin", nil, add, admin, "", []Grant{admin}},
		{"TEN-11_who_is_there_stays", []access.Role{access.Member}, add, member, "", []Grant{member}},
		{"TEN-11_who_is_there_by_another_role_is_told", []access.Role{access.Member}, add, admin, fault.CodeInvalidState, []Grant{member}},
		{"TEN-11_a_role_of_the_tenant_is_no_membership", nil, add, Grant{access.TenantAdmin, vision}, fault.CodeInvalidValue, nil},
		{"TEN-11_a_member_becomes_an_admin", []access.Role{access.Member}, change, admin, "", []Grant{admin}},
		{"TEN-11_of_two_roles_one_is_left", []access.Role{access.Member, access.ProjectAdmin}, change, member, "", []Grant{member}},
		{"TEN-11_who_is_not_there_has_no_role_to_change", nil, change, admin, fault.CodeInvalidState, nil},
		{"TEN-11_who_leaves_keeps_the_roles_of_the_tenant", []access.Role{access.Member, access.ProjectAdmin, access.Auditor}, remove, member, "", []Grant{{Role: access.Auditor}}},
		{"TEN-11_who_is_not_there_leaves_nothing", nil, remove, member, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := w.user(uuid.NewString(), c.had...)
			err := c.do(id, c.to)
			if (c.code == "") != (err == nil) || err != nil && !fault.Is(err, c.code) {
				t.Fatalf("got %v, want %q", err, c.code)
			}
			if got := w.state(id).Roles; !slices.Equal(got, c.want) {
				t.Fatalf("holds %v, want %v", got, c.want)
			}
		})
	}
	t.Run("TEN-11_a_change_of_roles_is_one_append", func(t *testing.T) {
		id := w.user("two", access.Member)
		if err := change(id, admin); err != nil {
			t.Fatal(err)
		}
		var commands []uuid.UUID
		for env, err := range es.Events(t.Context(), w.Runtime, Aggregate.Stream(w.tenant, id), 2) {
			if err != nil {
				t.Fatal(err)
			}
			commands = append(commands, env.Meta.Command)
		}
		if len(commands) != 2 || commands[0] != commands[1] {
			t.Fatalf("%v", commands)
		}
	})
	t.Run("TEN-01_outside_the_project_it_is_missing", func(t *testing.T) {
		guest, id := w.user("guest"), w.user("victim", access.Member)
		if _, err := w.RemoveMember(t.Context(), w.by(guest, "removeProjectMember"), id, vision); !fault.Is(err, fault.CodeNotFound) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestOnlyAdmin(t *testing.T) {
	w := newWorld(t)
	only := func(id uuid.UUID, want bool) {
		t.Helper()
		if got, err := w.OnlyAdmin(t.Context(), w.tenant, id); err != nil || got != want {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
	}
	second := w.user("second")
	only(w.admin, true)
	only(second, false)
	w.grant(w.system("grantRole"), second, access.TenantAdmin)
	only(w.admin, false)
	only(second, false)
	if _, err := w.Suspend(t.Context(), w.by(w.admin, "suspendUser"), second); err != nil {
		t.Fatal(err)
	}
	only(w.admin, true)
}
