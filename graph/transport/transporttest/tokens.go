package transporttest

import (
	"context"
	"io"
	"sync"

	"tallyard/domain/fault"
)

// Tokens is an authenticator that lets "good" and "ada" in, and can take that back.
type Tokens struct {
	mu     sync.Mutex
	issued []context.CancelCauseFunc
}

type actorKey struct{}

// Authenticate implements transport.Authenticator.
func (t *Tokens) Authenticate(ctx context.Context, token string) (context.Context, error) {
	switch token {
	case "good", "ada":
	case "down":
		return nil, fault.New(fault.Unavailable, fault.CodeUnavailable, "The sign-in service does not answer.")
	case "broken":
		return nil, io.ErrUnexpectedEOF
	default:
		return nil, fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, "Sign in first: send a token.")
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, actorKey{}, token))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.issued = append(t.issued, cancel)
	return ctx, nil
}

// Actor is the token that the context was authenticated with.
func Actor(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}

// Revoke ends everything that runs for anybody.
func (t *Tokens) Revoke(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, cancel := range t.issued {
		cancel(cause)
	}
}
