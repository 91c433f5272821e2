package eventstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"tallyard/domain/es"
)

// ReadStream implements [es.Log]. A read that loses its connection goes on
// where it was over the next.
func (l *Log) ReadStream(ctx context.Context, stream string, from es.Revision, dir es.Direction, limit int) iter.Seq2[es.Recorded, error] {
	return func(yield func(es.Recorded, error) bool) {
		rest := limit
		r := &reading{log: l, yield: yield}
		r.open = func(ctx context.Context, c *esdb.Client) (*esdb.ReadStream, error) {
			return c.ReadStream(ctx, stream, esdb.ReadStreamOptions{
				Direction: direction(dir), From: streamPosition(from, dir),
			}, count(rest))
		}
		r.each = func(e es.Recorded) (deliver, more bool) {
			if from = e.Revision + 1; dir == es.Backward {
				from = e.Revision - 1
			}
			rest--
			return true, rest > 0 && from >= 0
		}
		if limit > 0 {
			r.run(ctx, "read "+stream)
		}
	}
}

// ReadAll implements [es.Log].
func (l *Log) ReadAll(ctx context.Context, from es.Position, dir es.Direction, limit int) iter.Seq2[es.Recorded, error] {
	return func(yield func(es.Recorded, error) bool) {
		rest := limit
		asked, got := 0, 0
		r := &reading{log: l, yield: yield}
		r.open = func(ctx context.Context, c *esdb.Client) (*esdb.ReadStream, error) {
			// The store's own events count for the server but not for the
			// caller, and forward the server gives the event at from itself.
			asked, got = rest, 0
			if dir == es.Forward && from != es.StartPosition && asked < math.MaxInt {
				asked++
			}
			return c.ReadAll(ctx, esdb.ReadAllOptions{Direction: direction(dir), From: allPosition(from, dir)}, count(asked))
		}
		r.each = func(e es.Recorded) (deliver, more bool) {
			got++
			if dir == es.Forward && e.Position <= from {
				return false, true
			}
			from = e.Position
			if internal(e) {
				return false, true
			}
			rest--
			return true, rest > 0
		}
		// Where the server's count is used up before the caller's, there is more to ask for.
		r.ended = func() bool { return got < asked || rest <= 0 }
		if limit > 0 {
			r.run(ctx, "read the whole log")
		}
	}
}

// reading is one read, over as many connections as it takes.
type reading struct {
	log   *Log
	yield func(es.Recorded, error) bool
	open  func(context.Context, *esdb.Client) (*esdb.ReadStream, error)
	// each takes note of an event, and tells whether to deliver it and whether to go on.
	each func(es.Recorded) (deliver, more bool)
	// ended tells whether the end of the server's answer is the end of the read; nil is yes.
	ended func() bool
	// original is the event that is being delivered, as the client gave it.
	original *esdb.RecordedEvent
}

// errEnough ends a read early.
var errEnough = errors.New("enough")

func (r *reading) run(ctx context.Context, what string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(r.log.base, cancel)
	defer stop()
	wait := newBackoff(20*time.Millisecond, 500*time.Millisecond)
	progress := time.Now()
	var last error
	for {
		moved, c, err := r.attempt(ctx)
		switch {
		case errors.Is(err, errEnough):
			return
		case err == nil && (r.ended == nil || r.ended()):
			return
		case err == nil:
			progress = time.Now()
			continue
		}
		if moved {
			progress = time.Now()
			wait.reset()
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		switch {
		case c == final:
		case r.log.base.Err() != nil:
			err = errClosed
		case ctx.Err() != nil || time.Since(progress) >= r.log.callTimeout || !wait.sleep(ctx):
			err = outOfTime(ctx, last)
		default:
			continue
		}
		r.yield(es.Recorded{}, fmt.Errorf("%s: %w", what, err))
		return
	}
}

// attempt reads over one connection until the server's answer ends.
func (r *reading) attempt(ctx context.Context) (moved bool, c class, err error) {
	l := r.log
	open, opened := l.bounded(ctx)
	defer opened()
	s, err := l.session(open)
	if err != nil {
		return false, again, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := use(open, ctx, s, true, r.open)
	if err == nil {
		defer s.leave()
		defer stream.Close()
		moved, err = r.receive(ctx, cancel, stream)
	}
	if err == nil || errors.Is(err, errEnough) || errors.Is(err, errSplitPosition) {
		return moved, final, err
	}
	c, err = classify(err)
	if c == renew {
		s.retire(err.Error())
	}
	return moved, c, err
}

// receive takes events off the stream. The client's Recv honours the context,
// so it needs no goroutine; a server that sends nothing for the call timeout
// ends the context. The time that the consumer takes doesn't count.
func (r *reading) receive(ctx context.Context, cancel context.CancelFunc, stream *esdb.ReadStream) (moved bool, err error) {
	idle := time.AfterFunc(r.log.callTimeout, cancel)
	defer idle.Stop()
	for {
		resolved, err := guard(r.log, stream.Recv)
		if errors.Is(err, io.EOF) && ctx.Err() == nil {
			return moved, nil
		}
		if err != nil {
			return moved, err
		}
		idle.Stop()
		e, err := recorded(resolved.OriginalEvent())
		if err != nil {
			return moved, err
		}
		moved = true
		r.original = resolved.OriginalEvent()
		deliver, more := r.each(e)
		if deliver && !r.yield(e, nil) || !more {
			return moved, errEnough
		}
		idle.Reset(r.log.callTimeout)
	}
}

// recorded translates an event of the client.
func recorded(e *esdb.RecordedEvent) (es.Recorded, error) {
	if e == nil {
		return es.Recorded{}, errors.New("the event store sent a message without an event")
	}
	if e.Position.Commit != e.Position.Prepare {
		return es.Recorded{}, errSplitPosition
	}
	return es.Recorded{
		Raw:      es.Raw{ID: e.EventID, Type: e.EventType, Data: e.Data, Metadata: e.UserMetadata},
		Stream:   e.StreamID,
		Revision: es.Revision(e.EventNumber),
		Position: es.Position(e.Position.Commit),
	}, nil
}

// internal tells whether an event is the store's own.
func internal(e es.Recorded) bool {
	return strings.HasPrefix(e.Type, "$") || strings.HasPrefix(e.Stream, "$")
}

func direction(d es.Direction) esdb.Direction {
	if d == es.Backward {
		return esdb.Backwards
	}
	return esdb.Forwards
}

func streamPosition(from es.Revision, dir es.Direction) esdb.StreamPosition {
	switch {
	case from >= 0:
		return esdb.Revision(uint64(from))
	case dir == es.Backward:
		return esdb.End{}
	default:
		return esdb.Start{}
	}
}

func allPosition(from es.Position, dir es.Direction) esdb.AllPosition {
	switch {
	case from != es.StartPosition:
		return esdb.Position{Commit: uint64(from), Prepare: uint64(from)}
	case dir == es.Backward:
		return esdb.End{}
	default:
		return esdb.Start{}
	}
}

func count(limit int) uint64 { return uint64(max(limit, 0)) }
