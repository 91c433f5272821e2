package approval

import (
	"context"

	"github.com/google/uuid"

	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/live"
	"tallyard/graph/relay"
)

// turnRows is how many requests are looked at at once when rights turn.
const turnRows = 100

// turn is what a change of the viewer's rights means: others' requests come and
// go with the right to read everything, those to decide with the right to do so.
// What comes into view is told by a SNAPSHOT, what goes out of it by its ids.
func (w *watch) turn(ctx context.Context, t live.Turn) (parts []live.Part[gqlmodel.ApprovalEvent], next uuid.UUID, err error) {
	v, err := authn.Must(ctx)
	if err != nil || !t.Turned.All {
		return nil, uuid.Nil, err
	}
	candidates := []uuid.UUID{w.id}
	switch {
	case w.id == uuid.Nil && t.Is.ReadsAll() && (!w.waiting || t.Is.Admin() && t.Is.Writes()):
		return w.anew(ctx, t)
	case w.id == uuid.Nil:
		candidates, err = w.api.Queries.Others(ctx, v.Tenant, v.User(), t.After, turnRows)
		if err != nil || len(candidates) == 0 {
			return nil, uuid.Nil, err
		}
	}
	var lost []string
	for _, id := range candidates {
		s, err := w.api.at(ctx, v.Tenant, id, t.At)
		if err != nil {
			return nil, uuid.Nil, err
		}
		switch saw, sees := w.sees(t.Was, s), w.sees(t.Is, s); {
		case saw && !sees:
			lost = append(lost, relay.Of(relay.Approval, id))
		case sees && !saw:
			return w.anew(ctx, t)
		}
	}
	last := candidates[len(candidates)-1]
	if len(candidates) == turnRows {
		next = last
	}
	if len(lost) > 0 {
		parts = append(parts, live.Part[gqlmodel.ApprovalEvent]{Thing: last, Item: func(cursor string) *gqlmodel.ApprovalEvent {
			ev := newEvent(gqlmodel.EventKindRemoved, cursor)
			ev.RemovedIds = lost
			return ev
		}})
	}
	return parts, next, nil
}

// anew shows what is watched as it is with the new rights.
func (w *watch) anew(ctx context.Context, t live.Turn) ([]live.Part[gqlmodel.ApprovalEvent], uuid.UUID, error) {
	ev, err := w.snapshot(ctx, t.Is, t.At, "")
	if err != nil {
		return nil, uuid.Nil, err
	}
	return []live.Part[gqlmodel.ApprovalEvent]{{Item: func(cursor string) *gqlmodel.ApprovalEvent {
		ev.Cursor = cursor
		return ev
	}}}, uuid.Nil, nil
}
