package live

import (
	"container/list"
	"context"
	"sync"

	"tallyard/domain/es"
)

// keptStates and keptStateBytes bound the states that are kept for subscribers.
const (
	keptStates     = 4096
	keptStateBytes = 64 << 20
)

// folds keeps states by stream and revision, so that a change that goes to a
// thousand subscribers is folded once.
type folds struct {
	mu    sync.Mutex
	items map[foldKey]*list.Element
	order list.List
	bytes int // of all states
	most  int // how many bytes are kept; 0: keptStateBytes
}

type foldKey struct {
	stream   es.StreamID
	revision es.Revision
}

type foldItem struct {
	key   foldKey
	state any
	bytes int
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
	bytes := sizeOf(state)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.items == nil {
		f.items = map[foldKey]*list.Element{}
	}
	if _, ok := f.items[k]; ok {
		return
	}
	most := f.most
	if most == 0 {
		most = keptStateBytes
	}
	f.items[k] = f.order.PushFront(&foldItem{k, state, bytes})
	f.bytes += bytes
	for len(f.items) > keptStates || (f.bytes > most && len(f.items) > 0) {
		last := f.order.Back()
		old := last.Value.(*foldItem)
		delete(f.items, old.key)
		f.bytes -= old.bytes
		f.order.Remove(last)
	}
}

// held is how many bytes the states hold.
func (f *folds) held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
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
