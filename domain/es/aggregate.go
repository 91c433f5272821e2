package es

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
)

// Aggregate tells how the events of one kind of stream fold into a state.
type Aggregate[S any] struct {
	// Category is the first part of the stream's name and the kind of its Ref.
	Category string
	// Evolve applies one event and returns the new state. It is pure and never
	// changes what the old state points to: states are shared.
	Evolve func(S, Envelope) S
	// Fold is raised when Evolve or S changes; it makes old snapshots void.
	Fold int
	// Cached keeps the folded state in memory by revision, for streams that
	// are asked for on every request; only what was added since is read.
	Cached bool
}

// Stream names the aggregate's stream.
func (a Aggregate[S]) Stream(tenant, id uuid.UUID) StreamID {
	return StreamOf(a.Category, tenant, id)
}

// Loaded is a state and where it was read.
type Loaded[S any] struct {
	State    S
	Revision Revision   // NoRevision: the stream does not exist
	Position Position   // of the last event
	seen     []Envelope // the events of the command that was looked for
	last     uuid.UUID  // id of the last event
	since    int        // events behind the snapshot
}

// Exists tells whether the stream has events.
func (l Loaded[S]) Exists() bool { return l.Revision != NoRevision }

// Load folds an aggregate from the log.
func Load[S any](ctx context.Context, rt *Runtime, a Aggregate[S], tenant, id uuid.UUID) (Loaded[S], error) {
	return load(ctx, rt, a, a.Stream(tenant, id), uuid.Nil)
}

// LoadUntil folds an aggregate up to and including a position, for answers
// about the past. Snapshots and caches are left aside.
func LoadUntil[S any](ctx context.Context, rt *Runtime, a Aggregate[S], tenant, id uuid.UUID, until Position) (Loaded[S], error) {
	l := Loaded[S]{Revision: NoRevision}
	for env, err := range Events(ctx, rt, a.Stream(tenant, id), 0) {
		if err != nil {
			return l, err
		}
		if env.Position > until {
			break
		}
		l.apply(a, env)
	}
	return l, nil
}

// Events yields a stream's decoded events from a revision on; nothing when it does not exist.
func Events(ctx context.Context, rt *Runtime, stream StreamID, from Revision) func(yield func(Envelope, error) bool) {
	return func(yield func(Envelope, error) bool) {
		for rec, err := range rt.Log.ReadStream(ctx, stream.String(), from, Forward, Everything) {
			if errors.Is(err, ErrStreamNotFound) {
				return
			}
			if err != nil {
				yield(Envelope{}, err)
				return
			}
			env, err := rt.Registry.Decode(rec)
			if !yield(env, err) || err != nil {
				return
			}
		}
	}
}

func (l *Loaded[S]) apply(a Aggregate[S], env Envelope) {
	l.State = a.Evolve(l.State, env)
	l.Revision, l.Position, l.last = env.Revision, env.Position, env.ID
	l.since++
}

// load folds a stream, from a snapshot or the cache where there is one. With a
// command id it also looks for that command's events, over the whole stream.
func load[S any](ctx context.Context, rt *Runtime, a Aggregate[S], stream StreamID, command uuid.UUID) (Loaded[S], error) {
	l := Loaded[S]{Revision: NoRevision}
	name := stream.String()
	switch {
	case command != uuid.Nil: // the command may lie in what a snapshot skips
	case a.Cached:
		if c, ok := rt.cache.get(name); ok {
			l = c.(Loaded[S]) //nolint:forcetypeassert // only this function puts, keyed by the aggregate's category
		}
	default:
		if restored, ok, err := restore(ctx, rt, a, stream); ok || err != nil {
			return restored, err
		}
	}
	l.since = 0
	for env, err := range Events(ctx, rt, stream, l.Revision+1) {
		if err != nil {
			return l, err
		}
		l.apply(a, env)
		if command != uuid.Nil && env.Meta.Command == command {
			l.seen = append(l.seen, env)
		}
	}
	if a.Cached && command == uuid.Nil {
		rt.cache.put(name, l)
	}
	return l, nil
}

// restore folds a stream from its snapshot; false when there is none that fits.
// A snapshot is an aid only: one that can't be read, or that was made of another
// history (the log was restored from a backup or exchanged), is left aside.
func restore[S any](ctx context.Context, rt *Runtime, a Aggregate[S], stream StreamID) (Loaded[S], bool, error) {
	var none Loaded[S]
	if rt.Snapshots == nil {
		return none, false, nil
	}
	rev, data, ok, err := rt.Snapshots.Load(ctx, stream.String(), a.Fold)
	var s snapshot[S]
	if err == nil && ok {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		rt.Logger.WarnContext(ctx, "snapshot not readable, folding the whole stream", "stream", stream.String(), "error", err)
	}
	if err != nil || !ok {
		return none, false, ctx.Err()
	}
	// The event that the snapshot ends with is read once more: it tells that
	// this is the history the snapshot was made of, and where it lies in this store.
	l, fits := Loaded[S]{State: s.State, Revision: NoRevision}, false
	for env, err := range Events(ctx, rt, stream, rev) {
		switch {
		case err != nil:
			return l, true, err
		case fits:
			l.apply(a, env)
		case env.Revision != rev || env.ID != s.Event:
			return none, false, nil
		default:
			fits, l.Revision, l.Position, l.last = true, env.Revision, env.Position, env.ID
		}
	}
	return l, fits, nil
}

// snapshot is what is kept of a folded stream.
type snapshot[S any] struct {
	State S         `json:"state"`
	Event uuid.UUID `json:"event"` // the last one that is in it
}

// keep saves a snapshot when enough events came since the last one.
func keep[S any](ctx context.Context, rt *Runtime, a Aggregate[S], stream StreamID, l Loaded[S]) {
	if rt.Snapshots == nil || a.Cached || l.since < SnapshotEvery {
		return
	}
	data, err := json.Marshal(snapshot[S]{State: l.State, Event: l.last})
	if err == nil {
		err = rt.Snapshots.Save(ctx, stream.String(), l.Revision, a.Fold, data)
	}
	if err != nil {
		rt.Logger.WarnContext(ctx, "snapshot not saved", "stream", stream.String(), "error", err)
	}
}

// LoadRevision folds an aggregate up to and including a revision.
func LoadRevision[S any](ctx context.Context, rt *Runtime, a Aggregate[S], tenant, id uuid.UUID, until Revision) (Loaded[S], error) {
	l := Loaded[S]{Revision: NoRevision}
	for env, err := range Events(ctx, rt, a.Stream(tenant, id), 0) {
		if err != nil {
			return l, err
		}
		if env.Revision > until {
			break
		}
		l.apply(a, env)
	}
	return l, nil
}
