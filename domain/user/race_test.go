package user

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/infra/eventstore/storetest"
)

// TestAdminsAtOnce lets two processes on one log give and take what makes
// tenant admins, all at once, some of them dying half way. Whatever happens,
// nobody is counted who is no admin, so an admin stays.
func TestAdminsAtOnce(t *testing.T) {
	log := storetest.Open(t)
	for round := range 12 {
		t.Run(fmt.Sprintf("TEN-11_one_stays_%d", round), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(round), 1)) //nolint:gosec // a repeatable test
			w := newWorldOn(t, log)
			// The second handler is another process: nothing is shared but the log.
			handlers := []*Handler{w.Handler, {Runtime: fresh(w.Runtime), Projects: w.Projects, Keys: w.Keys, Random: w.Random}}
			people := []uuid.UUID{w.admin, w.user("ann", access.TenantAdmin), w.user("ben", access.TenantAdmin)}

			var wg sync.WaitGroup
			for range 30 {
				h, id, what := handlers[rnd.IntN(2)], people[rnd.IntN(len(people))], rnd.IntN(6)
				ctx, die := t.Context(), context.CancelFunc(func() {})
				if rnd.IntN(4) == 0 {
					ctx, die = context.WithTimeout(ctx, time.Duration(rnd.Int64N(int64(4*time.Millisecond))))
				}
				wg.Go(func() {
					defer die()
					err := w.order(ctx, h, id, what)
					if _, isFault := fault.All(err); err != nil && !isFault && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			governing := 0
			counts := loadAdmins(t, w)
			for _, id := range people {
				switch s := w.state(id); {
				case s.governs():
					governing++
				case counts[id].In:
					t.Errorf("%s is counted and is no admin", id)
				}
			}
			if governing == 0 || counts.besides(uuid.Nil) == 0 {
				t.Fatalf("%d admins are left, %d are counted", governing, counts.besides(uuid.Nil))
			}
		})
	}
}

// fresh is a runtime with the same log and nothing remembered.
func fresh(rt *es.Runtime) *es.Runtime {
	return &es.Runtime{
		Log: rt.Log, Registry: rt.Registry, Clock: rt.Clock, IDs: rt.IDs, NameKey: rt.NameKey, Logger: rt.Logger, Refusals: rt.Refusals,
	}
}

// order gives one of the commands that make or unmake an admin.
func (w *world) order(ctx context.Context, h *Handler, id uuid.UUID, what int) error {
	var err error
	admin, auditor := Grant{Role: access.TenantAdmin}, Grant{Role: access.Auditor}
	switch what {
	case 0:
		_, err = h.RevokeRole(ctx, w.system("revokeRole"), id, admin)
	case 1:
		_, err = h.GrantRole(ctx, w.system("grantRole"), id, admin)
	case 2:
		_, err = h.Suspend(ctx, w.system("suspendUser"), id)
	case 3:
		_, err = h.Reinstate(ctx, w.system("reinstateUser"), id)
	case 4:
		_, err = h.GrantRole(ctx, w.system("grantRole"), id, auditor)
	default:
		_, err = h.RevokeRole(ctx, w.system("revokeRole"), id, auditor)
	}
	return err
}
