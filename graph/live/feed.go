package live

import (
	"context"

	"tallyard/domain/es"
)

// batch is how many events a feed takes at once.
const batch = 256

// feed reads the log from a position on, for one subscriber: from the hub's
// newest events where it can, from the log where it must.
type feed struct {
	hub *Hub
	at  es.Position // everything up to it was delivered
	// replays counts how often the subscriber fell out of what the hub keeps,
	// not counting the first catch-up after a cursor.
	replays int
	live    bool
	queue   []es.Envelope
}

// next gives the next event of the log.
func (f *feed) next(ctx context.Context) (es.Envelope, error) {
	for len(f.queue) == 0 {
		if err := ctx.Err(); err != nil {
			return es.Envelope{}, err
		}
		events, seen, covered, wait := f.hub.behind(f.at, batch)
		switch {
		case !covered:
			if f.live {
				f.replays++
				f.live = false
			}
			if err := f.replay(ctx); err != nil {
				return es.Envelope{}, err
			}
		case len(events) > 0:
			f.live, f.queue = true, events
		default:
			f.live, f.at = true, seen
			select {
			case <-wait:
			case <-ctx.Done():
			}
		}
	}
	env := f.queue[0]
	f.queue = f.queue[1:]
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
		f.queue = append(f.queue, env)
	}
	return nil
}
