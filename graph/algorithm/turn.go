package algorithm

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/live"
	"tallyard/graph/relay"
	proj "tallyard/projections/algorithm"
)

const (
	// turnRows is how many algorithms are looked at at once when rights turn.
	turnRows = 100
	// removedAtOnce is after how many ids a REMOVED item is full; the last
	// algorithm in it may have more.
	removedAtOnce = 100
)

type part = live.Part[gqlmodel.AlgorithmEvent]

// turn is what a change of the viewer's rights means to a subscription. What
// goes out of view is told by its ids alone, what comes into view by a SNAPSHOT.
// Which algorithms were in view is not kept: the read model knows how far each
// version reached at that place of the log.
func (a *API) turn(ctx context.Context, w watched, t live.Turn) (parts []part, next uuid.UUID, err error) {
	states, err := a.touched(ctx, w, t)
	if err != nil {
		return nil, uuid.Nil, err
	}
	var lost []string
	flush := func(last uuid.UUID) {
		if ids := lost; len(ids) > 0 {
			parts = append(parts, part{Thing: last, Item: func(cursor string) *gqlmodel.AlgorithmEvent {
				ev := newEvent(gqlmodel.EventKindRemoved, cursor)
				ev.RemovedIds = ids
				return ev
			}})
			lost = nil
		}
	}
	gained := false
	for i, s := range states {
		ids, more := w.compare(t, s)
		gained = gained || more
		if lost = append(lost, ids...); len(lost) >= removedAtOnce || i == len(states)-1 {
			flush(s.ID)
		}
	}
	comes, goes := directions(t)
	switch {
	case w.id == uuid.Nil && len(states) == turnRows && (goes || !gained):
		// What comes is told after all that goes.
		return parts, states[turnRows-1].ID, nil
	case gained || (comes && goes && t.After != uuid.Nil):
		ev, err := a.snapshot(ctx, w, t.Is, t.At, "")
		if err != nil {
			return nil, uuid.Nil, err
		}
		parts = append(parts, part{Item: func(cursor string) *gqlmodel.AlgorithmEvent {
			ev.Cursor = cursor
			return ev
		}})
	}
	return parts, uuid.Nil, nil
}

// touched gives the next algorithms that a turn may mean something for, as they
// were at its place.
func (a *API) touched(ctx context.Context, w watched, t live.Turn) ([]algorithm.State, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if w.id != uuid.Nil {
		l, err := es.LoadUntil(ctx, a.Runtime, algorithm.Aggregate, v.Tenant, w.id, t.At)
		return []algorithm.State{l.State}, err
	}
	return a.Queries.Touched(ctx, proj.Turn{
		Tenant: v.Tenant, User: v.User(), Turned: t.Turned, At: t.At, Project: w.project, After: t.After, Limit: turnRows,
	})
}

// compare tells what of an algorithm goes out of view at a turn, and whether
// anything comes.
func (w watched) compare(t live.Turn, s algorithm.State) (lost []string, gained bool) {
	was, saw := w.sees(t.Was, s)
	is, sees := w.sees(t.Is, s)
	if saw && !sees {
		return []string{relay.Of(relay.Algorithm, s.ID)}, false
	}
	if !saw {
		return nil, sees
	}
	for _, v := range was.Versions {
		if !has(is, v.ID) {
			lost = append(lost, VersionID(s.ID, v.ID))
		}
	}
	return lost, len(is.Versions)+len(lost) > len(was.Versions)
}

// directions tells whether a turn can bring anything into view, and whether it
// can take anything out of it.
func directions(t live.Turn) (comes, goes bool) {
	if t.Turned.All {
		comes, goes = t.Is.ReadsAll(), t.Was.ReadsAll()
	}
	if t.Turned.Training {
		comes, goes = comes || t.Is.Trains(), goes || t.Was.Trains()
	}
	for _, id := range t.Turned.Projects {
		comes, goes = comes || t.Is.In(id), goes || t.Was.In(id)
	}
	return comes, goes
}
