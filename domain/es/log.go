// Package es holds the event-sourcing core: the port to the event log, the
// envelope every event travels in, the registry of event types, and Execute,
// the one way a command changes the log.
//
// The package does no I/O of its own. The log is a port ([Log]) that
// infra/eventstore implements; time and identifiers are handed in.
package es

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/google/uuid"
)

// Revision is the place of an event inside its stream, counted from 0.
// It can't be mixed up with a [Position]: they are different types on purpose.
type Revision int64

// NoRevision is the revision of a stream that has no events.
const NoRevision Revision = -1

// Position is the place of an event in the whole log. Positions grow strictly,
// are sparse, and mean something in one store only: whatever is kept for good
// refers to events by id, never by position.
type Position uint64

// StartPosition lies before the first event of the log.
const StartPosition Position = 0

// Direction tells which way a read goes.
type Direction int

// Directions of a read.
const (
	Forward Direction = iota
	Backward
)

// Everything asks a read for all events that there are.
const Everything = math.MaxInt

// Expected is what a writer believes of the stream it appends to.
type Expected struct {
	kind     expectedKind
	revision Revision
}

type expectedKind int

const (
	expectAny expectedKind = iota
	expectNoStream
	expectExists
	expectRevision
)

// Any appends whatever the stream holds.
func Any() Expected { return Expected{kind: expectAny} }

// NoStream appends only if the stream has no events.
func NoStream() Expected { return Expected{kind: expectNoStream} }

// StreamExists appends only if the stream has events.
func StreamExists() Expected { return Expected{kind: expectExists} }

// At appends only if r is the stream's last revision; At(NoRevision) is NoStream.
func At(r Revision) Expected {
	if r == NoRevision {
		return NoStream()
	}
	return Expected{kind: expectRevision, revision: r}
}

// Match calls the function that fits the expectation and returns its answer.
// It is how an adapter translates it without seeing its inside.
func Match[T any](e Expected, anyRev, noStream, exists func() T, at func(Revision) T) T {
	switch e.kind {
	case expectNoStream:
		return noStream()
	case expectExists:
		return exists()
	case expectRevision:
		return at(e.revision)
	default:
		return anyRev()
	}
}

// String names the expectation for messages.
func (e Expected) String() string {
	return Match(e,
		func() string { return "any" },
		func() string { return "no stream" },
		func() string { return "stream exists" },
		func(r Revision) string { return fmt.Sprintf("revision %d", r) })
}

// Raw is an event as it is handed to the log.
type Raw struct {
	ID       uuid.UUID
	Type     string // stored name, "algorithm.published.v1"
	Data     []byte // JSON
	Metadata []byte // JSON
}

// Recorded is an event as the log gives it back.
type Recorded struct {
	Raw
	Stream   string
	Revision Revision
	Position Position
}

// Written tells where an append ended: the revision and position of its last event.
type Written struct {
	Revision Revision
	Position Position
}

// Errors of a [Log]. Adapters wrap them; callers ask with errors.Is.
var (
	// ErrWrongRevision: the stream is not where the writer expected it.
	ErrWrongRevision = errors.New("wrong expected revision")
	// ErrStreamNotFound: the stream has no events, or was deleted.
	ErrStreamNotFound = errors.New("stream not found")
	// ErrStreamDeleted: the stream was tombstoned and takes no more events.
	ErrStreamDeleted = errors.New("stream deleted")
	// ErrTooLarge: the append is over the store's size limit.
	ErrTooLarge = errors.New("append too large")
	// ErrNoRoom: the store is full and takes no more events until an operator
	// makes room. It passes, but not by trying again.
	ErrNoRoom = errors.New("event store full")
	// ErrUnavailable: the store can't be reached or takes no calls now; the
	// outcome of a write that ends with it is unknown.
	ErrUnavailable = errors.New("event store unavailable")
)

// Filter cuts a subscription to the events of some streams or of some types.
// The zero value lets everything but the store's own "$" events through.
type Filter struct {
	StreamPrefixes []string // streams that start with one of these
	TypePrefixes   []string // or types that start with one of these; not both
}

// MessageKind tells what a [Message] of a subscription is.
type MessageKind int

// Kinds of messages.
const (
	// MessageEvent carries an event.
	MessageEvent MessageKind = iota
	// MessageCheckpoint says that everything up to Position was looked at.
	MessageCheckpoint
	// MessageCaughtUp says that the subscription turned live.
	MessageCaughtUp
)

// Message is one thing a subscription delivers.
type Message struct {
	Kind     MessageKind
	Event    Recorded // of MessageEvent
	Position Position // of MessageEvent and MessageCheckpoint
}

// Subscription follows the log. It reconnects by itself, without a gap and
// without a repetition, and ends only by its context, by Close, or by an error
// that no new attempt can mend.
type Subscription interface {
	// Messages delivers in log order and is closed when the subscription ends.
	Messages() <-chan Message
	// Err tells why Messages was closed; nil after Close.
	Err() error
	// Close ends the subscription and waits for its goroutines.
	Close()
}

// Start tells where a subscription begins.
type Start struct {
	end   bool
	after Position
}

// FromStart begins with the first event of the log.
func FromStart() Start { return Start{} }

// After begins with the first event behind p; After(StartPosition) is FromStart.
func After(p Position) Start { return Start{after: p} }

// FromEnd begins with the next event that is written.
func FromEnd() Start { return Start{end: true} }

// End tells whether the start is the end of the log, and After the position it lies behind.
func (s Start) End() bool { return s.end }

// Position is the position that the subscription begins behind.
func (s Start) Position() Position { return s.after }

// Log is the port to the event store. infra/eventstore implements it, over the
// store's public client. Every call honours its context, and the adapter sets
// a deadline of its own where the context has none.
type Log interface {
	// Append adds events to one stream, all or none. It is retried inside the
	// adapter with the same event ids when the outcome was unknown.
	Append(ctx context.Context, stream string, expected Expected, events ...Raw) (Written, error)
	// ReadStream yields up to limit events from a revision on, inclusive, either way.
	// Backward from NoRevision starts at the last event. A missing stream
	// yields ErrStreamNotFound once.
	ReadStream(ctx context.Context, stream string, from Revision, dir Direction, limit int) iter.Seq2[Recorded, error]
	// ReadAll yields up to limit events behind (Forward) or before (Backward) a
	// position, both exclusive; Backward from StartPosition starts at the end.
	// The store's own "$" events are left out.
	ReadAll(ctx context.Context, from Position, dir Direction, limit int) iter.Seq2[Recorded, error]
	// Subscribe follows the log from start on.
	Subscribe(ctx context.Context, start Start, filter Filter) (Subscription, error)
	// Delete ends a stream softly: its events are gone for readers, later
	// appends go on with the old revisions.
	Delete(ctx context.Context, stream string, expected Expected) error
	// Tombstone ends a stream for ever.
	Tombstone(ctx context.Context, stream string, expected Expected) error
	// KeepLast bounds a stream to its last n events ($maxCount).
	KeepLast(ctx context.Context, stream string, n int) error
}
