package authn

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/user"
)

// ErrNotMine says that a credential is of another verifier's kind.
var ErrNotMine = errors.New("credential of another kind")

// Verifier tells who a bearer token belongs to. It gives ErrNotMine for a kind
// that it doesn't know, user.Unauthenticated for one that does not hold, and
// any other error for a mishap.
type Verifier interface {
	Verify(ctx context.Context, token string) (Viewer, error)
}

// Rights answers from the log whether somebody who was let in still would be;
// domain/user has it.
type Rights interface {
	Recheck(ctx context.Context, tenant uuid.UUID, actor es.Actor, now time.Time) (user.Session, error)
}

// Authenticator asks its verifiers in turn. Run must be running: it keeps the
// rights of open contexts fresh and ends those whose viewers lost them.
type Authenticator struct {
	verifiers []Verifier
	rights    Rights
	clock     es.Clock
	logger    *slog.Logger
	sessions  *sessions
}

// New makes an Authenticator.
func New(rights Rights, clock es.Clock, logger *slog.Logger, verifiers ...Verifier) *Authenticator {
	return &Authenticator{verifiers: verifiers, rights: rights, clock: clock, logger: logger, sessions: newSessions()}
}

// Authenticate puts the viewer that a bearer token belongs to into the context.
// Whatever is wrong with a token, the fault is the same. The context ends when
// the viewer is suspended, or the token is revoked or expires (TEN-07).
func (a *Authenticator) Authenticate(ctx context.Context, token string) (context.Context, error) {
	began := a.sessions.seen()
	v, err := a.verify(ctx, token)
	if err != nil {
		return ctx, err
	}
	return a.sessions.open(ctx, v, began), nil
}

func (a *Authenticator) verify(ctx context.Context, token string) (Viewer, error) {
	for _, verifier := range a.verifiers {
		v, err := verifier.Verify(ctx, token)
		if !errors.Is(err, ErrNotMine) {
			return v, err
		}
	}
	return Viewer{}, user.Unauthenticated()
}

// Recheck gives the viewer with the rights of this moment, or the fault that
// closes a subscription: suspended, or the token ended.
func (a *Authenticator) Recheck(ctx context.Context, v Viewer) (Viewer, error) {
	now := a.clock.Now()
	if !v.ExpiresAt.IsZero() && !v.ExpiresAt.After(now) {
		return Viewer{}, user.Unauthenticated()
	}
	s, err := a.rights.Recheck(ctx, v.Tenant, v.Actor, now)
	if s.ExpiresAt.IsZero() {
		// The log knows the end of API tokens only.
		s.ExpiresAt = v.ExpiresAt
	}
	return Viewer{s}, err
}

// TokenSource verifies personal API tokens; domain/user has it.
type TokenSource interface {
	VerifyToken(ctx context.Context, token string, now time.Time) (user.Session, error)
}

// Tokens verifies personal API tokens.
type Tokens struct {
	Source TokenSource
	Clock  es.Clock
}

// Verify implements Verifier.
func (t Tokens) Verify(ctx context.Context, token string) (Viewer, error) {
	if !strings.HasPrefix(token, user.TokenPrefix) {
		return Viewer{}, ErrNotMine
	}
	s, err := t.Source.VerifyToken(ctx, token, t.Clock.Now())
	return Viewer{s}, err
}
