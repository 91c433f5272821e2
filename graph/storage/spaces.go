package storage

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/storage"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/storage"
)

// Show is a space of the read model.
func Show(s storage.State) *gqlmodel.StorageSpace {
	return &gqlmodel.StorageSpace{
		ID: relay.Of(relay.StorageSpace, s.ID), Kind: gqlmodel.StorageSpaceKind(s.Kind), Zone: s.Zone,
		CreatedAt: s.Created, OwnerID: s.Owner, ProjectID: s.Project,
	}
}

// List is the query storageSpaces.
func (a *API) List(ctx context.Context, args relay.Args, atLeast *string) (*gqlmodel.StorageSpaceConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	list, err := relay.NewList(a.Sealer, v.Tenant, "storageSpaces")
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	viewer := projaccess.FilterOf(v.Grants)
	rows, err := a.Queries.List(ctx, viewer, proj.Oldest, p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.StorageSpaceConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.Count(ctx, viewer) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows, proj.Key, Show,
		func(cursor string, n *gqlmodel.StorageSpace) *gqlmodel.StorageSpaceEdge {
			return &gqlmodel.StorageSpaceEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

// ByID is a space in which the viewer may read, by the loaders.
func (a *API) ByID(ctx context.Context, id uuid.UUID) (*gqlmodel.StorageSpace, error) {
	s, err := loader.From(ctx).Spaces.Load(ctx, id)
	if err != nil || s == nil {
		return nil, err
	}
	return Show(*s), nil
}

// Home is the viewer's own space; nil before the first file is put there.
func (a *API) Home(ctx context.Context) (*gqlmodel.StorageSpace, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	id, ok, err := a.Handler.FindHome(ctx, v.Tenant, v.User())
	if err != nil || !ok {
		return nil, err
	}
	s, err := a.Handler.Readable(ctx, v.Tenant, v.User(), id)
	if err != nil {
		return nil, err
	}
	return Show(s), nil
}
