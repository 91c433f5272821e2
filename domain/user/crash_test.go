package user

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
)

func loadAdmins(t *testing.T, w *world) adminsState {
	t.Helper()
	l, err := es.Load(t.Context(), w.Runtime, admins, w.tenant, w.tenant)
	if err != nil {
		t.Fatal(err)
	}
	return l.State
}

var errCrash = errors.New("the program died")

// dying lets a number of appends through and fails from then on, before or
// after the write that it dies at.
type dying struct {
	es.Log
	left  int
	after bool
}

func (d *dying) Append(ctx context.Context, stream string, expected es.Expected, events ...es.Raw) (es.Written, error) {
	d.left--
	switch {
	case d.left > 0:
		return d.Log.Append(ctx, stream, expected, events...)
	case d.left == 0 && d.after:
		if w, err := d.Log.Append(ctx, stream, expected, events...); err != nil {
			return w, err
		}
	}
	return es.Written{}, errCrash
}

// TestCrash lets each command die at every append and repeats it with the same
// key: the end is the same as without a crash.
func TestCrash(t *testing.T) {
	type command func(context.Context, *world, uuid.UUID) error
	store := storetest.Open(t)
	keyed := func(w *world, action string) es.Command {
		cmd := w.by(w.admin, action)
		cmd.Key = "once"
		return cmd
	}
	for name, c := range map[string]struct {
		do   command
		want func(*world, uuid.UUID) error
	}{
		"TEN-11_grant": {
			func(ctx context.Context, w *world, id uuid.UUID) error {
				_, err := w.GrantRole(ctx, keyed(w, "grantRole"), id, Grant{Role: access.TenantAdmin})
				return err
			},
			func(w *world, id uuid.UUID) error { return expect(w, id, Active, true) },
		},
		"TEN-11_revoke": {
			func(ctx context.Context, w *world, id uuid.UUID) error {
				_, err := w.RevokeRole(ctx, keyed(w, "revokeRole"), id, Grant{Role: access.TenantAdmin})
				return err
			},
			func(w *world, id uuid.UUID) error { return expect(w, id, Active, false) },
		},
		"TEN-07_suspend": {
			func(ctx context.Context, w *world, id uuid.UUID) error {
				_, err := w.Suspend(ctx, keyed(w, "suspendUser"), id)
				return err
			},
			func(w *world, id uuid.UUID) error { return expect(w, id, SuspendedState, false) },
		},
		"AUD-06_erase": {
			func(ctx context.Context, w *world, id uuid.UUID) error {
				_, err := w.ErasePersonalData(ctx, keyed(w, "erasePersonalData"), id)
				return err
			},
			func(w *world, id uuid.UUID) error { return expect(w, id, Erased, false) },
		},
	} {
		for n := 1; n <= 8; n++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/append_%d_after_%v", name, n, after), func(t *testing.T) {
					w := newWorldOn(t, store)
					w.clock.step = time.Second // nobody waits for the command that died
					var roles []access.Role
					if name != "TEN-11_grant" {
						roles = append(roles, access.TenantAdmin)
					}
					id := w.user("ann", roles...)
					log := w.Runtime.Log
					w.Runtime.Log = &dying{Log: log, left: n, after: after}
					err := c.do(t.Context(), w, id)
					w.Runtime.Log = log
					if err != nil && !errors.Is(err, errCrash) {
						t.Fatal(err)
					}
					// Never is somebody counted who is no admin.
					for user, counted := range loadAdmins(t, w) {
						if counted.In && !w.state(user).governs() {
							t.Fatal("somebody is counted who is no admin")
						}
					}
					if err := c.do(t.Context(), w, id); err != nil {
						t.Fatalf("again: %v", err)
					}
					if err := c.want(w, id); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}

func expect(w *world, id uuid.UUID, status Status, counted bool) error {
	s := w.state(id)
	if s.Status != status || s.governs() != counted || loadAdmins(w.t, w)[id].In != counted {
		return fmt.Errorf("status %s, governs %v, counted %+v", s.Status, s.governs(), loadAdmins(w.t, w)[id])
	}
	return nil
}
