package user

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
)

// SignInPart is the part of the system that makes users, and gives and takes
// roles, as an identity provider says.
const SignInPart = "sign-in"

// outsideKind is the kind of the reservations of outside subjects: one subject
// is one user of a tenant.
const outsideKind = "subject"

// Outside is who somebody is at an identity provider. It is personal data.
type Outside struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// name is the reservation of an outside subject. An issuer is an address, so the
// first space ends it.
func (o Outside) name() es.Name { return es.Name{Kind: outsideKind, Value: o.Issuer + " " + o.Subject} }

// FindOutside gives the id of the tenant's user whom an identity provider vouches for.
func (h *Handler) FindOutside(ctx context.Context, tenant uuid.UUID, o Outside) (uuid.UUID, bool, error) {
	holder, ok, err := h.Runtime.Holder(ctx, tenant, o.name())
	if err != nil || !ok {
		return uuid.Nil, false, err
	}
	id, err := holder.UUID()
	return id, err == nil, err
}

// FollowGroups gives and takes roles so that those that groups give are these.
// What somebody granted by hand stays. A word that is older than the last one
// that was followed changes nothing.
func (h *Handler) FollowGroups(ctx context.Context, cmd es.Command, id uuid.UUID, given []Grant, said time.Time) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		return Refs{User: id}, h.change(ctx, cmd, id, follow(given, said))
	})
}

// Follows tells whether FollowGroups would change nothing.
func (s State) Follows(given []Grant, said time.Time) bool {
	events, err := follow(given, said)(s)
	return err == nil && len(events) == 0
}

func follow(given []Grant, said time.Time) es.Decide[State] {
	return onKnown(func(s State) (events []es.Event, err error) {
		// Tokens tell whole seconds.
		if said.Before(s.FollowedAt.Truncate(time.Second)) {
			return nil, nil
		}
		for _, g := range s.Followed {
			if !slices.Contains(given, g) {
				events = append(events, RoleRevoked(g))
			}
		}
		for _, g := range given {
			if !s.Holds(g) {
				events = append(events, RoleGranted(g))
			}
		}
		return events, nil
	})
}
