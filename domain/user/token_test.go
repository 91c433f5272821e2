package user

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/user/internal/apitoken"
)

func TestTokens(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.user("alice", access.Member), w.user("bob", access.Member)
	issue := func(t *testing.T, in NewToken) Issued {
		t.Helper()
		r, err := w.IssueToken(t.Context(), w.by(alice, "createApiToken"), in)
		if err != nil {
			t.Fatal(err)
		}
		return r.Refs
	}
	refused := func(t *testing.T, token string) {
		t.Helper()
		_, err := w.VerifyToken(t.Context(), token, w.clock.Now())
		faults, _ := fault.All(err)
		if len(faults) != 1 || faults[0].Error() != Unauthenticated().Error() {
			t.Fatalf("got %v, want the one answer to all", err)
		}
	}
	t.Run("TEN-06_a_token_lets_its_user_in", func(t *testing.T) {
		i := issue(t, NewToken{Name: "laptop"})
		s, err := w.VerifyToken(t.Context(), i.Token, w.clock.Now())
		want := es.Actor{Kind: es.ActorToken, User: alice, Token: i.ID}
		if err != nil || s.Actor != want || s.Tenant != w.tenant || !s.Grants.In(vision) || !s.ExpiresAt.Equal(i.ExpiresAt) {
			t.Fatalf("got %+v, %v", s, err)
		}
	})
	t.Run("TEN-06_the_secret_is_nowhere_in_the_log", func(t *testing.T) {
		i := issue(t, NewToken{})
		parsed, ok := apitoken.Parse(i.Token)
		if !ok {
			t.Fatal("not a token")
		}
		for rec, err := range w.Runtime.Log.ReadAll(t.Context(), es.StartPosition, es.Forward, es.Everything) {
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(rec.Data, []byte(i.Token)) || bytes.Contains(rec.Data, []byte(base64.RawURLEncoding.EncodeToString(parsed.Secret[:])[:20])) {
				t.Fatalf("%s shows the secret", rec.Type)
			}
		}
	})
	t.Run("TEN-06_shown_once", func(t *testing.T) {
		cmd := w.by(alice, "createApiToken")
		cmd.Key = "once"
		first, err := w.IssueToken(t.Context(), cmd, NewToken{})
		if err != nil || first.Refs.Token == "" {
			t.Fatal(err)
		}
		again, err := w.IssueToken(t.Context(), cmd, NewToken{})
		if !fault.Is(err, fault.CodeSecretAlreadyShown) || again.Refs.Token != "" || again.Refs.ID != first.Refs.ID {
			t.Fatalf("got %+v, %v", again, err)
		}
	})
	t.Run("TEN-06_expires", func(t *testing.T) {
		i := issue(t, NewToken{ExpiresAt: w.clock.Now().Add(time.Hour)})
		w.clock.pass(time.Hour)
		refused(t, i.Token)
	})
	t.Run("TEN-06_ends_in_the_future_within_a_year", func(t *testing.T) {
		for _, at := range []time.Time{w.clock.Now(), w.clock.Now().Add(-time.Second), w.clock.Now().Add(MaxTokenLife + time.Second)} {
			_, err := w.IssueToken(t.Context(), w.by(alice, "createApiToken"), NewToken{ExpiresAt: at})
			if !fault.Is(err, fault.CodeOutOfRange) {
				t.Fatalf("got %v", err)
			}
		}
	})
	t.Run("TEN-06_revoked", func(t *testing.T) {
		for _, by := range []uuid.UUID{alice, w.admin} {
			i := issue(t, NewToken{})
			if _, err := w.RevokeToken(t.Context(), w.by(bob, "revokeApiToken"), alice, i.ID); !fault.Is(err, fault.CodeForbidden) {
				t.Fatalf("bob: %v", err)
			}
			if _, err := w.RevokeToken(t.Context(), w.by(by, "revokeApiToken"), alice, i.ID); err != nil {
				t.Fatal(err)
			}
			refused(t, i.Token)
			if _, err := w.Recheck(t.Context(), w.tenant, es.Actor{Kind: es.ActorToken, User: alice, Token: i.ID}, w.clock.Now()); !fault.Is(err, fault.CodeUnauthenticated) {
				t.Fatalf("recheck: %v", err)
			}
		}
	})
	t.Run("TEN-07_suspended", func(t *testing.T) {
		i := issue(t, NewToken{})
		if _, err := w.Suspend(t.Context(), w.by(w.admin, "suspendUser"), alice); err != nil {
			t.Fatal(err)
		}
		refused(t, i.Token)
		if _, err := w.Reinstate(t.Context(), w.by(w.admin, "reinstateUser"), alice); err != nil {
			t.Fatal(err)
		}
		if _, err := w.VerifyToken(t.Context(), i.Token, w.clock.Now()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("TEN-06_nothing_else_lets_in", func(t *testing.T) {
		i := issue(t, NewToken{})
		good, _ := apitoken.Parse(i.Token)
		for name, change := range map[string]func(*apitoken.Token){
			"secret": func(a *apitoken.Token) { a.Secret[0]++ },
			"user":   func(a *apitoken.Token) { a.User = bob },
			"tenant": func(a *apitoken.Token) { a.Tenant = uuid.New() },
			"id":     func(a *apitoken.Token) { a.ID = uuid.New() },
			"absent": func(a *apitoken.Token) { *a = apitoken.Token{} },
		} {
			bad := good
			change(&bad)
			t.Run(name, func(t *testing.T) { refused(t, bad.Text()) })
		}
		for _, s := range []string{"", "tyd_", "dev-alice", i.Token + "A", i.Token[:len(i.Token)-1], strings.ToUpper(i.Token), " " + i.Token} {
			refused(t, s)
		}
	})
	t.Run("TEN-06_a_token_makes_no_token", func(t *testing.T) {
		cmd := w.by(alice, "createApiToken")
		cmd.Actor.Kind, cmd.Actor.Token = es.ActorToken, uuid.New()
		if _, err := w.IssueToken(t.Context(), cmd, NewToken{}); !fault.Is(err, fault.CodeForbidden) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-02_auditor_changes_nothing", func(t *testing.T) {
		if _, err := w.IssueToken(t.Context(), w.by(w.user("audra", access.Auditor), "createApiToken"), NewToken{}); !fault.Is(err, fault.CodeForbidden) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-06_at_most_50_that_are_alive", func(t *testing.T) {
		carol := w.user("carol")
		for range maxTokens {
			if _, err := w.IssueToken(t.Context(), w.by(carol, "createApiToken"), NewToken{ExpiresAt: w.clock.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.IssueToken(t.Context(), w.by(carol, "createApiToken"), NewToken{}); !fault.Is(err, fault.CodeQuotaExceeded) {
			t.Fatalf("got %v", err)
		}
		w.clock.pass(2 * time.Hour)
		if _, err := w.IssueToken(t.Context(), w.by(carol, "createApiToken"), NewToken{}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTokenLost: the program dies between the event and the answer. The one who
// asks again is told that the secret is gone, and the token can be revoked.
func TestTokenLost(t *testing.T) {
	w := newWorld(t)
	w.clock.step = time.Second
	alice := w.user("alice")
	cmd := w.by(alice, "createApiToken")
	cmd.Key = "once"
	log := w.Runtime.Log
	w.Runtime.Log = &dying{Log: log, left: 2, after: true} // accepted, issued
	if _, err := w.IssueToken(t.Context(), cmd, NewToken{}); err == nil {
		t.Fatal("no crash")
	}
	w.Runtime.Log = log
	for range 2 {
		if _, err := w.IssueToken(t.Context(), cmd, NewToken{}); !fault.Is(err, fault.CodeSecretAlreadyShown) {
			t.Fatalf("got %v", err)
		}
	}
	if n := len(w.state(alice).Tokens); n != 1 {
		t.Fatalf("%d tokens", n)
	}
}
