package algorithm

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	proj "tallyard/projections/algorithm"
	"tallyard/projections/page"
)

// LatestVersion is the newest version that the viewer sees.
func (a *API) LatestVersion(ctx context.Context, obj *gqlmodel.Algorithm) (*gqlmodel.AlgorithmVersion, error) {
	if obj.Past {
		list := obj.Folded.Versions
		m := ShowVersion(row(obj.Folded, list[len(list)-1])) // Cut leaves none without versions
		m.Past = true
		return m, nil
	}
	v, err := loader.From(ctx).Latest.Load(ctx, obj.Folded.ID)
	if err != nil || v == nil {
		return nil, err
	}
	return ShowVersion(*v), nil
}

// VersionsOf is the list of an algorithm's versions.
func (a *API) VersionsOf(ctx context.Context, obj *gqlmodel.Algorithm, args relay.Args, published bool) (*gqlmodel.AlgorithmVersionConnection, error) {
	l := loader.From(ctx)
	list, err := relay.NewList(a.Sealer, obj.Folded.Tenant, "versions", obj.Folded.ID, published, obj.Past)
	if err != nil {
		return nil, err
	}
	p, err := list.Nested(args)
	if err != nil {
		return nil, err
	}
	if obj.Past {
		return pastVersions(list, args, p, obj.Folded, published), nil
	}
	rows, err := l.VersionsOf.Load(ctx, loader.VersionsOf(obj.Folded.ID, published, p))
	if err != nil {
		return nil, err
	}
	c := versionConnection(list, args, rows, proj.ByCreated)
	c.Count = func(ctx context.Context) (int, error) {
		return a.Queries.CountVersionsOf(ctx, l.Filter, obj.Folded.ID, published)
	}
	return c, nil
}

// pastVersions pages through the versions of a folded algorithm.
func pastVersions(list relay.List, args relay.Args, p page.Page, s algorithm.State, published bool) *gqlmodel.AlgorithmVersionConnection {
	var all []proj.Version
	for _, v := range slices.Backward(s.Versions) {
		if !published || v.Status == algorithm.Published {
			all = append(all, row(s, v))
		}
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
	c := versionConnection(list, args, page.Cut(all[:min(len(all), p.Limit()+1)], p), proj.ByCreated)
	c.Count = func(context.Context) (int, error) { return count, nil }
	return c
}

// Favorited tells whether the viewer likes an algorithm.
func (a *API) Favorited(ctx context.Context, obj *gqlmodel.Algorithm) (bool, error) {
	return loader.From(ctx).Favorites.Load(ctx, obj.Folded.ID)
}

// CanCreateVersion tells whether the viewer may add a version.
func (a *API) CanCreateVersion(ctx context.Context, obj *gqlmodel.Algorithm) (bool, error) {
	v, err := authn.Must(ctx)
	return v.Grants.Changes(access.Thing{Tenant: obj.Folded.Tenant, Project: obj.Folded.Project, Owner: obj.Folded.Owner}), err
}

// Algorithm is the algorithm of a version.
func (a *API) Algorithm(ctx context.Context, obj *gqlmodel.AlgorithmVersion) (*gqlmodel.Algorithm, error) {
	return a.ByID(ctx, obj.Row.Algorithm)
}

// BasedOn is where a version was made from.
func (a *API) BasedOn(obj *gqlmodel.AlgorithmVersion) *gqlmodel.AlgorithmOrigin {
	if obj.Row.BasedOn == nil {
		return nil
	}
	return &gqlmodel.AlgorithmOrigin{Fingerprint: obj.Row.BasedOn.Fingerprint, Origin: *obj.Row.BasedOn}
}

// CanEdit tells whether the viewer may edit a version as it stands (ALG-12).
func (a *API) CanEdit(ctx context.Context, obj *gqlmodel.AlgorithmVersion) (bool, error) {
	return a.can(ctx, obj, algorithm.Created, algorithm.CreateFailed, algorithm.PublishFailed, algorithm.Published)
}

// CanPublish tells whether the viewer may publish a version as it stands (ALG-12).
func (a *API) CanPublish(ctx context.Context, obj *gqlmodel.AlgorithmVersion) (bool, error) {
	return a.can(ctx, obj, algorithm.Created, algorithm.PublishFailed)
}

// CanDelete tells whether the viewer may delete a version as it stands (ALG-12).
func (a *API) CanDelete(ctx context.Context, obj *gqlmodel.AlgorithmVersion) (bool, error) {
	if len(obj.Row.Uses) > 0 {
		return false, nil
	}
	return a.can(ctx, obj, algorithm.Created, algorithm.CreateFailed, algorithm.PublishFailed, algorithm.Published)
}

func (a *API) can(ctx context.Context, obj *gqlmodel.AlgorithmVersion, in ...algorithm.Status) (bool, error) {
	v, err := authn.Must(ctx)
	return v.Grants.Changes(obj.Row.Thing()) && slices.Contains(in, obj.Row.Status), err
}

// HistoryOf is the history of an algorithm, cut to the versions that the viewer sees.
func (a *API) HistoryOf(ctx context.Context, obj *gqlmodel.Algorithm, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	seen, err := a.seen(ctx, v, obj.Folded.ID)
	if err != nil {
		return nil, err
	}
	return a.History.Of(ctx, algorithm.Aggregate.Stream(obj.Folded.Tenant, obj.Folded.ID), first, after, func(e es.Envelope) bool {
		s := e.Subject()
		return s.Kind == algorithm.Category || seen(s.ID)
	})
}

// seen tells which versions of an algorithm the viewer may know of: who reads
// everything and the owner all of them, also those that are gone.
func (a *API) seen(ctx context.Context, v authn.Viewer, id uuid.UUID) (func(uuid.UUID) bool, error) {
	l, err := es.Load(ctx, a.Runtime, algorithm.Aggregate, v.Tenant, id)
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
func (a *API) HistoryOfVersion(ctx context.Context, obj *gqlmodel.AlgorithmVersion, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	return a.History.Of(ctx, algorithm.Aggregate.Stream(obj.Row.Tenant, obj.Row.Algorithm), first, after, func(e es.Envelope) bool {
		return e.Subject().ID == obj.Row.ID
	})
}
