package model

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/model"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	proj "tallyard/projections/model"
	"tallyard/projections/page"
)

// LatestVersion is the newest version that the viewer sees.
func (a *API) LatestVersion(ctx context.Context, obj *gqlmodel.Model) (*gqlmodel.ModelVersion, error) {
	if obj.Past {
		list := obj.Folded.Versions
		return ShowVersion(row(obj.Folded, list[len(list)-1])), nil // Cut leaves none without versions
	}
	v, err := loader.From(ctx).LatestOfModel.Load(ctx, obj.Folded.ID)
	if err != nil || v == nil {
		return nil, err
	}
	return ShowVersion(*v), nil
}

// VersionsOf is the list of a model's versions.
func (a *API) VersionsOf(ctx context.Context, obj *gqlmodel.Model, args relay.Args) (*gqlmodel.ModelVersionConnection, error) {
	l := loader.From(ctx)
	list, err := relay.NewList(a.Sealer, obj.Folded.Tenant, "versions", obj.Folded.ID, obj.Past)
	if err != nil {
		return nil, err
	}
	p, err := list.Nested(args)
	if err != nil {
		return nil, err
	}
	if obj.Past {
		return pastVersions(list, args, p, obj.Folded), nil
	}
	rows, err := l.VersionsOfModel.Load(ctx, loader.VersionsOf(obj.Folded.ID, false, p))
	if err != nil {
		return nil, err
	}
	c := versionConnection(list, args, rows)
	c.Count = func(ctx context.Context) (int, error) { return a.Queries.CountVersionsOf(ctx, l.Filter, obj.Folded.ID) }
	return c, nil
}

// pastVersions pages through the versions of a folded model.
func pastVersions(list relay.List, args relay.Args, p page.Page, s model.State) *gqlmodel.ModelVersionConnection {
	var all []proj.Version
	for _, v := range slices.Backward(s.Versions) {
		all = append(all, row(s, v))
	}
	count := len(all)
	at := func(k *page.Key) int { return slices.IndexFunc(all, func(v proj.Version) bool { return v.ID == k.ID }) }
	if p.Before != nil {
		if i := at(p.Before); i >= 0 {
			all = all[:i]
		}
	}
	if p.After != nil {
		all = all[at(p.After)+1:]
	}
	if p.Last > 0 {
		slices.Reverse(all)
	}
	c := versionConnection(list, args, page.Cut(all[:min(len(all), p.Limit()+1)], p))
	c.Count = func(context.Context) (int, error) { return count, nil }
	return c
}

// CanImport tells whether the viewer may import another version of a model:
// its owner, from their home.
func (a *API) CanImport(ctx context.Context, obj *gqlmodel.Model) (bool, error) {
	v, err := authn.Must(ctx)
	s := obj.Folded
	return v.Grants.Writes() && s.Owner == v.User() && (v.Grants.In(s.Project) || v.Grants.Admin()), err
}

// CanEdit tells whether the viewer may edit what describes a version.
func (a *API) CanEdit(ctx context.Context, obj *gqlmodel.ModelVersion) (bool, error) {
	v, err := authn.Must(ctx)
	return v.Grants.Changes(obj.Row.Thing()), err
}

// Owns tells whether the viewer may do what is the owner's alone.
func (a *API) Owns(ctx context.Context, obj *gqlmodel.ModelVersion) (bool, error) {
	v, err := authn.Must(ctx)
	return v.Grants.Writes() && obj.Row.Owner == v.User(), err
}

// HistoryOf is the history of a model, cut to the versions that the viewer sees.
func (a *API) HistoryOf(ctx context.Context, obj *gqlmodel.Model, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	seen, err := a.seen(ctx, v, obj.Folded.ID)
	if err != nil {
		return nil, err
	}
	return a.History.Of(ctx, model.Aggregate.Stream(obj.Folded.Tenant, obj.Folded.ID), first, after, func(e es.Envelope) bool {
		s := e.Subject()
		return s.Kind == model.Category || seen(s.ID)
	})
}

// seen tells which versions of a model the viewer may know of: who reads
// everything and the owner all of them, also those that are gone.
func (a *API) seen(ctx context.Context, v authn.Viewer, id uuid.UUID) (func(uuid.UUID) bool, error) {
	l, err := es.Load(ctx, a.Runtime, model.Aggregate, v.Tenant, id)
	if err != nil {
		return nil, err
	}
	if v.Grants.ReadsAll() || l.State.Owner == v.User() {
		return func(uuid.UUID) bool { return true }, nil
	}
	cut, _ := l.State.Cut(v.Grants)
	return func(version uuid.UUID) bool { _, ok := cut.Version(version); return ok }, nil
}

// HistoryOfVersion is the history of one version.
func (a *API) HistoryOfVersion(ctx context.Context, obj *gqlmodel.ModelVersion, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	return a.History.Of(ctx, model.Aggregate.Stream(obj.Row.Tenant, obj.Row.Model), first, after, func(e es.Envelope) bool {
		return e.Subject().ID == obj.Row.ID
	})
}
