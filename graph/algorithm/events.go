package algorithm

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/live"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/algorithm"
	"tallyard/projections/page"
)

// snapshotRows is how many rows the SNAPSHOT of a list holds.
const snapshotRows = 100

// watched tells which algorithms a subscription is about.
type watched struct {
	id      uuid.UUID
	project uuid.UUID
	scope   proj.Scope
}

// Events is the subscription algorithmEvents.
func (a *API) Events(ctx context.Context, in gqlmodel.AlgorithmEventsFilter, after *string) (<-chan *gqlmodel.AlgorithmEvent, error) {
	w, err := watchedOf(in)
	if err != nil {
		return nil, err
	}
	if w.id != uuid.Nil {
		v, err := authn.Must(ctx)
		if err != nil {
			return nil, err
		}
		l, err := es.Load(ctx, a.Runtime, algorithm.Aggregate, v.Tenant, w.id)
		if err != nil {
			return nil, err
		}
		if _, ok := l.State.Cut(v.Grants); !ok {
			return nil, access.Missing().At("filter", "algorithmId")
		}
	}
	return live.Stream(ctx, a.Live, after, live.Source[gqlmodel.AlgorithmEvent]{
		Projections: []string{"algorithm"},
		Categories:  []string{algorithm.Category},
		Snapshot: func(ctx context.Context, at es.Position, cursor string) (*gqlmodel.AlgorithmEvent, error) {
			return a.snapshot(ctx, w, at, cursor)
		},
		Item: func(ctx context.Context, env es.Envelope, cursor string) (*gqlmodel.AlgorithmEvent, error) {
			return a.item(ctx, w, env, cursor)
		},
		Resync: func(cursor string) *gqlmodel.AlgorithmEvent {
			return &gqlmodel.AlgorithmEvent{Cursor: cursor, Kind: gqlmodel.EventKindResync, Algorithms: []*gqlmodel.Algorithm{}}
		},
	})
}

func watchedOf(in gqlmodel.AlgorithmEventsFilter) (watched, error) {
	var faults fault.List
	w := watched{
		id:      filterID(relay.Algorithm, in.AlgorithmID.Value(), "algorithmId", &faults),
		project: filterID(relay.Project, in.ProjectID.Value(), "projectId", &faults),
		scope:   proj.Scope(deref(in.Scope.Value())),
	}
	return w, faults.Err()
}

// snapshot is the state at a position: folded from the log, so that what
// follows fits on it without a gap and without an overlap.
func (a *API) snapshot(ctx context.Context, w watched, at es.Position, cursor string) (*gqlmodel.AlgorithmEvent, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	ev := &gqlmodel.AlgorithmEvent{Cursor: cursor, Kind: gqlmodel.EventKindSnapshot, Algorithms: []*gqlmodel.Algorithm{}}
	if w.id != uuid.Nil {
		l, err := es.LoadUntil(ctx, a.Runtime, algorithm.Aggregate, v.Tenant, w.id, at)
		if err != nil {
			return nil, err
		}
		ev.Algorithm = ShowPast(l.State, v.Grants)
		return ev, nil
	}
	rows, err := a.Queries.List(ctx, projaccess.FilterOf(v.Grants), proj.Filter{Scope: w.scope, Project: w.project},
		page.Order{Column: proj.ByUpdated, IDColumn: "t.id", Descending: true}, page.Page{First: snapshotRows})
	if err != nil {
		return nil, err
	}
	for _, s := range rows.Items {
		l, err := es.LoadUntil(ctx, a.Runtime, algorithm.Aggregate, v.Tenant, s.ID, at)
		if err != nil {
			return nil, err
		}
		if m := ShowPast(l.State, v.Grants); m != nil {
			ev.Algorithms = append(ev.Algorithms, m)
		}
	}
	return ev, nil
}

// item is what an event means to this viewer at this moment: nothing, a
// change, or something coming into view or going out of it.
func (a *API) item(ctx context.Context, w watched, env es.Envelope, cursor string) (*gqlmodel.AlgorithmEvent, error) {
	if w.id != uuid.Nil && env.Root().ID != w.id {
		return nil, nil
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	before, after, err := live.Around(ctx, a.Live, algorithm.Aggregate, env)
	if err != nil {
		return nil, err
	}
	about := env.Subject()
	was, sawBefore := w.sees(v.Grants, before)
	is, seesAfter := w.sees(v.Grants, after)
	if !sawBefore && !seesAfter {
		return nil, nil
	}
	if about.Kind == algorithm.VersionKind && !has(was, about.ID) && !has(is, about.ID) {
		return nil, nil // a version that is the owner's alone
	}
	ev := &gqlmodel.AlgorithmEvent{Cursor: cursor, Kind: gqlmodel.EventKindChanged, Change: a.History.Entry(env), Algorithms: []*gqlmodel.Algorithm{}}
	switch {
	case !sawBefore:
		ev.Kind = gqlmodel.EventKindCreated
	case !seesAfter:
		ev.Kind = gqlmodel.EventKindRemoved
	}
	if seesAfter {
		ev.Algorithm = ShowPast(after, v.Grants)
		ev.AlgorithmVersion = ShowPastVersion(after, about.ID, v.Grants)
	}
	return ev, nil
}

func has(s algorithm.State, version uuid.UUID) bool {
	_, ok := s.Version(version)
	return ok
}

// sees cuts an algorithm to what the viewer sees of what is watched.
func (w watched) sees(g access.Grants, s algorithm.State) (algorithm.State, bool) {
	cut, ok := s.Cut(g)
	if !ok || (w.project != uuid.Nil && s.Project != w.project) {
		return cut, false
	}
	switch w.scope {
	case proj.ScopeGlobal:
		return cut, s.Whole().Visibility == access.Global
	case proj.ScopeGroup:
		return cut, s.Whole().Visibility == access.Group && g.In(s.Project)
	case proj.ScopePersonal:
		return cut, s.Owner == g.User
	}
	return cut, true
}
