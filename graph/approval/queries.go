package approval

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/approval"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/approval"
)

// List is the query approvals.
func (a *API) List(ctx context.Context, in *gqlmodel.ApprovalFilter, order *gqlmodel.ApprovalOrder, args relay.Args, atLeast *string) (*gqlmodel.ApprovalConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	f, err := filter(in, v.Grants)
	if err != nil {
		return nil, err
	}
	oldest := order != nil && order.Direction == gqlmodel.OrderDirectionAsc
	list, err := relay.NewList(a.Sealer, v.Tenant, "approvals", struct {
		proj.Filter
		Oldest bool
	}{f, oldest})
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	viewer := projaccess.FilterOf(v.Grants)
	rows, err := a.Queries.List(ctx, viewer, f, proj.Order(oldest), p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.ApprovalConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.Count(ctx, viewer, f) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows, proj.Key, Show,
		func(cursor string, n *gqlmodel.Approval) *gqlmodel.ApprovalEdge {
			return &gqlmodel.ApprovalEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

func filter(in *gqlmodel.ApprovalFilter, g access.Grants) (proj.Filter, error) {
	var f proj.Filter
	if in == nil {
		return f, nil
	}
	var faults fault.List
	for _, s := range in.States.Value() {
		f.Statuses = append(f.Statuses, approval.Status(s))
	}
	if k := in.SubjectKind.Value(); k != nil {
		f.SubjectKind = kindOf(*k)
	}
	f.Subject = relay.Optional(0, in.SubjectID.Value(), &faults, "filter", "subjectId")
	f.Requester = relay.Optional(relay.User, in.RequesterID.Value(), &faults, "filter", "requesterId")
	if mine := in.WaitingForMe.Value(); mine != nil && *mine {
		f = waiting(f, g)
	}
	return f, faults.Err()
}

// waiting leaves what the person may decide now.
func waiting(f proj.Filter, g access.Grants) proj.Filter {
	f.NotOf, f.Nothing = g.User, !g.Admin() || !g.Writes()
	if len(f.Statuses) > 0 {
		// Of the states that were asked for only this one can wait.
		f.Nothing = f.Nothing || !contains(f.Statuses, approval.Pending)
	}
	f.Statuses = []approval.Status{approval.Pending}
	return f
}

func contains(list []approval.Status, s approval.Status) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// Get is the query approval.
func (a *API) Get(ctx context.Context, id string, atLeast *string, asOf *time.Time, asOfPosition *string) (*gqlmodel.Approval, error) {
	parsed, ok := relay.Parse(id)
	if !ok || parsed.Kind != relay.Approval {
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

// at is a request as the log had it at a position.
func (a *API) at(ctx context.Context, tenant, id uuid.UUID, p es.Position) (approval.State, error) {
	l, err := es.LoadUntil(ctx, a.Runtime, approval.Aggregate, tenant, id, p)
	return l.State, err
}
