package embedded

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// principal is who makes a call. The zero value is somebody unknown.
type principal struct {
	name   string
	groups []string
}

// owner is who comes through the unix socket: its mode lets in nobody but the
// user that the program runs as, who could read the files as well.
var owner = principal{name: "owner", groups: []string{groupAdmins}}

func (p principal) known() bool { return p.name != "" }

func (p principal) in(group string) bool { return slices.Contains(p.groups, group) }

// admin tells whether everything is allowed.
func (p principal) admin() bool { return p.in(groupAdmins) }

// operator tells whether p may run what isn't about one stream's events.
func (p principal) operator() bool { return p.admin() || p.in(groupOps) }

type principalKey struct{}

func withPrincipal(ctx context.Context, p principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// principalOf tells who makes the call of a context; without one, somebody unknown.
func principalOf(ctx context.Context) principal {
	p, _ := ctx.Value(principalKey{}).(principal)
	return p
}

// authenticate tells who makes a call through the network. A call without
// credentials is somebody unknown's; with wrong ones it is refused, whatever it asks.
func (u *Users) authenticate(ctx context.Context) (principal, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) == 0 {
		return principal{}, nil
	}
	refused := status.Error(codes.Unauthenticated, "Authentication failed.")
	scheme, text, _ := strings.Cut(values[0], " ")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	name, password, ok := strings.Cut(string(raw), ":")
	if len(values) > 1 || !strings.EqualFold(scheme, "basic") || err != nil || !ok {
		return principal{}, refused
	}
	one, err := u.prove(ctx, name, password)
	switch {
	case errors.Is(err, errBadCredentials):
		return principal{}, refused
	case err != nil:
		return principal{}, status.FromContextError(err).Err()
	}
	return principal{name: one.name, groups: one.groups}, nil
}
