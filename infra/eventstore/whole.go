package eventstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"tallyard/domain/es"
)

// Event is an event with all that a copy of it needs.
type Event struct {
	es.Recorded
	ContentType string    // a MIME type
	Created     time.Time // when the server took it
}

// Content types that the client can send.
const (
	ContentJSON   = "application/json"
	ContentBinary = "application/octet-stream"
)

// ReadWhole yields every event behind a position up to the end of the log, the
// store's own "$" events too. As other reads it goes on over lost connections.
func (l *Log) ReadWhole(ctx context.Context, from es.Position) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := &reading{log: l}
		r.yield = func(e es.Recorded, err error) bool {
			if err != nil {
				return yield(Event{}, err)
			}
			return yield(Event{Recorded: e, ContentType: r.original.ContentType, Created: r.original.CreatedDate}, nil)
		}
		r.open = func(ctx context.Context, c *esdb.Client) (*esdb.ReadStream, error) {
			return c.ReadAll(ctx, esdb.ReadAllOptions{Direction: esdb.Forwards, From: allPosition(from, es.Forward)}, math.MaxInt64)
		}
		r.each = func(e es.Recorded) (deliver, more bool) {
			// The server gives the event at from itself, too.
			if from != es.StartPosition && e.Position <= from {
				return false, true
			}
			from = e.Position
			return true, true
		}
		r.run(ctx, "read the whole log")
	}
}

// EventAt gives the event at a position, ok false where none is. It asks for
// that position itself: a server may refuse one that lies inside an event.
func (l *Log) EventAt(ctx context.Context, at es.Position) (e Event, ok bool, err error) {
	r := &reading{log: l}
	r.yield = func(found es.Recorded, failed error) bool {
		if err = failed; err == nil && found.Position == at {
			e, ok = Event{Recorded: found, ContentType: r.original.ContentType, Created: r.original.CreatedDate}, true
		}
		return false
	}
	r.open = func(ctx context.Context, c *esdb.Client) (*esdb.ReadStream, error) {
		return c.ReadAll(ctx, esdb.ReadAllOptions{Direction: esdb.Forwards, From: allPosition(at, es.Forward)}, 1)
	}
	r.each = func(es.Recorded) (deliver, more bool) { return true, false }
	r.run(ctx, "read an event")
	return e, ok, err
}

// LastPosition is the position of the log's last event, StartPosition if it has none.
func (l *Log) LastPosition(ctx context.Context) (es.Position, error) {
	last := es.StartPosition
	var failed error
	r := &reading{log: l}
	r.yield = func(e es.Recorded, err error) bool {
		last, failed = e.Position, err
		return false
	}
	r.open = func(ctx context.Context, c *esdb.Client) (*esdb.ReadStream, error) {
		return c.ReadAll(ctx, esdb.ReadAllOptions{Direction: esdb.Backwards, From: esdb.End{}}, 1)
	}
	r.each = func(es.Recorded) (deliver, more bool) { return true, false }
	r.run(ctx, "read the end of the log")
	return last, failed
}

// AppendWhole is Append with the events' content types. A type that the client
// can't send becomes [ContentBinary].
func (l *Log) AppendWhole(ctx context.Context, stream string, expected es.Expected, events ...Event) (es.Written, error) {
	data := make([]esdb.EventData, len(events))
	for i, e := range events {
		if e.ID == uuid.Nil || e.Type == "" {
			return es.Written{}, fmt.Errorf("append to %s: event %d has no id or no type", stream, i)
		}
		data[i] = esdb.EventData{EventID: e.ID, EventType: e.Type, ContentType: esdb.ContentTypeBinary, Data: e.Data, Metadata: e.Metadata}
		if e.ContentType == ContentJSON {
			data[i].ContentType = esdb.ContentTypeJson
		}
	}
	return l.appendData(ctx, stream, expected, data)
}

// beyond is a revision that no stream reaches.
const beyond es.Revision = 1 << 62

// Head gives the last revision of a stream, [es.NoRevision] if it never had an
// event. Unlike a read it sees streams that were deleted or whose events are
// hidden: it asks to append nothing behind an impossible revision, and the
// refusal tells.
func (l *Log) Head(ctx context.Context, stream string) (es.Revision, error) {
	_, err := l.appendData(ctx, stream, es.At(beyond), nil)
	if current, ok := CurrentRevision(err); ok {
		return current, nil
	}
	if err == nil {
		err = errors.New("the server takes an append behind an impossible revision")
	}
	return es.NoRevision, fmt.Errorf("ask for the end of %s: %w", stream, err)
}

// refusal is how the client words a wrong expectation; what it was told stands nowhere else.
var refusal = regexp.MustCompile(`wrong expected version: expecting '[^']*' but got '([^']*)'`)

// CurrentRevision gives the last revision that the stream had when an append
// was refused with [es.ErrWrongRevision].
func CurrentRevision(err error) (es.Revision, bool) {
	if !errors.Is(err, es.ErrWrongRevision) {
		return es.NoRevision, false
	}
	m := refusal.FindStringSubmatch(err.Error())
	if m == nil {
		return es.NoRevision, false
	}
	if m[1] == "no_stream" {
		return es.NoRevision, true
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return es.Revision(n), err == nil
}
