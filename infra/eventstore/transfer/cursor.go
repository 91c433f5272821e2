package transfer

import (
	"context"
	"iter"
	"strings"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
)

const (
	metadataPrefix = "$$"
	metadataType   = "$metadata"
	tombstoneType  = "$streamDeleted"
)

// cursor walks through those events of a log that are part of its history.
type cursor struct {
	next    func() (eventstore.Event, error, bool)
	stop    func()
	until   es.Position // the last one to look at
	ahead   *eventstore.Event
	ended   bool
	skipped uint64 // events of the server's own
}

// everywhere is behind every position.
const everywhere = es.Position(1<<64 - 1)

func newCursor(ctx context.Context, log *eventstore.Log, after, until es.Position) *cursor {
	c := &cursor{until: until}
	c.next, c.stop = iter.Pull2(log.ReadWhole(ctx, after))
	return c
}

// peek gives the event that is next, nil at the end.
func (c *cursor) peek() (*eventstore.Event, error) {
	for c.ahead == nil && !c.ended {
		e, err, ok := c.next()
		switch {
		case !ok || err == nil && e.Position > c.until:
			c.ended = true
		case err != nil:
			return nil, err
		case serversOwn(e.Stream):
			c.skipped++
		default:
			c.ahead = &e
		}
	}
	return c.ahead, nil
}

// take steps over the event that peek gave.
func (c *cursor) take() { c.ahead = nil }

// serversOwn tells whether a stream belongs to the server and not to those who use it.
func serversOwn(stream string) bool {
	if base, meta := metadataOf(stream); meta {
		return strings.HasPrefix(base, "$")
	}
	return strings.HasPrefix(stream, "$")
}

// metadataOf names the stream that stream is the metadata of, if it is one.
func metadataOf(stream string) (base string, ok bool) {
	return strings.CutPrefix(stream, metadataPrefix)
}

// Bounds of one append, below what servers take.
const (
	batchEvents = 256
	batchBytes  = 512 << 10
)

// run takes the next events that one append can carry: of one stream, with
// revisions that follow each other, at most n.
func (c *cursor) run(n int) ([]eventstore.Event, error) {
	var run []eventstore.Event
	size := 0
	for len(run) < n {
		e, err := c.peek()
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		size += len(e.Data) + len(e.Metadata)
		if len(run) > 0 {
			last := &run[len(run)-1]
			if size > batchBytes || e.Stream != last.Stream || e.Revision != last.Revision+1 || alone(e) {
				break
			}
		}
		run = append(run, *e)
		c.take()
		if alone(e) {
			break
		}
	}
	return run, nil
}

// alone tells whether an event needs an append of its own.
func alone(e *eventstore.Event) bool {
	return e.Type == tombstoneType || e.Type == metadataType
}
