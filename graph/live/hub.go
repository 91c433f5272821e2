// Package live feeds subscriptions from the log. Each API process follows the
// log once and keeps the newest events; a subscriber reads them from there, or
// from the log itself when it resumes from a cursor or fell behind. So a slow
// subscriber costs nobody else anything, and none ever misses an event (LIV).
package live

import (
	"context"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/graph/relay"
)

// keptEvents and keptBytes are how many of the newest events are kept for
// subscribers, and how much memory they may hold; who is further behind reads
// the log.
const (
	keptEvents = 8192
	keptBytes  = 64 << 20
)

// Waiter waits until a read model has reached a position.
type Waiter interface {
	Await(ctx context.Context, p es.Position, projections ...string) error
}

// Hub follows the log for all subscribers of a process.
type Hub struct {
	Runtime *es.Runtime
	Sealer  *relay.Sealer
	Waiter  Waiter
	Logger  *slog.Logger
	// Store is the identity of the log, part of every cursor.
	Store uuid.UUID

	keep      int // how many events are kept; 0: keptEvents
	keepBytes int // how many bytes they may hold; 0: keptBytes

	mu     sync.Mutex
	from   es.Position   // everything behind it is in kept, up to head
	head   es.Position   // the last position that was seen
	last   relay.Live    // the last event that was seen; nothing lies between it and head
	kept   []kept        // ordered by position
	bytes  int           // of all that is kept
	moved  chan struct{} // closed when head moves
	folded folds
	waits  patience
}

// kept is an event with about how many bytes it holds.
type kept struct {
	es.Envelope
	bytes int
}

// Run follows the log until ctx ends. The subscription below mends its
// connection by itself; should it end all the same, it is opened again.
func (h *Hub) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := h.follow(ctx); err != nil && ctx.Err() == nil {
			h.Logger.WarnContext(ctx, "live updates lost the log, trying again", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
	return nil
}

// Ready sets where the hub begins; call it once before Run and before the
// first subscriber.
func (h *Hub) Ready(ctx context.Context) error {
	for rec, err := range h.Runtime.Log.ReadAll(ctx, es.StartPosition, es.Backward, 1) {
		if err != nil {
			return fmt.Errorf("read the head of the log: %w", err)
		}
		h.head, h.last = rec.Position, relay.Live{Position: rec.Position, Event: rec.ID}
	}
	h.from = h.head
	h.moved = make(chan struct{})
	return nil
}

func (h *Hub) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.mu.Lock()
	start := h.head
	h.mu.Unlock()
	sub, err := h.Runtime.Log.Subscribe(ctx, es.After(start), es.Filter{})
	if err != nil {
		return err
	}
	defer sub.Close()
	for msg := range sub.Messages() {
		switch msg.Kind {
		case es.MessageEvent:
			h.add(ctx, msg.Event)
		case es.MessageCheckpoint:
			h.advance(msg.Position)
		}
	}
	return sub.Err()
}

func (h *Hub) add(ctx context.Context, rec es.Recorded) {
	env, err := h.Runtime.Registry.Decode(rec)
	if err != nil {
		// A newer program wrote it: its read model is halted and says so; there
		// is nothing that this one could show of it.
		h.Logger.WarnContext(ctx, "live updates pass over an event", "error", err)
		h.mu.Lock()
		defer h.mu.Unlock()
		if rec.Position > h.head {
			h.reached(rec)
		}
		return
	}
	bytes := sizeOf(env)
	h.mu.Lock()
	defer h.mu.Unlock()
	if rec.Position <= h.head {
		return
	}
	h.kept = append(h.kept, kept{env, bytes})
	h.bytes += bytes
	h.reached(rec)
	h.trim()
}

// reached moves head to an event; h.mu is held.
func (h *Hub) reached(rec es.Recorded) {
	h.head, h.last = rec.Position, relay.Live{Position: rec.Position, Event: rec.ID}
	h.wake()
}

// trim lets go of the oldest events when there are too many, or they are too
// large: of half of them at once, since that is a copy of the rest. h.mu is held.
func (h *Hub) trim() {
	keep, most := h.keep, h.keepBytes
	if keep == 0 {
		keep = keptEvents
	}
	if most == 0 {
		most = keptBytes
	}
	if len(h.kept) <= 2*keep && h.bytes <= most {
		return
	}
	if h.bytes > most {
		most /= 2
	}
	cut := max(len(h.kept)-keep, 0)
	for i := range h.kept {
		if i >= cut && h.bytes <= most {
			break
		}
		h.bytes -= h.kept[i].bytes
		h.from = h.kept[i].Position
		cut = max(cut, i+1)
	}
	h.kept = append([]kept(nil), h.kept[cut:]...)
}

// Held is about how many bytes of memory the kept events and states hold.
func (h *Hub) Held() (events, states int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes, h.folded.held()
}

func (h *Hub) advance(p es.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p > h.head {
		h.head = p
		h.wake()
	}
}

// wake tells waiting subscribers that head moved; h.mu is held.
func (h *Hub) wake() {
	close(h.moved)
	h.moved = make(chan struct{})
}

// Head is the last position that the hub has seen.
func (h *Hub) Head() es.Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head
}

// now is the last position that the hub has seen, and the last event up to it.
// A snapshot's cursor names the event: whether a log has it can be told, while a
// mere position lies in every log that has grown past it.
func (h *Hub) now() (head es.Position, last relay.Live) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head, h.last
}

// Reach waits until the hub has seen a position.
func (h *Hub) Reach(ctx context.Context, p es.Position) error {
	for {
		h.mu.Lock()
		head, moved := h.head, h.moved
		h.mu.Unlock()
		if head >= p {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// after adds the kept events after a position to a queue, as many as it takes,
// and tells how far they were looked at, whether the hub still has everything
// from there on, and what to wait for when there is nothing yet.
func (h *Hub) after(p es.Position, into *queue) (seen es.Position, covered bool, wait <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p < h.from {
		return p, false, nil
	}
	i := sort.Search(len(h.kept), func(i int) bool { return h.kept[i].Position > p })
	if i == len(h.kept) {
		return max(p, h.head), true, h.moved
	}
	for ; i < len(h.kept) && !into.full(); i++ {
		into.add(h.kept[i])
	}
	return p, true, nil
}
