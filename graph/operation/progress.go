package operation

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/operation"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
)

// tick tells how far the running operations in view are, those that moved since
// it was told last. It costs one statement, and none while nothing runs.
func (w *watch) tick(ctx context.Context, then access.Grants, cursor string) ([]*gqlmodel.OperationEvent, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.findRunning(ctx, v.Grants); err != nil {
		return nil, err
	}
	var ids []uuid.UUID
	for id, s := range w.running {
		if w.sees(then, s.state) && w.sees(v.Grants, s.state) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	found, err := w.api.Progress.Find(ctx, v.Tenant, ids)
	if err != nil {
		return nil, err
	}
	var items []*gqlmodel.OperationEvent
	for _, id := range ids {
		s := w.running[id]
		p, ok := found[id]
		if !ok || p == s.last {
			continue
		}
		s.last = p
		ev := newEvent(gqlmodel.EventKindProgress, cursor)
		ev.Operation = showProgress(s.state, p)
		items = append(items, ev)
	}
	return items, nil
}

// findRunning looks up what runs when the first tick comes; from then on the items
// tell. What it finds may be ahead of the items: their events still come, and
// say the same again.
func (w *watch) findRunning(ctx context.Context, g access.Grants) error {
	if w.running != nil {
		return nil
	}
	running := map[uuid.UUID]*sample{}
	add := func(s operation.State) {
		if s.Status == operation.Running && w.sees(g, s) {
			running[s.ID] = &sample{state: s, last: loader.Progress{}}
		}
	}
	if w.id != uuid.Nil {
		s, err := w.api.Handler.Load(ctx, g.Tenant, w.id)
		if err != nil {
			return err
		}
		add(s)
	} else {
		rows, err := w.list(ctx, g, operation.Running)
		if err != nil {
			return err
		}
		for _, s := range rows {
			add(s)
		}
	}
	w.running = running
	return nil
}
