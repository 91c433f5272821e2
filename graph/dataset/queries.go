package dataset

import (
	"context"

	"tallyard/domain/access"
	"tallyard/domain/fault"
	"tallyard/domain/text"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/dataset"
	"tallyard/projections/page"

	"tallyard/domain/dataset"
)

// List is the query dataSets.
func (a *API) List(ctx context.Context, in *gqlmodel.DataSetFilter, orderBy *gqlmodel.DataSetOrder, args relay.Args, atLeast *string) (*gqlmodel.DataSetConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	f, err := filter(in)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	o := order(orderBy)
	list, err := relay.NewList(a.Sealer, v.Tenant, "dataSets", f, o)
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	viewer := projaccess.FilterOf(v.Grants)
	rows, err := a.Queries.List(ctx, viewer, f, o, p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.DataSetConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.Count(ctx, viewer, f) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows,
		func(s dataset.State) page.Key { return proj.Key(o.Column, s) }, Show,
		func(cursor string, n *gqlmodel.DataSet) *gqlmodel.DataSetEdge {
			return &gqlmodel.DataSetEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

func order(in *gqlmodel.DataSetOrder) page.Order {
	o := page.Order{Column: proj.ByUpdated, IDColumn: "t.id", Descending: true}
	if in == nil {
		return o
	}
	if in.Field == gqlmodel.DataSetOrderFieldName {
		o.Column = proj.ByName
	}
	o.Descending = in.Direction == gqlmodel.OrderDirectionDesc
	return o
}

func filter(in *gqlmodel.DataSetFilter) (proj.Filter, error) {
	if in == nil {
		return proj.Filter{}, nil
	}
	var faults fault.List
	f := proj.Filter{
		Project: relay.Optional(relay.Project, in.ProjectID.Value(), &faults, "filter", "projectId"),
		Owner:   relay.Optional(relay.User, in.OwnerID.Value(), &faults, "filter", "ownerId"),
		Cached:  in.Cached.Value(),
	}
	for _, v := range in.Visibilities.Value() {
		f.Visibilities = append(f.Visibilities, int16(projaccess.Reach(access.Visibility(v)))) //nolint:gosec // 0 to 2
	}
	if s := in.Search.Value(); s != nil {
		search, bad := text.Line(0, 100).Clean(*s, "filter", "search")
		faults.Add(bad)
		f.Search = search
	}
	return f, faults.Err()
}
