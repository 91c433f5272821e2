package audit

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/live"
	proj "tallyard/projections/audit"
)

// Tail is the subscription auditTail.
func (a *API) Tail(ctx context.Context, in gqlmodel.AuditFilter, after *string) (<-chan *gqlmodel.AuditTailEvent, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	f, err := a.filter(ctx, v, &in)
	if err != nil {
		return nil, err
	}
	tenants := []uuid.UUID{f.Tenant}
	if f.Platform {
		tenants = append(tenants, es.PlatformTenant)
	}
	return live.Stream(ctx, a.Live, after, live.Source[gqlmodel.AuditTailEvent]{
		Projections: []string{"audit"},
		FromRows:    true,
		Tenants:     tenants,
		Snapshot: func(_ context.Context, _ es.Position, cursor string) (*gqlmodel.AuditTailEvent, error) {
			return &gqlmodel.AuditTailEvent{Cursor: cursor, Kind: gqlmodel.EventKindSnapshot}, nil
		},
		Item: func(ctx context.Context, env es.Envelope, cursor string) (*gqlmodel.AuditTailEvent, error) {
			return a.line(ctx, in, env, cursor)
		},
		Resync: func(cursor string) *gqlmodel.AuditTailEvent {
			return &gqlmodel.AuditTailEvent{Cursor: cursor, Kind: gqlmodel.EventKindResync}
		},
	})
}

// line is the audit entry that an event began; further events of the same
// command are part of it already. The rights are those of this moment.
func (a *API) line(ctx context.Context, in gqlmodel.AuditFilter, env es.Envelope, cursor string) (*gqlmodel.AuditTailEvent, error) {
	if !proj.Recorded(env) {
		return nil, nil
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	f, err := a.filter(ctx, v, &in)
	if err != nil {
		if _, lost := fault.All(err); lost {
			return nil, nil // what was allowed when it began is not any more
		}
		return nil, err
	}
	kind := gqlmodel.EventKindCreated
	found, err := a.Queries.Matching(ctx, f, env.ID)
	if _, late := env.Event.(es.CommandRefused); err == nil && late && len(found) == 0 {
		// The command was on record before it was refused: its line changed.
		kind = gqlmodel.EventKindChanged
		found, err = a.Queries.MatchingCommand(ctx, f, env.Meta.Command)
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &gqlmodel.AuditTailEvent{Cursor: cursor, Kind: kind, AuditEntry: a.show(v, found[0], f.Cut)}, nil
}
