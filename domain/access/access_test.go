package access

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/fault"
)

func TestRules(t *testing.T) {
	tenant, project, other, owner, me := uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New()
	grants := func(active bool, in uuid.UUID, roles ...Role) Grants {
		g := Grants{Tenant: tenant, User: me, Active: active, Roles: roles, Projects: map[uuid.UUID]Role{}}
		if in != uuid.Nil {
			g.Projects[in] = Member
		}
		return g
	}
	for name, c := range map[string]struct {
		g     Grants
		sees  [3]bool // PRIVATE, GROUP, GLOBAL of somebody else's
		edits string  // the code that an edit of a GLOBAL one is refused with
		works string  // and work in the project
	}{
		"ALG-05_a_member_of_the_group":    {grants(true, project), [3]bool{false, true, true}, "FORBIDDEN", ""},
		"ALG-05_a_member_of_another":      {grants(true, other), [3]bool{false, false, true}, "FORBIDDEN", "NOT_FOUND"},
		"TEN-02_a_tenant_admin":           {grants(true, uuid.Nil, TenantAdmin), [3]bool{true, true, true}, "", ""},
		"TEN-02_an_auditor":               {grants(true, project, Auditor), [3]bool{true, true, true}, "FORBIDDEN", "FORBIDDEN"},
		"TEN-02_auditor_and_admin":        {grants(true, project, Auditor, TenantAdmin), [3]bool{true, true, true}, "FORBIDDEN", "FORBIDDEN"},
		"TEN-02_an_operator_sees_no_more": {grants(true, uuid.Nil, Operator), [3]bool{false, false, true}, "FORBIDDEN", "NOT_FOUND"},
		"TEN-07_suspended":                {grants(false, project, TenantAdmin), [3]bool{}, "NOT_FOUND", "NOT_FOUND"},
		"TEN-01_admin_of_another_tenant":  {Grants{Tenant: other, User: me, Active: true, Roles: []Role{TenantAdmin}}, [3]bool{}, "NOT_FOUND", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for i, v := range []Visibility{Private, Group, Global} {
				if got := c.g.Sees(Thing{tenant, project, owner, v}); got != c.sees[i] {
					t.Errorf("sees %s: %v", v, got)
				}
			}
			if got := code(MustChange(c.g, Thing{tenant, project, owner, Global})); got != c.edits {
				t.Errorf("edits: %q, want %q", got, c.edits)
			}
			if c.g.Tenant == tenant {
				if got := code(MustWorkIn(c.g, project)); got != c.works {
					t.Errorf("works: %q, want %q", got, c.works)
				}
			}
		})
	}
	mine := Thing{tenant, project, me, Private}
	if g := grants(true, uuid.Nil); !g.Sees(mine) || !g.Changes(mine) {
		t.Error("the owner is kept from their own")
	}
	if g := grants(false, uuid.Nil); g.Sees(mine) || g.Changes(mine) || g.ProjectIDs() != nil || g.In(project) || g.Administers(project) {
		t.Error("TEN-07 who is suspended keeps rights")
	}
}

func code(err error) string {
	faults, ok := fault.All(err)
	if !ok {
		return ""
	}
	return string(faults[0].Code)
}

func TestTurned(t *testing.T) {
	a, b := uuid.UUID{1}, uuid.UUID{2}
	rights := func(active bool, in []uuid.UUID, roles ...Role) Grants {
		g := Grants{Active: active, Roles: roles, Projects: map[uuid.UUID]Role{}}
		for _, id := range in {
			g.Projects[id] = Member
		}
		return g
	}
	for name, c := range map[string]struct {
		was, is  Grants
		all      bool
		platform bool
		projects []uuid.UUID
	}{
		"LIV-03_nothing":                        {rights(true, []uuid.UUID{a}), rights(true, []uuid.UUID{a}), false, false, nil},
		"LIV-03_a_project_left":                 {rights(true, []uuid.UUID{a, b}), rights(true, []uuid.UUID{b}), false, false, []uuid.UUID{a}},
		"LIV-03_one_left_and_one_joined":        {rights(true, []uuid.UUID{b}), rights(true, []uuid.UUID{a}), false, false, []uuid.UUID{a, b}},
		"LIV-03_an_admin_no_more":               {rights(true, nil, TenantAdmin), rights(true, nil), true, false, nil},
		"LIV-03_an_admin_who_audits":            {rights(true, nil, TenantAdmin), rights(true, nil, TenantAdmin, Auditor), false, false, nil},
		"LIV-03_an_operator_reads_the_platform": {rights(true, nil), rights(true, nil, Operator), false, true, nil},
		"LIV-03_who_is_suspended_sees_not":      {rights(true, []uuid.UUID{a}, Auditor), rights(false, []uuid.UUID{a}, Auditor), true, false, []uuid.UUID{a}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.was.Turned(c.is)
			if got.All != c.all || got.Platform != c.platform || !slices.Equal(got.Projects, c.projects) || got.None() != (!c.all && !c.platform && c.projects == nil) {
				t.Errorf("%+v", got)
			}
		})
	}
	inferring := rights(true, []uuid.UUID{a})
	inferring.Scope = Inference
	if got := inferring.Turned(rights(true, []uuid.UUID{a})); !got.Training || got.None() {
		t.Errorf("LIV-03 TEN-08 training comes into their scope: %+v", got)
	}
	other := rights(true, []uuid.UUID{a})
	other.Projects[a] = ProjectAdmin
	if got := rights(true, []uuid.UUID{a}).Turned(other); !got.None() {
		t.Errorf("another role in the same project: %+v", got)
	}
}
