package people

import (
	"context"

	"tallyard/domain/access"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	"tallyard/projections/page"
	proj "tallyard/projections/people"
)

// Members are who belongs to a project, or belonged to it at the moment of the
// past that it is shown as.
func (a *API) Members(ctx context.Context, obj *gqlmodel.Project, args relay.Args) (*gqlmodel.ProjectMemberConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	list, err := relay.NewList(a.Sealer, v.Tenant, "members", obj.ProjectID, obj.At)
	if err != nil {
		return nil, err
	}
	p, err := list.Nested(args)
	if err != nil {
		return nil, err
	}
	rows, err := loader.From(ctx).MembersOf.Load(ctx, loader.MembersAt(obj.ProjectID, obj.At, p))
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.ProjectMemberConnection{Count: func(ctx context.Context) (int, error) {
		return a.Queries.CountMembers(ctx, v.Grants, obj.ProjectID, obj.At)
	}}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows,
		func(m proj.Member) page.Key { return m.User.Key() }, showMember,
		func(cursor string, n *gqlmodel.ProjectMember) *gqlmodel.ProjectMemberEdge {
			return &gqlmodel.ProjectMemberEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

func showMember(m proj.Member) *gqlmodel.ProjectMember {
	role := access.Member
	if m.Admin {
		role = access.ProjectAdmin
	}
	return &gqlmodel.ProjectMember{User: ShowUser(m.User), Role: gqlmodel.Role(role)}
}
