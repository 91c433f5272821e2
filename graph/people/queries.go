package people

import (
	"context"

	"tallyard/domain/access"
	"tallyard/domain/fault"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	proj "tallyard/projections/people"
)

// ListUsers is the query users.
func (a *API) ListUsers(ctx context.Context, in *gqlmodel.UserFilter, args relay.Args, atLeast *string) (*gqlmodel.UserConnection, error) {
	g, err := a.viewer(ctx, atLeast)
	if err != nil {
		return nil, err
	}
	f, err := userFilter(in)
	if err != nil {
		return nil, err
	}
	list, err := relay.NewList(a.Sealer, g.Tenant, "users", f)
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	rows, err := a.Queries.Users(ctx, g, f, p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.UserConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.CountUsers(ctx, g, f) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows, proj.User.Key, ShowUser,
		func(cursor string, n *gqlmodel.User) *gqlmodel.UserEdge {
			return &gqlmodel.UserEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

// ListProjects is the query projects.
func (a *API) ListProjects(ctx context.Context, args relay.Args, atLeast *string) (*gqlmodel.ProjectConnection, error) {
	g, err := a.viewer(ctx, atLeast)
	if err != nil {
		return nil, err
	}
	list, err := relay.NewList(a.Sealer, g.Tenant, "projects")
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	rows, err := a.Queries.Projects(ctx, g, p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.ProjectConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.CountProjects(ctx, g) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows, proj.Project.Key, ShowProject,
		func(cursor string, n *gqlmodel.Project) *gqlmodel.ProjectEdge {
			return &gqlmodel.ProjectEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

// ListTenants is the query tenants.
func (a *API) ListTenants(ctx context.Context, args relay.Args, atLeast *string) (*gqlmodel.TenantConnection, error) {
	g, err := a.viewer(ctx, atLeast)
	if err != nil {
		return nil, err
	}
	list, err := relay.NewList(a.Sealer, g.Tenant, "tenants")
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	rows, err := a.Queries.Tenants(ctx, g, p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.TenantConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.CountTenants(ctx, g) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows, proj.Tenant.Key, ShowTenant,
		func(cursor string, n *gqlmodel.Tenant) *gqlmodel.TenantEdge {
			return &gqlmodel.TenantEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

// viewer waits for the position asked for and gives the rights of who asks.
func (a *API) viewer(ctx context.Context, atLeast *string) (access.Grants, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return access.Grants{}, err
	}
	return v.Grants, a.Commands.AtLeast(ctx, atLeast)
}

func userFilter(in *gqlmodel.UserFilter) (proj.UserFilter, error) {
	var f proj.UserFilter
	if in == nil {
		return f, nil
	}
	var faults fault.List
	f.Project = relay.Optional(relay.Project, in.ProjectID.Value(), &faults, "filter", "projectId")
	if s := in.State.Value(); s != nil {
		f.State = user.Status(*s)
	}
	return f, faults.Err()
}
