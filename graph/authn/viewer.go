// Package authn tells who a request is from. It knows verifiers, one per kind
// of credential, puts the viewer into the context, and ends that context when
// the viewer loses the right to be there.
package authn

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/user"
)

// Viewer is who asks, and what they may do by the log. Commands check again
// for themselves.
type Viewer struct{ user.Session }

// User is the viewer's user id.
func (v Viewer) User() uuid.UUID { return v.Actor.User }

type viewerKey struct{}

// With returns a context that carries a viewer who stays as they are.
func With(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, func() Viewer { return v })
}

// From gives the viewer of a context; false when nobody signed in. Under a
// context from Authenticate the rights are those of this moment: a subscription
// that asks again for each change sees what was granted and taken meanwhile.
func From(ctx context.Context) (Viewer, bool) {
	now, ok := ctx.Value(viewerKey{}).(func() Viewer)
	if !ok {
		return Viewer{}, false
	}
	return now(), true
}

// Must gives the viewer of a context, or the fault that asks to sign in.
func Must(ctx context.Context) (Viewer, error) {
	v, ok := From(ctx)
	if !ok {
		return v, user.Unauthenticated()
	}
	return v, nil
}
