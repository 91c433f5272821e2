package audit

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/live"
	"tallyard/graph/relay"
	proj "tallyard/projections/audit"
)

// Tail is the subscription auditTail.
func (a *API) Tail(ctx context.Context, in gqlmodel.AuditFilter, after, atLeast *string) (<-chan *gqlmodel.AuditTailEvent, error) {
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
	if err := a.Commands.LiveAtLeast(ctx, atLeast, a.Live); err != nil {
		return nil, err
	}
	projections := []string{"audit"}
	if in.SubjectID.Value() != nil {
		projections = a.Commands.Projections // who sees the thing is read from its own
	}
	return live.Stream(ctx, a.Live, after, live.Source[gqlmodel.AuditTailEvent]{
		Projections: projections,
		FromRows:    true,
		Tenants:     tenants,
		Turn: func(ctx context.Context, _ live.Turn) ([]live.Part[gqlmodel.AuditTailEvent], uuid.UUID, error) {
			// Who may not read these lines any more is told so, and nothing else.
			return nil, uuid.Nil, a.stillReads(ctx, in)
		},
		Snapshot: func(_ context.Context, _ access.Grants, _ es.Position, cursor string) (*gqlmodel.AuditTailEvent, error) {
			return &gqlmodel.AuditTailEvent{Cursor: cursor, Kind: gqlmodel.EventKindSnapshot}, nil
		},
		Item: func(ctx context.Context, _ access.Grants, env es.Envelope, cursor string) (*gqlmodel.AuditTailEvent, error) {
			return a.line(ctx, in, env, cursor)
		},
		Resync: func(cursor string) *gqlmodel.AuditTailEvent {
			return &gqlmodel.AuditTailEvent{Cursor: cursor, Kind: gqlmodel.EventKindResync}
		},
	})
}

// stillReads gives the error that the tail ends with when the viewer may not
// read these lines any more: the one that asking for them anew gives.
func (a *API) stillReads(ctx context.Context, in gqlmodel.AuditFilter) error {
	v, err := authn.Must(ctx)
	if err != nil {
		return err
	}
	_, err = a.filter(ctx, v, &in)
	return err
}

// concerns tells whether an event is of the thing that is watched, which it may
// take out of view.
func concerns(in gqlmodel.AuditFilter, env es.Envelope) bool {
	if in.SubjectID.Value() == nil {
		return false
	}
	id, _ := relay.Parse(*in.SubjectID.Value())
	root := env.Root().ID
	return root != uuid.Nil && (id.UUID == root || id.Parent == root)
}

// line is the audit entry that an event began, or that it added to: a command
// may go on in other streams, or after its work on disk. The rights are those of
// this moment.
func (a *API) line(ctx context.Context, in gqlmodel.AuditFilter, env es.Envelope, cursor string) (*gqlmodel.AuditTailEvent, error) {
	if !proj.Recorded(env) {
		if concerns(in, env) {
			return nil, a.stillReads(ctx, in)
		}
		return nil, nil
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	f, err := a.filter(ctx, v, &in)
	if err != nil {
		return nil, err
	}
	kind := gqlmodel.EventKindCreated
	found, err := a.Queries.Matching(ctx, f, env.ID)
	if err == nil && len(found) == 0 {
		kind = gqlmodel.EventKindChanged
		found, err = a.Queries.MatchingCommand(ctx, f, env.Meta.Command)
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &gqlmodel.AuditTailEvent{Cursor: cursor, Kind: kind, AuditEntry: a.show(v, found[0], f.Cut)}, nil
}
