package tenant

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/internal/golden"
)

func TestGolden(t *testing.T) {
	golden.Check(t, Types, Created{Name: "acme"}, Renamed{From: "acme", To: "acme-2"})
}

func fold(events ...es.Event) (s State) {
	for _, e := range events {
		s = evolve(s, es.Envelope{Event: e})
	}
	return s
}

func TestCreate(t *testing.T) {
	t.Run("TEN-11_a_tenant_is_created_once", func(t *testing.T) {
		events, err := create("acme")(State{})
		if err != nil || len(events) != 1 || events[0] != (Created{Name: "acme"}) {
			t.Fatalf("got %v, %v", events, err)
		}
		if events, err := create("acme")(fold(events...)); err != nil || len(events) != 0 {
			t.Fatalf("again: %v, %v", events, err)
		}
	})
}

func TestUpdate(t *testing.T) {
	acme := fold(Created{Name: "acme"})
	one, two := 1, 2
	name, same, bad := "acme-2", "acme", "a\x00"
	for _, c := range []struct {
		name string
		old  State
		in   Update
		code fault.Code
		want []es.Event
	}{
		{"TEN-11_a_name_is_changed", acme, Update{Name: &name, ExpectedVersion: &one}, "", []es.Event{Renamed{"acme", "acme-2"}}},
		{"TEN-11_the_same_name_changes_nothing", acme, Update{Name: &same}, "", nil},
		{"TEN-11_nothing_asked_changes_nothing", acme, Update{}, "", nil},
		{"GEN-04_another_version_is_refused", acme, Update{Name: &name, ExpectedVersion: &two}, fault.CodeVersionConflict, nil},
		{"GEN-01_control_characters_are_refused", acme, Update{Name: &bad}, fault.CodeInvalidCharacters, nil},
		{"TEN-01_a_missing_tenant_is_missing", State{}, Update{Name: &name}, fault.CodeNotFound, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			decide, _, err := update(c.old, c.in)
			var events []es.Event
			if err == nil {
				events, err = decide(c.old)
			}
			if c.code != "" {
				if !fault.Is(err, c.code) {
					t.Fatalf("got %v, want %s", err, c.code)
				}
				return
			}
			if err != nil || len(events) != len(c.want) || len(events) == 1 && events[0] != c.want[0] {
				t.Fatalf("got %v, %v, want %v", events, err, c.want)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		code           fault.Code
	}{
		{"GEN-01_any_script", "公司-1", "公司-1", ""},
		{"GEN-01_NFD_becomes_NFC", "Cafe\u0301", "Caf\u00e9", ""},
		{"GEN-01_64_characters", strings.Repeat("é", 64), strings.Repeat("é", 64), ""},
		{"GEN-01_65_characters", strings.Repeat("a", 65), "", fault.CodeTooLong},
		{"GEN-01_empty", "", "", fault.CodeRequired},
		{"GEN-01_no_leading_hyphen", "-a", "", fault.CodeInvalidCharacters},
		{"GEN-01_no_NUL", "a\x00b", "", fault.CodeInvalidCharacters},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, f := NameRule.Clean(c.in, "name")
			switch {
			case c.code == "" && (f != nil || got != c.want):
				t.Fatalf("got %q, %v", got, f)
			case c.code != "" && (f == nil || f.Code != c.code || f.Field[0] != "name"):
				t.Fatalf("got %v, want %s", f, c.code)
			}
		})
	}
}

func TestMustOperate(t *testing.T) {
	active := func(roles ...access.Role) access.Grants {
		return access.Grants{Tenant: uuid.New(), User: uuid.New(), Active: true, Roles: roles}
	}
	for _, c := range []struct {
		name string
		g    access.Grants
		code fault.Code
	}{
		{"TEN-11_operators_make_tenants", active(access.Operator), ""},
		{"TEN-11_tenant_admins_do_not", active(access.TenantAdmin), fault.CodeForbidden},
		{"TEN-02_auditor_changes_nothing", active(access.Operator, access.Auditor), fault.CodeForbidden},
		{"TEN-07_suspended_does_nothing", access.Grants{Roles: []access.Role{access.Operator}}, fault.CodeNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mustOperate(c.g)
			if (c.code == "") != (err == nil) || c.code != "" && !fault.Is(err, c.code) {
				t.Fatalf("got %v, want %q", err, c.code)
			}
		})
	}
}
