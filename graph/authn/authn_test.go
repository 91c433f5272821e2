package authn_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/flows/devseed"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is the machine's, moved ahead.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// noKeys lets people be made without sealing anything that is read here.
type noKeys struct{ user.PersonKeys }

func (noKeys) Create(context.Context, uuid.UUID, uuid.UUID) ([]byte, error) {
	return make([]byte, 32), nil
}

type world struct {
	*authn.Authenticator
	t     *testing.T
	users *user.Handler
	clock *clock
	acme  uuid.UUID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	log, c := storetest.Open(t), &clock{}
	registry, err := es.NewRegistry(es.Types, tenant.Types, project.Types, user.Types)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	rt := &es.Runtime{
		Log: log, Registry: registry, Clock: c, IDs: es.RandomIDs{}, NameKey: []byte("names"), Logger: logger, Refusals: es.NewRefusals(),
	}
	users := &user.Handler{Runtime: rt, Keys: noKeys{}, Random: rand.Reader}
	projects, tenants := &project.Handler{Runtime: rt, Access: users}, &tenant.Handler{Runtime: rt, Access: users}
	users.Projects = projects
	if err := (devseed.Handlers{Runtime: rt, Tenants: tenants, Projects: projects, Users: users}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &world{
		Authenticator: authn.New(users, c, logger,
			authn.Tokens{Source: users, Clock: c},
			&authn.Dev{Tenants: tenants, Users: users, Order: devseed.Tenants}),
		t: t, users: users, clock: c,
	}
	w.acme, _, _ = tenants.Find(t.Context(), "acme")
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, log) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

// in signs in and gives the open context with its viewer.
func (w *world) in(t *testing.T, token string) (context.Context, authn.Viewer) {
	t.Helper()
	ctx, err := w.Authenticate(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	v, err := authn.Must(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, v
}

func (w *world) command(action string, by es.Actor) es.Command {
	return es.Command{ID: uuid.New(), Action: action, Tenant: w.acme, Reason: "test", Actor: by}
}

func (w *world) admin(t *testing.T, action string) es.Command {
	t.Helper()
	_, v := w.in(t, "dev-admin")
	return w.command(action, v.Actor)
}

// token makes an API token for a person of acme.
func (w *world) token(t *testing.T, login string, life time.Duration) user.Issued {
	t.Helper()
	_, v := w.in(t, "dev-"+login)
	r, err := w.users.IssueToken(t.Context(), w.command("createApiToken", v.Actor), user.NewToken{ExpiresAt: w.clock.Now().Add(life)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Refs
}

// ends waits for a context to end because its viewer lost the right to it.
func ends(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
		if !fault.Is(context.Cause(ctx), fault.CodeUnauthenticated) {
			t.Fatalf("ended by %v", context.Cause(ctx))
		}
	case <-time.After(5 * time.Second):
		t.Fatal("still open after 5 s")
	}
}

func TestAuthenticate(t *testing.T) {
	w := newWorld(t)
	t.Run("TEN-06_the_development_sign_in_goes_by_name", func(t *testing.T) {
		_, alice := w.in(t, "dev-alice")
		if alice.Tenant != w.acme || alice.Actor.Kind != es.ActorUser || len(alice.Grants.ProjectIDs()) != 1 {
			t.Fatalf("got %+v", alice)
		}
		_, mallory := w.in(t, "dev-mallory")
		if mallory.Tenant == w.acme || !mallory.Grants.Admin() {
			t.Fatalf("got %+v", mallory)
		}
	})
	t.Run("TEN-06_an_api_token", func(t *testing.T) {
		i := w.token(t, "alice", time.Hour)
		_, v := w.in(t, i.Token)
		if v.Actor.Kind != es.ActorToken || v.Actor.Token != i.ID || v.Tenant != w.acme {
			t.Fatalf("got %+v", v)
		}
	})
	t.Run("TEN-06_whatever_is_wrong_the_answer_is_the_same", func(t *testing.T) {
		revoked := w.token(t, "alice", time.Hour)
		if _, err := w.users.RevokeToken(t.Context(), w.admin(t, "revokeApiToken"), mustView(t, w, "dev-alice").User(), revoked.ID); err != nil {
			t.Fatal(err)
		}
		for _, token := range []string{"", "alice", "dev-", "dev-nobody", "dev-acme", "tyd_", "tyd_AAAA", revoked.Token, "dev-ali\x00ce"} {
			ctx, err := w.Authenticate(t.Context(), token)
			if faults, _ := fault.All(err); len(faults) != 1 || faults[0].Error() != user.Unauthenticated().Error() || faults[0].Kind != fault.Unauthenticated {
				t.Errorf("%q: got %v", token, err)
			}
			if _, ok := authn.From(ctx); ok {
				t.Errorf("%q is somebody", token)
			}
		}
	})
	t.Run("TEN-06_without_the_development_sign_in_a_name_is_nothing", func(t *testing.T) {
		a := authn.New(w.users, w.clock, slog.Default(), authn.Tokens{Source: w.users, Clock: w.clock})
		if _, err := a.Authenticate(t.Context(), "dev-alice"); !fault.Is(err, fault.CodeUnauthenticated) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("GEN-07_a_log_that_is_away_is_not_called_a_bad_token", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.Authenticate(ctx, "dev-alice"); err == nil || fault.Is(err, fault.CodeUnauthenticated) {
			t.Fatalf("got %v", err)
		}
	})
}

func mustView(t *testing.T, w *world, token string) authn.Viewer {
	t.Helper()
	_, v := w.in(t, token)
	return v
}

func TestOpenContexts(t *testing.T) {
	w := newWorld(t)
	t.Run("TEN-07_the_suspended_lose_theirs_the_others_do_not", func(t *testing.T) {
		bob, v := w.in(t, "dev-bob")
		alice, _ := w.in(t, "dev-alice")
		if _, err := w.users.Suspend(t.Context(), w.admin(t, "suspendUser"), v.User()); err != nil {
			t.Fatal(err)
		}
		ends(t, bob)
		if alice.Err() != nil {
			t.Fatal("somebody else's ended as well")
		}
		if _, err := w.Recheck(t.Context(), v); !fault.Is(err, fault.CodeUnauthenticated) {
			t.Fatalf("got %v", err)
		}
		if _, err := w.Authenticate(t.Context(), "dev-bob"); !fault.Is(err, fault.CodeUnauthenticated) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-07_a_revoked_token_loses_its_own", func(t *testing.T) {
		revoked, kept := w.token(t, "alice", time.Hour), w.token(t, "alice", time.Hour)
		one, v := w.in(t, revoked.Token)
		other, _ := w.in(t, kept.Token)
		if _, err := w.users.RevokeToken(t.Context(), w.command("revokeApiToken", v.Actor), v.User(), revoked.ID); err != nil {
			t.Fatal(err)
		}
		ends(t, one)
		if other.Err() != nil {
			t.Fatal("the other token's ended as well")
		}
	})
	t.Run("TEN-07_an_expired_token_loses_its_own", func(t *testing.T) {
		ctx, _ := w.in(t, w.token(t, "alice", time.Hour).Token)
		w.clock.pass(time.Hour)
		ends(t, ctx)
	})
	t.Run("TEN-04_what_is_granted_works_without_a_new_sign_in", func(t *testing.T) {
		ctx, v := w.in(t, "dev-alice")
		if _, err := w.users.GrantRole(t.Context(), w.admin(t, "grantRole"), v.User(), user.Grant{Role: access.Auditor}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if now, _ := authn.From(ctx); now.Grants.ReadsAudit() {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("not seen within 5 s")
			}
		}
	})
	t.Run("TEN-07_the_end_of_a_request_is_the_end_of_its_context", func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		ctx, err := w.Authenticate(parent, "dev-carol")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			t.Fatalf("ended by %v", context.Cause(ctx))
		}
	})
}
