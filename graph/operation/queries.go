package operation

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/operation"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/operation"
)

// List is the query operations.
func (a *API) List(ctx context.Context, in *gqlmodel.OperationFilter, args relay.Args, atLeast *string) (*gqlmodel.OperationConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	f, err := filter(in)
	if err != nil {
		return nil, err
	}
	list, err := relay.NewList(a.Sealer, v.Tenant, "operations", f)
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	viewer := projaccess.FilterOf(v.Grants)
	rows, err := a.Queries.List(ctx, viewer, f, proj.Newest, p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.OperationConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.Count(ctx, viewer, f) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows, proj.Key, Show,
		func(cursor string, n *gqlmodel.Operation) *gqlmodel.OperationEdge {
			return &gqlmodel.OperationEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

func filter(in *gqlmodel.OperationFilter) (proj.Filter, error) {
	var f proj.Filter
	if in == nil {
		return f, nil
	}
	var faults fault.List
	for _, s := range in.States.Value() {
		f.Statuses = append(f.Statuses, operation.Status(s))
	}
	for _, k := range in.Kinds.Value() {
		f.Kinds = append(f.Kinds, operation.Kind(k))
	}
	f.Subject = relay.Optional(0, in.SubjectID.Value(), &faults, "filter", "subjectId")
	f.Owner = relay.Optional(relay.User, in.OwnerID.Value(), &faults, "filter", "ownerId")
	f.Dismissed = in.Dismissed.Value() != nil && *in.Dismissed.Value()
	return f, faults.Err()
}

// Get is the query operation.
func (a *API) Get(ctx context.Context, id string, atLeast *string, asOf *time.Time, asOfPosition *string) (*gqlmodel.Operation, error) {
	parsed, ok := relay.Parse(id)
	if !ok || parsed.Kind != relay.Operation {
		return nil, nil
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	p, past, err := a.History.Moment(ctx, asOf, asOfPosition)
	if err != nil {
		return nil, err
	}
	if !past {
		return a.ByID(ctx, parsed.UUID)
	}
	s, err := a.at(ctx, v.Tenant, parsed.UUID, p)
	if err != nil || !s.Exists() || !v.Grants.Sees(s.Thing()) {
		return nil, err
	}
	return showPast(s), nil
}

// at is an operation as the log had it at a position.
func (a *API) at(ctx context.Context, tenant, id uuid.UUID, p es.Position) (operation.State, error) {
	l, err := es.LoadUntil(ctx, a.Runtime, operation.Aggregate, tenant, id, p)
	return l.State, err
}
