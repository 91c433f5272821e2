package tenant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/infra/eventstore/storetest"
)

// clock goes on a second whenever it is asked, so that nobody waits for a
// command that died.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Second)
	return c.at
}

// operators gives everybody the operator's role.
type operators struct{}

func (operators) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	return access.Grants{Tenant: tenant, User: user, Active: true, Roles: []access.Role{access.Operator}}, nil
}

func newHandler(t *testing.T) *Handler {
	t.Helper()
	registry, err := es.NewRegistry(es.Types, Types)
	if err != nil {
		t.Fatal(err)
	}
	return &Handler{Access: operators{}, Runtime: &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: &clock{at: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)},
		IDs: es.RandomIDs{}, NameKey: []byte("names"), Logger: slog.New(slog.DiscardHandler),
	}}
}

var operator = uuid.New()

func command(action, key string) es.Command {
	return es.Command{ID: uuid.New(), Action: action, Key: key, Tenant: operator, Actor: es.Actor{Kind: es.ActorUser, User: operator}}
}

func made(t *testing.T, h *Handler, name string) uuid.UUID {
	t.Helper()
	r, err := h.Create(t.Context(), command("createTenant", ""), name)
	if err != nil {
		t.Fatal(err)
	}
	return r.Refs.Tenant
}

func TestTenantNames(t *testing.T) {
	h := newHandler(t)
	acme := made(t, h, "acme")
	free := func(t *testing.T, name string) bool {
		t.Helper()
		_, taken, err := h.Find(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return !taken
	}
	t.Run("TEN-11_a_name_is_unique_on_the_platform", func(t *testing.T) {
		_, err := h.Create(t.Context(), command("createTenant", ""), "acme")
		if faults, _ := fault.All(err); len(faults) != 1 || faults[0].Code != fault.CodeNameTaken || faults[0].Field[0] != "name" {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("GEN-01_twins_in_NFC_and_NFD_are_one_name", func(t *testing.T) {
		made(t, h, "Caf\u00e9")
		if _, err := h.Create(t.Context(), command("createTenant", ""), "Cafe\u0301"); !fault.Is(err, fault.CodeNameTaken) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-11_a_rename_frees_the_old_name_and_takes_the_new_one", func(t *testing.T) {
		to := "acme-2"
		if _, err := h.Update(t.Context(), command("updateTenant", ""), acme, Update{Name: &to}); err != nil {
			t.Fatal(err)
		}
		if free(t, "acme-2") || !free(t, "acme") {
			t.Fatal("the names are not where they belong")
		}
		made(t, h, "acme")
	})
	t.Run("GEN-04_a_refused_rename_leaves_the_new_name_free", func(t *testing.T) {
		to, wrong := "acme-3", 7
		_, err := h.Update(t.Context(), command("updateTenant", ""), acme, Update{Name: &to, ExpectedVersion: &wrong})
		if !fault.Is(err, fault.CodeVersionConflict) || !free(t, "acme-3") || free(t, "acme-2") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-11_a_taken_name_is_refused", func(t *testing.T) {
		to := "acme"
		if _, err := h.Update(t.Context(), command("updateTenant", ""), acme, Update{Name: &to}); !fault.Is(err, fault.CodeNameTaken) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-01_a_missing_tenant_takes_no_name", func(t *testing.T) {
		to := "ghost"
		if _, err := h.Update(t.Context(), command("updateTenant", ""), uuid.New(), Update{Name: &to}); !fault.Is(err, fault.CodeNotFound) || !free(t, "ghost") {
			t.Fatalf("got %v", err)
		}
	})
}

var errCrash = errors.New("the program died")

// dying fails every append from the n-th on, which it may have carried out.
type dying struct {
	es.Log
	left  int
	after bool
}

func (d *dying) Append(ctx context.Context, stream string, expected es.Expected, events ...es.Raw) (es.Written, error) {
	d.left--
	if d.left > 0 || d.left == 0 && d.after {
		w, err := d.Log.Append(ctx, stream, expected, events...)
		if d.left > 0 || err != nil {
			return w, err
		}
	}
	return es.Written{}, errCrash
}

// TestRenameCrash lets a rename die at every append and repeats it with the
// same key.
func TestRenameCrash(t *testing.T) {
	h := newHandler(t)
	log := h.Runtime.Log
	for n := 1; n <= 5; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("GEN-03_append_%d_after_%v", n, after), func(t *testing.T) {
				from, to := fmt.Sprintf("a-%d-%v", n, after), fmt.Sprintf("b-%d-%v", n, after)
				id := made(t, h, from)
				cmd := command("updateTenant", uuid.NewString())
				h.Runtime.Log = &dying{Log: log, left: n, after: after}
				_, err := h.Update(t.Context(), cmd, id, Update{Name: &to})
				h.Runtime.Log = log
				if !errors.Is(err, errCrash) {
					t.Fatalf("no crash: %v", err)
				}
				if _, err := h.Update(t.Context(), cmd, id, Update{Name: &to}); err != nil {
					t.Fatal(err)
				}
				s, err := h.Load(t.Context(), id)
				if err != nil || s.Name != to || s.Version != 2 {
					t.Fatalf("got %+v, %v", s, err)
				}
				if holder, taken, _ := h.Find(t.Context(), to); !taken || holder != id {
					t.Fatal("the new name is not held")
				}
				if _, taken, _ := h.Find(t.Context(), from); taken {
					t.Fatal("the old name is still held")
				}
			})
		}
	}
}
