package live

import (
	"container/list"
	"context"
	"sync"

	"tallyard/domain/es"
)

// keptStates bounds the states that are kept for subscribers.
const keptStates = 4096

// folds keeps states by stream and revision, so that a change that goes to a
// thousand subscribers is folded once.
type folds struct {
	mu    sync.Mutex
	items map[foldKey]*list.Element
	order list.List
}

type foldKey struct {
	stream   es.StreamID
	revision es.Revision
}

type foldItem struct {
	key   foldKey
	state any
}

func (f *folds) get(k foldKey) (any, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.items[k]
	if !ok {
		return nil, false
	}
	f.order.MoveToFront(e)
	return e.Value.(*foldItem).state, true
}

func (f *folds) put(k foldKey, state any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.items == nil {
		f.items = map[foldKey]*list.Element{}
	}
	if _, ok := f.items[k]; ok {
		return
	}
	f.items[k] = f.order.PushFront(&foldItem{k, state})
	for len(f.items) > keptStates {
		last := f.order.Back()
		delete(f.items, last.Value.(*foldItem).key)
		f.order.Remove(last)
	}
}

// Around gives an aggregate right before and right after an event.
func Around[S any](ctx context.Context, h *Hub, a es.Aggregate[S], env es.Envelope) (before, after S, err error) {
	if before, err = stateAt(ctx, h, a, env.Stream, env.Revision-1); err != nil {
		return before, after, err
	}
	k := foldKey{env.Stream, env.Revision}
	if s, ok := h.folded.get(k); ok {
		return before, s.(S), nil
	}
	after = a.Evolve(before, env)
	h.folded.put(k, after)
	return before, after, nil
}

func stateAt[S any](ctx context.Context, h *Hub, a es.Aggregate[S], stream es.StreamID, r es.Revision) (S, error) {
	var none S
	if r < 0 {
		return none, nil
	}
	k := foldKey{stream, r}
	if s, ok := h.folded.get(k); ok {
		return s.(S), nil
	}
	id, err := stream.UUID()
	if err != nil {
		return none, err
	}
	l, err := es.LoadRevision(ctx, h.Runtime, a, stream.Tenant, id, r)
	if err != nil {
		return none, err
	}
	h.folded.put(k, l.State)
	return l.State, nil
}
