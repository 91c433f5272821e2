package live

import (
	"context"
	"sync/atomic"

	"tallyard/domain/es"
)

// What a feed takes at once: so many events, or less when they hold so many
// bytes. It is all that a subscriber keeps who does not read.
const (
	batch      = 256
	batchBytes = 128 << 10
)

// feed reads the log from a position on, for one subscriber: from the hub's
// newest events where it can, from the log where it must.
type feed struct {
	hub *Hub
	at  es.Position // everything up to it was delivered
	// replays counts how often the subscriber fell out of what the hub keeps,
	// not counting the first catch-up after a cursor.
	replays int
	live    bool
	queue   queue
}

// queue is what a feed has taken and not delivered yet.
type queue struct {
	events []kept
	bytes  atomic.Int64
}

// full tells whether no more is taken; an empty queue takes an event of any size.
func (q *queue) full() bool { return len(q.events) >= batch || q.bytes.Load() >= batchBytes }

func (q *queue) add(k kept) {
	q.events = append(q.events, k)
	q.bytes.Add(int64(k.bytes))
}

// take gives the first event. What was delivered is held no longer.
func (q *queue) take() es.Envelope {
	k := q.events[0]
	q.events[0] = kept{}
	if q.events = q.events[1:]; len(q.events) == 0 {
		q.events = nil // who waits for the next one holds nothing
	}
	q.bytes.Add(-int64(k.bytes))
	return k.Envelope
}

// next gives the next event of the log.
func (f *feed) next(ctx context.Context) (es.Envelope, error) {
	for len(f.queue.events) == 0 {
		if err := ctx.Err(); err != nil {
			return es.Envelope{}, err
		}
		seen, covered, wait := f.hub.after(f.at, &f.queue)
		switch {
		case !covered:
			if f.live {
				f.replays++
				f.live = false
			}
			if err := f.replay(ctx); err != nil {
				return es.Envelope{}, err
			}
		case len(f.queue.events) > 0:
			f.live = true
		default:
			f.live, f.at = true, seen
			select {
			case <-wait:
			case <-ctx.Done():
			}
		}
	}
	env := f.queue.take()
	f.at = env.Position
	return env, nil
}

// replay reads a batch from the log itself.
func (f *feed) replay(ctx context.Context) error {
	for rec, err := range f.hub.Runtime.Log.ReadAll(ctx, f.at, es.Forward, batch) {
		if err != nil {
			return err
		}
		env, err := f.hub.Runtime.Registry.Decode(rec)
		if err != nil {
			f.at = rec.Position // as in Hub.add
			continue
		}
		if f.queue.add(kept{env, sizeOf(env)}); f.queue.full() {
			break
		}
	}
	return nil
}
