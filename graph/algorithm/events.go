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
func (a *API) Events(ctx context.Context, in gqlmodel.AlgorithmEventsFilter, after, atLeast *string) (<-chan *gqlmodel.AlgorithmEvent, error) {
	w, err := watchedOf(in)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.LiveAtLeast(ctx, atLeast, a.Live); err != nil {
		return nil, err
	}
	return live.Stream(ctx, a.Live, after, live.Source[gqlmodel.AlgorithmEvent]{
		Projections: []string{"algorithm"},
		Categories:  []string{algorithm.Category},
		Begin: func(ctx context.Context, then access.Grants, at es.Position) error {
			return a.begin(ctx, w, then, at)
		},
		Snapshot: func(ctx context.Context, then access.Grants, at es.Position, cursor string) (*gqlmodel.AlgorithmEvent, error) {
			return a.snapshot(ctx, w, then, at, cursor)
		},
		Item: func(ctx context.Context, then access.Grants, env es.Envelope, cursor string) (*gqlmodel.AlgorithmEvent, error) {
			return a.item(ctx, w, then, env, cursor)
		},
		Turn: func(ctx context.Context, t live.Turn) ([]part, uuid.UUID, error) {
			return a.turn(ctx, w, t)
		},
		Resync: func(cursor string) *gqlmodel.AlgorithmEvent {
			return newEvent(gqlmodel.EventKindResync, cursor)
		},
	})
}

func newEvent(kind gqlmodel.EventKind, cursor string) *gqlmodel.AlgorithmEvent {
	return &gqlmodel.AlgorithmEvent{Cursor: cursor, Kind: kind, Algorithms: []*gqlmodel.Algorithm{}, RemovedIds: []string{}}
}

// begin refuses to watch an algorithm that the viewer does not see, unless they
// saw it where they go on: that it went comes to them then.
func (a *API) begin(ctx context.Context, w watched, then access.Grants, at es.Position) error {
	if w.id == uuid.Nil {
		return nil
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return err
	}
	now, err := es.Load(ctx, a.Runtime, algorithm.Aggregate, v.Tenant, w.id)
	if err != nil {
		return err
	}
	if _, sees := w.sees(v.Grants, now.State); sees {
		return nil
	}
	past, err := es.LoadUntil(ctx, a.Runtime, algorithm.Aggregate, v.Tenant, w.id, at)
	if err != nil {
		return err
	}
	if _, saw := w.sees(then, past.State); !saw {
		return access.Missing().At("filter", "algorithmId")
	}
	return nil
}

func watchedOf(in gqlmodel.AlgorithmEventsFilter) (watched, error) {
	var faults fault.List
	w := watched{
		id:      relay.Optional(relay.Algorithm, in.AlgorithmID.Value(), &faults, "filter", "algorithmId"),
		project: relay.Optional(relay.Project, in.ProjectID.Value(), &faults, "filter", "projectId"),
		scope:   proj.Scope(gqlmodel.Deref(in.Scope.Value())),
	}
	return w, faults.Err()
}

// snapshot is the state at a position: folded from the log, so that what
// follows fits on it without a gap and without an overlap.
func (a *API) snapshot(ctx context.Context, w watched, then access.Grants, at es.Position, cursor string) (*gqlmodel.AlgorithmEvent, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	ev := newEvent(gqlmodel.EventKindSnapshot, cursor)
	show := func(id uuid.UUID) (*gqlmodel.Algorithm, error) {
		l, err := es.LoadUntil(ctx, a.Runtime, algorithm.Aggregate, v.Tenant, id, at)
		if err != nil {
			return nil, err
		}
		s, sees := w.seesBoth(then, v.Grants, l.State)
		if !sees {
			return nil, nil
		}
		return ShowPast(s, v.Grants), nil
	}
	if w.id != uuid.Nil {
		ev.Algorithm, err = show(w.id)
		return ev, err
	}
	rows, err := a.Queries.List(ctx, projaccess.TrainingFilterOf(v.Grants), proj.Filter{Scope: w.scope, Project: w.project},
		page.Order{Column: proj.ByUpdated, IDColumn: "t.id", Descending: true}, page.Page{First: snapshotRows})
	if err != nil {
		return nil, err
	}
	for _, s := range rows.Items {
		m, err := show(s.ID)
		if err != nil {
			return nil, err
		}
		if m != nil {
			ev.Algorithms = append(ev.Algorithms, m)
		}
	}
	return ev, nil
}

// item is what an event means to this viewer: nothing, a change, or something
// coming into view or going out of it. That goes by the rights of the place;
// what is shown must be in view at this moment, too.
func (a *API) item(ctx context.Context, w watched, then access.Grants, env es.Envelope, cursor string) (*gqlmodel.AlgorithmEvent, error) {
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
	was, saw := w.sees(then, before)
	is, sees := w.sees(then, after)
	ofVersion := about.Kind == algorithm.VersionKind
	if (!saw && !sees) || (ofVersion && !has(was, about.ID) && !has(is, about.ID)) {
		return nil, nil // out of view, or a version that is the owner's alone
	}
	now, shown := w.sees(v.Grants, is)
	ev := newEvent(gqlmodel.EventKindChanged, cursor)
	switch {
	case !sees:
		ev.Kind, ev.RemovedIds = gqlmodel.EventKindRemoved, []string{relay.Of(relay.Algorithm, env.Root().ID)}
	case ofVersion && !has(is, about.ID):
		ev.Kind, ev.RemovedIds = gqlmodel.EventKindRemoved, []string{VersionID(env.Root().ID, about.ID)}
	case !shown || (ofVersion && !has(now, about.ID)):
		return nil, nil // it went out of view since; that comes
	case !saw:
		ev.Kind = gqlmodel.EventKindCreated
	}
	if ev.Kind != gqlmodel.EventKindRemoved || w.tellsEnd(v.Grants, was, after, about) {
		ev.Change = a.History.Entry(env)
	}
	if shown {
		ev.Algorithm = ShowPast(now, v.Grants)
		ev.AlgorithmVersion = ShowPastVersion(now, about.ID, v.Grants)
	}
	return ev, nil
}

// tellsEnd tells whether a viewer may know what took something out of their
// view: that it was deleted, not what it became for others.
func (w watched) tellsEnd(g access.Grants, was, after algorithm.State, about es.Ref) bool {
	past, saw := w.sees(g, was)
	if about.Kind != algorithm.VersionKind {
		return saw && after.Deleted
	}
	return saw && has(past, about.ID) && !has(after, about.ID)
}

func has(s algorithm.State, version uuid.UUID) bool {
	_, ok := s.Version(version)
	return ok
}

// seesBoth is sees with the rights of two moments.
func (w watched) seesBoth(then, now access.Grants, s algorithm.State) (algorithm.State, bool) {
	cut, sees := w.sees(then, s)
	if !sees {
		return cut, false
	}
	return w.sees(now, cut)
}

// sees cuts an algorithm to what the viewer sees of what is watched.
func (w watched) sees(g access.Grants, s algorithm.State) (algorithm.State, bool) {
	cut, ok := s.Cut(g)
	if !ok || (w.id == uuid.Nil && !g.Trains()) || (w.project != uuid.Nil && s.Project != w.project) {
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
