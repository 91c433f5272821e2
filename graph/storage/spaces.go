package storage

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/storage"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/storage"
)

// Show is a space of the read model.
func (a *API) Show(s storage.State) *gqlmodel.StorageSpace {
	m := &gqlmodel.StorageSpace{
		ID: relay.Of(relay.StorageSpace, s.ID), Kind: gqlmodel.StorageSpaceKind(s.Kind), Zone: s.Zone,
		CreatedAt: s.Created, Version: int32(s.Version), Folded: s, //nolint:gosec // far below 2^31
	}
	if most, limited := a.Handler.Limits.Limit(s); limited {
		m.QuotaBytes = &most
	}
	return m
}

// usage is that of a space, by the loaders; nil until it was counted.
func usage(ctx context.Context, obj *gqlmodel.StorageSpace) (*loader.Usage, error) {
	return loader.From(ctx).Usage.Load(ctx, obj.Folded.ID)
}

// UsedBytes is how much a space holds.
func (a *API) UsedBytes(ctx context.Context, obj *gqlmodel.StorageSpace) (*int64, error) {
	u, err := usage(ctx, obj)
	if err != nil || u == nil {
		return nil, err
	}
	return &u.Bytes, nil
}

// CountedAt is when a space was counted last.
func (a *API) CountedAt(ctx context.Context, obj *gqlmodel.StorageSpace) (*time.Time, error) {
	u, err := usage(ctx, obj)
	if err != nil || u == nil {
		return nil, err
	}
	return &u.CountedAt, nil
}

// CanSetQuota tells whether the viewer says how much a space may hold.
func (a *API) CanSetQuota(ctx context.Context, obj *gqlmodel.StorageSpace) (bool, error) {
	v, err := authn.Must(ctx)
	return err == nil && storage.MustSetQuota(v.Grants, obj.Folded) == nil, err
}

// List is the query storageSpaces.
func (a *API) List(ctx context.Context, in *gqlmodel.StorageSpaceFilter, args relay.Args, atLeast *string) (*gqlmodel.StorageSpaceConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	filter, err := spaceFilter(in)
	if err != nil {
		return nil, err
	}
	list, err := relay.NewList(a.Sealer, v.Tenant, "storageSpaces", filter)
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	viewer := projaccess.FilterOf(v.Grants)
	rows, err := a.Queries.List(ctx, viewer, filter, proj.Oldest, p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.StorageSpaceConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.Count(ctx, viewer, filter) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows, proj.Key, a.Show,
		func(cursor string, n *gqlmodel.StorageSpace) *gqlmodel.StorageSpaceEdge {
			return &gqlmodel.StorageSpaceEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

func spaceFilter(in *gqlmodel.StorageSpaceFilter) (proj.Filter, error) {
	var f proj.Filter
	if in == nil {
		return f, nil
	}
	for _, k := range in.Kinds.Value() {
		f.Kinds = append(f.Kinds, string(k))
	}
	if in.ProjectID.Value() == nil {
		return f, nil
	}
	id, bad := relay.Expect(relay.Project, *in.ProjectID.Value(), "filter", "projectId")
	if bad != nil {
		return f, bad
	}
	f.Project = id.UUID
	return f, nil
}

// Get is the query storageSpace. A space is for its past what it is now for
// the viewer: only who may use it sees it.
func (a *API) Get(ctx context.Context, id string, atLeast *string, asOf *time.Time, asOfPosition *string) (*gqlmodel.StorageSpace, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	at, past, err := a.History.Moment(ctx, asOf, asOfPosition)
	if err != nil {
		return nil, err
	}
	parsed, ok := relay.Parse(id)
	if !ok || parsed.Kind != relay.StorageSpace {
		return nil, nil
	}
	m, err := a.ByID(ctx, parsed.UUID)
	if err != nil || m == nil || !past {
		return m, err
	}
	// Nobody ever set a quota: the space is as it was made. So its first event
	// tells, and a space of a million uploads is read as fast.
	if m.Version == 0 {
		l, err := es.LoadRevision(ctx, a.Runtime, storage.Aggregate, v.Tenant, parsed.UUID, 0)
		if err != nil || !l.State.Exists() || l.Position > at {
			return nil, err
		}
		return a.Show(l.State), nil
	}
	l, err := es.LoadUntil(ctx, a.Runtime, storage.Aggregate, v.Tenant, parsed.UUID, at)
	if err != nil || !l.State.Exists() {
		return nil, err
	}
	return a.Show(l.State), nil
}

// HistoryOf is what happened in a space.
func (a *API) HistoryOf(ctx context.Context, obj *gqlmodel.StorageSpace, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	return a.History.Of(ctx, storage.Aggregate.Stream(obj.Folded.Tenant, obj.Folded.ID), first, after, nil)
}

// ByID is a space in which the viewer may read, by the loaders.
func (a *API) ByID(ctx context.Context, id uuid.UUID) (*gqlmodel.StorageSpace, error) {
	s, err := loader.From(ctx).Spaces.Load(ctx, id)
	if err != nil || s == nil {
		return nil, err
	}
	return a.Show(*s), nil
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
	return a.Show(s), nil
}
