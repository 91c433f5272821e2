package project

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/internal/golden"
	"tallyard/domain/patch"
)

func TestGolden(t *testing.T) {
	golden.Check(t, Types,
		Created{Name: "vision", Description: "Image models"},
		Updated{Name: &Moved{"vision", "sight"}, Description: &Moved{"", "Image models"}},
		Closed{Name: "sight"},
		Reopened{})
}

func fold(events ...es.Event) (s State) {
	for _, e := range events {
		s = evolve(s, es.Envelope{Event: e})
	}
	return s
}

func TestUpdate(t *testing.T) {
	vision := fold(Created{Name: "vision", Description: "old"})
	one, two := 1, 2
	for _, c := range []struct {
		name string
		old  State
		in   Update
		code fault.Code
		want []es.Event
	}{
		{"TEN-11_what_is_given_changes", vision, Update{Name: patch.To("sight"), ExpectedVersion: &one}, "", []es.Event{Updated{Name: &Moved{"vision", "sight"}}}},
		{"TEN-11_null_clears_the_description", vision, Update{Description: patch.Clear[string]()}, "", []es.Event{Updated{Description: &Moved{"old", ""}}}},
		{"TEN-11_the_same_changes_nothing", vision, Update{Name: patch.To("vision"), Description: patch.To("old")}, "", nil},
		{"TEN-11_the_name_is_not_clearable", vision, Update{Name: patch.Clear[string]()}, fault.CodeNotClearable, nil},
		{"GEN-04_another_version_is_refused", vision, Update{Name: patch.To("sight"), ExpectedVersion: &two}, fault.CodeVersionConflict, nil},
		{"GEN-01_description_over_2000_characters", vision, Update{Description: patch.To(strings.Repeat("é", 2001))}, fault.CodeTooLong, nil},
		{"TEN-01_a_missing_project_is_missing", State{}, Update{Name: patch.To("sight")}, fault.CodeNotFound, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, err := c.in.clean()
			var events []es.Event
			if err == nil {
				events, err = update(in)(c.old)
			}
			if c.code != "" {
				if !fault.Is(err, c.code) {
					t.Fatalf("got %v, want %s", err, c.code)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(events, c.want) {
				t.Fatalf("got %+v, %v, want %+v", events, err, c.want)
			}
		})
	}
	t.Run("GEN-05_all_faults_at_once_with_their_fields", func(t *testing.T) {
		_, err := Create{Name: "", Description: "a\x00"}.clean()
		faults, _ := fault.All(err)
		if len(faults) != 2 || faults[0].Field[0] != "name" || faults[1].Field[0] != "description" {
			t.Fatalf("got %v", err)
		}
	})
}

func TestMustChange(t *testing.T) {
	vision, other := uuid.New(), uuid.New()
	user := func(project uuid.UUID, role access.Role, roles ...access.Role) access.Grants {
		return access.Grants{Tenant: uuid.New(), User: uuid.New(), Active: true, Roles: roles, Projects: map[uuid.UUID]access.Role{project: role}}
	}
	for _, c := range []struct {
		name string
		g    access.Grants
		code fault.Code
	}{
		{"TEN-11_tenant_admin", user(other, access.Member, access.TenantAdmin), ""},
		{"TEN-11_project_admin_is_not_enough", user(vision, access.ProjectAdmin), fault.CodeForbidden},
		{"TEN-11_member_is_not_enough", user(vision, access.Member), fault.CodeForbidden},
		{"TEN-01_who_is_not_in_it_does_not_learn_of_it", user(other, access.ProjectAdmin), fault.CodeNotFound},
		{"TEN-02_auditor_changes_nothing", user(vision, access.Member, access.TenantAdmin, access.Auditor), fault.CodeForbidden},
		{"TEN-07_suspended_does_nothing", access.Grants{Roles: []access.Role{access.TenantAdmin}}, fault.CodeNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mustChange(c.g, vision)
			if (c.code == "") != (err == nil) || c.code != "" && !fault.Is(err, c.code) {
				t.Fatalf("got %v, want %q", err, c.code)
			}
		})
	}
}
