package live

import (
	"context"
	"slices"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/relay"
	"tallyard/graph/transport"
)

// maxReplays is how often a subscriber may fall out of what the hub keeps
// before it is closed with its cursor.
const maxReplays = 1

// tickEvery is how often Tick is asked.
const tickEvery = time.Second

// Stream runs a subscription: the snapshot, or the replay behind the cursor,
// then every event in order. It ends with ctx.
func Stream[T any](ctx context.Context, h *Hub, after *string, src Source[T]) (<-chan *T, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	s := &stream[T]{hub: h, src: src, tenant: v.Tenant, out: make(chan *T)}
	s.feed.hub = h
	s.feed.at, s.begins = h.now()
	resync := false
	if after != nil {
		if resync, err = s.resume(ctx, *after); err != nil {
			return nil, err
		}
	}
	if s.rights, err = rightsAt(ctx, h.Runtime, v, s.feed.at); err != nil {
		return nil, err
	}
	if src.Begin != nil && !resync {
		view, err := s.viewer(ctx)
		if err != nil {
			return nil, err
		}
		if err := src.Begin(view, s.rights.then, s.feed.at); err != nil {
			return nil, err
		}
	}
	go s.run(ctx, after == nil, resync)
	return s.out, nil
}

type stream[T any] struct {
	hub    *Hub
	src    Source[T]
	tenant uuid.UUID
	out    chan *T
	feed   feed
	begins relay.Live // the last event before the snapshot
	cursor string     // of the last item
	rights rights
	part   relay.Live // where the stream resumes in the middle of an event
}

// resume finds where the cursor lies; true when it is of another store.
func (s *stream[T]) resume(ctx context.Context, after string) (resync bool, err error) {
	l, same, bad := s.hub.Sealer.OpenLive(s.tenant, after, s.hub.Store)
	if bad != nil {
		return false, bad
	}
	s.cursor, s.feed.at = after, l.Position
	if !same {
		return true, nil
	}
	if l.Position == es.StartPosition {
		return false, nil // the log was empty
	}
	if l.Part != uuid.Nil {
		s.part, s.feed.at = l, l.Position-1 // the event comes once more, for the rest of its items
	}
	for rec, err := range s.hub.Runtime.Log.ReadAll(ctx, l.Position-1, es.Forward, 1) {
		return rec.ID != l.Event, err
	}
	return true, nil // the log ends before the cursor
}

func (s *stream[T]) run(ctx context.Context, snapshot, resync bool) {
	defer close(s.out)
	err := s.guarded(ctx, snapshot, resync)
	if err == nil || ctx.Err() != nil {
		return
	}
	transport.End(ctx, err) // a CloseError closes the socket, anything else this subscription
}

// guarded turns a panic of what makes the items into the subscription's error:
// the executor catches what fails in its own goroutines only.
func (s *stream[T]) guarded(ctx context.Context, snapshot, resync bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = graphql.GetOperationContext(ctx).Recover(ctx, p)
		}
	}()
	return s.items(ctx, snapshot, resync)
}

func (s *stream[T]) items(ctx context.Context, snapshot, resync bool) error {
	if resync {
		return s.send(ctx, s.src.Resync(s.cursor))
	}
	if snapshot {
		s.cursor = s.sealed(s.begins)
		// Lists are read from rows. What they lack now would never come: its events
		// lie before the cursor.
		if err := s.hub.rows(ctx, s.feed.at, rowsPatience, s.src.Projections); err != nil {
			return behind(ctx)
		}
		view, err := s.viewer(ctx)
		if err != nil {
			return err
		}
		first, err := s.src.Snapshot(view, s.rights.then, s.feed.at, s.cursor)
		if err != nil {
			return err
		}
		if err := s.send(ctx, first); err != nil {
			return err
		}
	}
	var tick <-chan time.Time
	if s.src.Tick != nil {
		t := time.NewTicker(tickEvery)
		defer t.Stop()
		tick = t.C
	}
	for {
		env, ticked, err := s.wait(ctx, tick)
		switch {
		case err != nil:
			return err
		case ticked:
			err = s.tick(ctx)
		default:
			err = s.event(ctx, env)
		}
		if err != nil {
			return err
		}
	}
}

// wait gives the next event, or tells that it is time to ask Tick.
func (s *stream[T]) wait(ctx context.Context, tick <-chan time.Time) (es.Envelope, bool, error) {
	if tick == nil {
		env, err := s.feed.next(ctx)
		return env, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		env es.Envelope
		err error
	}
	got := make(chan result, 1)
	go func() {
		env, err := s.feed.next(ctx)
		got <- result{env, err}
	}()
	select {
	case r := <-got:
		return r.env, false, r.err
	case <-tick:
		cancel()
		// The feed may have an event at this very moment; it must not be lost.
		if r := <-got; r.err == nil {
			return r.env, false, nil
		}
		return es.Envelope{}, true, nil
	}
}

func (s *stream[T]) tick(ctx context.Context) error {
	view, err := s.viewer(ctx)
	if err != nil {
		return err
	}
	items, err := s.src.Tick(view, s.rights.then, s.cursor)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := s.send(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream[T]) event(ctx context.Context, env es.Envelope) error {
	if env.Stream == s.rights.stream {
		part := uuid.Nil
		if env.ID == s.part.Event {
			part = s.part.Part
		}
		if err := s.turn(ctx, env, part); err != nil {
			return err
		}
	}
	if !s.matters(env.Stream) {
		return nil
	}
	if s.src.FromRows {
		if err := s.hub.rows(ctx, env.Position, rowsPatience, s.src.Projections); err != nil {
			return behind(ctx)
		}
	} else if err := s.hub.ready(ctx, env.Position, s.src.Projections); err != nil {
		return err
	}
	view, err := s.viewer(ctx)
	if err != nil {
		return err
	}
	cursor := s.sealed(relay.Live{Position: env.Position, Event: env.ID})
	item, err := s.src.Item(view, s.rights.then, env, cursor)
	if err != nil || item == nil {
		return err
	}
	return s.sendAt(ctx, item, cursor)
}

// matters tells whether the events of a stream are looked at.
func (s *stream[T]) matters(id es.StreamID) bool {
	if len(s.src.Categories) > 0 && !slices.Contains(s.src.Categories, id.Category) {
		return false
	}
	if len(s.src.Tenants) > 0 {
		return slices.Contains(s.src.Tenants, id.Tenant)
	}
	return id.Tenant == s.tenant
}

// behind ends a subscription that can't go on without the read model.
func behind(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fault.New(fault.Stale, fault.CodeStaleRead, "The read model is behind; subscribe again in a moment, with the last cursor if there is one.")
}

func (s *stream[T]) sealed(at relay.Live) string {
	at.Store = s.hub.Store
	return s.hub.Sealer.LiveCursor(s.tenant, at)
}

// sendAt sends an item with a cursor of its own. The stream's cursor moves only
// then: who is closed before that resumes with this very item.
func (s *stream[T]) sendAt(ctx context.Context, item *T, cursor string) error {
	err := s.send(ctx, item)
	if err == nil {
		s.cursor = cursor
	}
	return err
}

// send hands an item to the transport, which is slow when its client is.
func (s *stream[T]) send(ctx context.Context, item *T) error {
	if s.feed.replays > maxReplays {
		return &transport.CloseError{Code: transport.CloseTooSlow, Reason: s.cursor}
	}
	select {
	case s.out <- item:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
