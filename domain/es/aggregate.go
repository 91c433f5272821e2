package es

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
	Revision Revision // NoRevision: the stream does not exist
	Position Position // of the last event
	seen     *Envelope
	since    int // events behind the snapshot
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
	l.Revision, l.Position = env.Revision, env.Position
	l.since++
}

// load folds a stream, from a snapshot or the cache where there is one. With a
// command id it also looks for that command's events, over the whole stream.
func load[S any](ctx context.Context, rt *Runtime, a Aggregate[S], stream StreamID, command uuid.UUID) (Loaded[S], error) {
	l := Loaded[S]{Revision: NoRevision}
	name := stream.String()
	if command == uuid.Nil {
		if a.Cached {
			if c, ok := rt.cache.get(name); ok {
				l = c.(Loaded[S]) //nolint:forcetypeassert // only this function puts, keyed by the aggregate's category
			}
		} else if err := restore(ctx, rt, a, name, &l); err != nil {
			return l, err
		}
	}
	l.since = 0
	for env, err := range Events(ctx, rt, stream, l.Revision+1) {
		if err != nil {
			return l, err
		}
		l.apply(a, env)
		if command != uuid.Nil && env.Meta.Command == command {
			l.seen = &env
		}
	}
	if a.Cached && command == uuid.Nil {
		rt.cache.put(name, l)
	}
	return l, nil
}

func restore[S any](ctx context.Context, rt *Runtime, a Aggregate[S], name string, l *Loaded[S]) error {
	if rt.Snapshots == nil {
		return nil
	}
	rev, data, ok, err := rt.Snapshots.Load(ctx, name, a.Fold)
	if err != nil {
		// The log alone is enough; the snapshot table being away is no reason to refuse.
		rt.Logger.WarnContext(ctx, "snapshot not readable, folding the whole stream", "stream", name, "error", err)
		return ctx.Err()
	}
	if !ok {
		return nil
	}
	var s snapshot[S]
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("snapshot of %s: %w", name, err)
	}
	l.State, l.Revision, l.Position = s.State, rev, s.Position
	return nil
}

// snapshot is what is kept of a folded stream.
type snapshot[S any] struct {
	State    S        `json:"state"`
	Position Position `json:"position"`
}

// keep saves a snapshot when enough events came since the last one.
func keep[S any](ctx context.Context, rt *Runtime, a Aggregate[S], stream StreamID, l Loaded[S]) {
	if rt.Snapshots == nil || a.Cached || l.since < SnapshotEvery {
		return
	}
	data, err := json.Marshal(snapshot[S]{State: l.State, Position: l.Position})
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
