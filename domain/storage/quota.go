package storage

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Limits are the most bytes that spaces of each kind may hold, where nobody set
// a quota for the very space; 0 is no limit.
type Limits struct{ Home, Project, Tenant int64 }

// Limit is the most bytes that a space may hold; false when there is no limit.
func (l Limits) Limit(s State) (int64, bool) {
	if s.Quota != nil {
		return *s.Quota, true
	}
	most := l.Tenant
	switch s.Kind {
	case Personal:
		most = l.Home
	case OfProject:
		most = l.Project
	case OfTenant:
	}
	return most, most > 0
}

// QuotaInput says how much a space may hold.
type QuotaInput struct {
	// Bytes is nil for what the installation gives to spaces of the kind.
	Bytes           *int64
	ExpectedVersion *int
}

// SetQuota is `setStorageQuota`. Tenant admins set the quota of homes, too,
// into which they do not look.
func (h *Handler) SetQuota(ctx context.Context, cmd es.Command, space uuid.UUID, in QuotaInput) (es.Result[Refs], error) {
	return h.run(ctx, cmd, space, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		if err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, space, setQuota(cmd, g, in))
		return Refs{Space: space}, err
	})
}

// MustSetQuota refuses who may not say how much a space may hold.
func MustSetQuota(g access.Grants, s State) error {
	switch {
	case !s.Exists() || !g.Active || g.Tenant != s.Tenant, !g.Admin() && MustRead(g, s) != nil:
		return access.Missing()
	case !g.Writes():
		return access.ReadOnly()
	case !g.Admin():
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Only tenant admins say how much a space may hold; ask one of them.")
	}
	return nil
}

func setQuota(cmd es.Command, g access.Grants, in QuotaInput) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		cmd.In(s.Project)
		if err := MustSetQuota(g, s); err != nil {
			return nil, err
		}
		if in.ExpectedVersion != nil && *in.ExpectedVersion != s.Version {
			return nil, fault.New(fault.Conflict, fault.CodeVersionConflict,
				"Somebody changed this space in between; read it again and repeat the change.").
				At("expectedVersion").With("currentVersion", strconv.Itoa(s.Version))
		}
		if in.Bytes != nil && *in.Bytes < 0 {
			return nil, fault.New(fault.Invalid, fault.CodeOutOfRange, "Give 0 or more bytes, or null for what the installation gives.").At("quotaBytes")
		}
		if equal(s.Quota, in.Bytes) {
			return nil, nil
		}
		return []es.Event{QuotaSet{From: s.Quota, To: in.Bytes}}, nil
	}
}

func equal(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
