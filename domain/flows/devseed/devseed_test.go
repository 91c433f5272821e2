package devseed_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/flows/devseed"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
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

type heldKeys map[uuid.UUID][]byte

func (k heldKeys) Create(ctx context.Context, tenant, person uuid.UUID) ([]byte, error) {
	if k[person] == nil {
		k[person] = make([]byte, 32)
	}
	return k.Get(ctx, tenant, person)
}

func (k heldKeys) Get(_ context.Context, _, person uuid.UUID) ([]byte, error) {
	if k[person] == nil {
		return nil, user.ErrErased
	}
	return k[person], nil
}

func (k heldKeys) Destroy(_ context.Context, _, person uuid.UUID) error {
	delete(k, person)
	return nil
}

var errCrash = errors.New("the program died")

// dying fails every append after a number of them.
type dying struct {
	es.Log
	left int
}

func (d *dying) Append(ctx context.Context, stream string, expected es.Expected, events ...es.Raw) (es.Written, error) {
	d.left--
	if d.left < 0 {
		return es.Written{}, errCrash
	}
	return d.Log.Append(ctx, stream, expected, events...)
}

func handlers(t *testing.T, log es.Log) devseed.Handlers {
	t.Helper()
	registry, err := es.NewRegistry(es.Types, tenant.Types, project.Types, user.Types)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: log, Registry: registry, Clock: &clock{at: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}, IDs: es.RandomIDs{},
		NameKey: []byte("names"), Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	users := &user.Handler{Runtime: rt, Keys: heldKeys{}, Random: rand.Reader}
	projects := &project.Handler{Runtime: rt, Access: users}
	users.Projects = projects
	return devseed.Handlers{Runtime: rt, Tenants: &tenant.Handler{Runtime: rt, Access: users}, Projects: projects, Users: users}
}

// TestSeed lets the seed die after every number of appends, one after the
// other, until it comes to its end.
func TestSeed(t *testing.T) {
	log := storetest.Open(t)
	h := handlers(t, log)
	crashes := 0
	for {
		h.Runtime.Log = &dying{Log: log, left: 1}
		err := h.Run(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		crashes++
	}
	h.Runtime.Log = log
	t.Logf("died %d times", crashes)

	t.Run("GEN-03_after_any_crash_everything_is_there_once", func(t *testing.T) {
		counts := map[string]int{}
		for rec, err := range log.ReadAll(t.Context(), es.StartPosition, es.Forward, es.Everything) {
			if err != nil {
				t.Fatal(err)
			}
			counts[rec.Type]++
		}
		for name, want := range map[string]int{
			"tenant.created.v1": 2, "project.created.v1": 2, "user.created.v1": 7, "person.described.v1": 7,
			"user.role_granted.v1": 8, "admins.counted.v1": 2, "name.reserved.v1": 11,
		} {
			if counts[name] != want {
				t.Errorf("%d of %s, want %d", counts[name], name, want)
			}
		}
	})
	for login, want := range map[string]func(access.Grants, uuid.UUID) bool{
		"admin": func(g access.Grants, _ uuid.UUID) bool { return g.Admin() },
		"carol": func(g access.Grants, p uuid.UUID) bool { return g.Administers(p) && !g.Admin() },
		"alice": func(g access.Grants, p uuid.UUID) bool { return g.In(p) && !g.Administers(p) },
		"bob":   func(g access.Grants, p uuid.UUID) bool { return g.In(p) && !g.Administers(p) },
		"audra": func(g access.Grants, _ uuid.UUID) bool { return g.ReadsAudit() && !g.Writes() },
		"oscar": func(g access.Grants, p uuid.UUID) bool { return g.Has(access.Operator) && !g.In(p) },
	} {
		t.Run(fmt.Sprintf("TEN-02_%s", login), func(t *testing.T) {
			acme, _, err := h.Tenants.Find(t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}
			vision, _, err := h.Projects.Find(t.Context(), acme, "vision")
			if err != nil {
				t.Fatal(err)
			}
			id, ok, err := h.Users.Find(t.Context(), acme, login)
			if err != nil || !ok {
				t.Fatalf("not there: %v", err)
			}
			g, err := h.Users.Grants(t.Context(), acme, id)
			if err != nil || !want(g, vision) {
				t.Fatalf("got %+v, %v", g, err)
			}
		})
	}
	t.Run("TEN-01_mallory_is_of_the_other_tenant_only", func(t *testing.T) {
		acme, _, _ := h.Tenants.Find(t.Context(), "acme")
		globex, _, _ := h.Tenants.Find(t.Context(), "globex")
		if _, ok, err := h.Users.Find(t.Context(), acme, "mallory"); ok || err != nil {
			t.Fatalf("there: %v", err)
		}
		id, ok, err := h.Users.Find(t.Context(), globex, "mallory")
		if !ok || err != nil {
			t.Fatalf("not there: %v", err)
		}
		if g, err := h.Users.Grants(t.Context(), acme, id); g.Active || err != nil {
			t.Fatalf("got %+v, %v", g, err)
		}
	})
	t.Run("TEN-11_what_was_taken_stays_taken", func(t *testing.T) {
		acme, _, _ := h.Tenants.Find(t.Context(), "acme")
		vision, _, _ := h.Projects.Find(t.Context(), acme, "vision")
		bob, _, _ := h.Users.Find(t.Context(), acme, "bob")
		cmd := es.System(uuid.New(), "test", "revokeRole", acme)
		cmd.Reason = "test"
		if _, err := h.Users.RevokeRole(t.Context(), cmd, bob, user.Grant{Role: access.Member, Project: vision}); err != nil {
			t.Fatal(err)
		}
		if err := h.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g, err := h.Users.Grants(t.Context(), acme, bob); err != nil || g.In(vision) {
			t.Fatalf("got %+v, %v", g, err)
		}
	})
}
