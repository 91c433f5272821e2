package user

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

func TestCountOfAdmins(t *testing.T) {
	ann, ben := uuid.New(), uuid.New()
	fold := func(events ...es.Event) (s adminsState) {
		for _, e := range events {
			s = admins.Evolve(s, es.Envelope{Event: e})
		}
		return s
	}
	both := fold(AdminCounted{ann, 2}, AdminCounted{ben, 2})
	for _, c := range []struct {
		name   string
		state  adminsState
		decide es.Decide[adminsState]
		code   fault.Code
		want   es.Event
	}{
		{"TEN-11_who_becomes_one_is_counted", nil, count(ann, 2), "", AdminCounted{ann, 2}},
		{"TEN-11_once", both, count(ann, 9), "", nil},
		{"TEN-11_who_stops_is_discounted", both, discount(ann, 3), "", AdminDiscounted{ann, 3}},
		{"TEN-11_the_last_one_is_not", fold(AdminCounted{ann, 2}), discount(ann, 3), fault.CodeLastAdmin, nil},
		{"TEN-11_not_even_when_not_counted", nil, discount(ann, 3), fault.CodeLastAdmin, nil},
		{"TEN-11_who_is_not_counted_yet_is_noted", fold(AdminCounted{ben, 2}), discount(ann, 2), "", AdminDiscounted{ann, 2}},
		{"TEN-11_so_that_the_late_count_is_dropped", fold(AdminCounted{ben, 2}, AdminDiscounted{ann, 2}), count(ann, 2), "", nil},
		{"TEN-11_and_a_new_one_is_not", fold(AdminCounted{ben, 2}, AdminDiscounted{ann, 2}), count(ann, 4), "", AdminCounted{ann, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, err := c.decide(c.state)
			switch {
			case c.code != "":
				if !fault.Is(err, c.code) {
					t.Fatalf("got %v, want %s", err, c.code)
				}
			case err != nil || (c.want == nil) != (len(events) == 0) || c.want != nil && events[0] != c.want:
				t.Fatalf("got %v, %v, want %v", events, err, c.want)
			}
		})
	}
}

// meanwhile does something once, right after somebody was discounted.
type meanwhile struct {
	es.Log
	do func()
}

func (m *meanwhile) Append(ctx context.Context, stream string, expected es.Expected, events ...es.Raw) (es.Written, error) {
	w, err := m.Log.Append(ctx, stream, expected, events...)
	if do := m.do; do != nil && strings.HasPrefix(stream, AdminsCategory+"-") {
		m.do = nil
		do()
	}
	return w, err
}

// countedGovern checks that whoever is counted is an admin.
func (w *world) countedGovern(t *testing.T) {
	t.Helper()
	for id, c := range loadAdmins(t, w) {
		if c.In && !w.state(id).governs() {
			t.Fatal("somebody is counted who is no admin")
		}
	}
}

func TestChangedInBetween(t *testing.T) {
	admin := Grant{Role: access.TenantAdmin}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("TEN-11_revoked_and_granted_anew_between_count_and_change", func(t *testing.T) {
		w := newWorld(t)
		ann := w.user("ann", access.TenantAdmin)
		another := &Handler{Runtime: fresh(w.Runtime), Projects: w.Projects, Keys: w.Keys, Random: w.Random}
		w.Runtime.Log = &meanwhile{Log: w.Runtime.Log, do: func() {
			_, err := another.RevokeRole(t.Context(), w.system("revokeRole"), ann, admin)
			must(t, err)
			_, err = another.GrantRole(t.Context(), w.system("grantRole"), ann, admin)
			must(t, err)
		}}
		_, err := w.RevokeRole(t.Context(), w.system("revokeRole"), ann, admin)
		must(t, err)
		if w.state(ann).governs() {
			t.Fatal("still an admin")
		}
		w.countedGovern(t)
	})
	t.Run("TEN-11_a_command_that_died_is_repeated_on_a_user_who_changed", func(t *testing.T) {
		w := newWorld(t)
		ann := w.user("ann", access.TenantAdmin)
		cmd := w.by(w.admin, "revokeRole")
		cmd.Key = "once"
		log := w.Runtime.Log
		w.Runtime.Log = &dying{Log: log, left: 2, after: true} // accepted, discounted
		if _, err := w.RevokeRole(t.Context(), cmd, ann, admin); !errors.Is(err, errCrash) {
			t.Fatalf("no crash: %v", err)
		}
		w.Runtime.Log = log
		_, err := w.Suspend(t.Context(), w.system("suspendUser"), ann)
		must(t, err)
		_, err = w.Reinstate(t.Context(), w.system("reinstateUser"), ann)
		must(t, err)
		if !loadAdmins(t, w)[ann].In {
			t.Fatal("not counted again")
		}
		_, err = w.RevokeRole(t.Context(), cmd, ann, admin)
		must(t, err)
		if w.state(ann).governs() {
			t.Fatal("still an admin")
		}
		w.countedGovern(t)
	})
}
