package embedded

import "github.com/google/uuid"

// expectation is what a writer believes of a stream.
type expectation struct {
	kind     expectationKind
	revision int64 // of expectRevision
}

type expectationKind int

const (
	expectAny expectationKind = iota
	expectNoStream
	expectExists
	expectRevision
)

// expected is the revision that an exact expectation names.
func (x expectation) expected() int64 {
	if x.kind == expectRevision {
		return x.revision
	}
	return noRevision
}

// verdict is what becomes of an append.
type verdict int

const (
	// verdictWrite: append the events.
	verdictWrite verdict = iota
	// verdictRepeat: they are there already; answer as the first time.
	verdictRepeat
	// verdictWrong: the stream is not where the writer believes it is.
	verdictWrong
	// verdictDeleted: the stream takes no more events.
	verdictDeleted
	// verdictHistory: ask the log whether the events at the revisions behind
	// the expected one are these. If so it is verdictRepeat, else verdictWrong
	// or, where startsAnew, verdictWrite.
	verdictHistory
)

// knownEvent tells where an event id was seen in a stream.
type knownEvent struct {
	revision int64
	position uint64
}

// known looks an event id up among the recent ones of a stream.
type known func(stream string, id uuid.UUID) (knownEvent, bool)

// judge decides an append from the stream's head and the recent event ids. It
// is the whole of the append rules but for the comparison that verdictHistory
// asks for. With verdictRepeat it also tells where the last event lies.
func judge(h *head, x expectation, stream string, ids []uuid.UUID, lookUp known) (verdict, knownEvent) {
	if h.tombstoned {
		return verdictDeleted, knownEvent{}
	}
	switch x.kind {
	case expectAny:
		return judgeByID(h, stream, ids, lookUp)
	case expectExists:
		if h.last == noRevision {
			return verdictWrong, knownEvent{}
		}
		if h.deleted() {
			return verdictDeleted, knownEvent{}
		}
		return judgeByID(h, stream, ids, lookUp)
	}
	switch expected := x.expected(); {
	case expected == h.last:
		// Even if an id was used before: the revision is the stronger promise.
		return verdictWrite, knownEvent{}
	case expected > h.last:
		return verdictWrong, knownEvent{}
	case len(ids) == 0 && !startsAnew(h, x):
		return verdictWrong, knownEvent{}
	case len(ids) == 0:
		return verdictWrite, knownEvent{}
	default:
		return verdictHistory, knownEvent{}
	}
}

// startsAnew tells whether a writer that expects no stream may go on with a
// stream that was deleted softly.
func startsAnew(h *head, x expectation) bool {
	return x.kind == expectNoStream && h.deleted()
}

// judgeByID decides where the writer named no revision: a repetition is known
// only by its event ids.
func judgeByID(h *head, stream string, ids []uuid.UUID, lookUp known) (verdict, knownEvent) {
	if len(ids) == 0 {
		return verdictRepeat, knownEvent{revision: h.last, position: h.lastPosition}
	}
	found := 0
	var last knownEvent
	for _, id := range ids {
		if k, ok := lookUp(stream, id); ok {
			found++
			last = k
		}
	}
	switch found {
	case 0:
		return verdictWrite, knownEvent{}
	case len(ids):
		return verdictRepeat, last
	default:
		return verdictWrong, knownEvent{}
	}
}

// judgeDelete decides a delete or a tombstone, which have no event ids.
func judgeDelete(h *head, x expectation, soft bool) verdict {
	if h.tombstoned {
		return verdictDeleted
	}
	switch x.kind {
	case expectAny:
		// Nothing is there to delete, not even metadata. A tombstone is a
		// statement about the name and needs no stream.
		if soft && h.last == noRevision && h.changed == 0 {
			return verdictWrong
		}
		return verdictWrite
	case expectExists:
		if h.last == noRevision {
			return verdictWrong
		}
		if h.deleted() {
			return verdictDeleted
		}
		return verdictWrite
	}
	if x.expected() == h.last || startsAnew(h, x) {
		return verdictWrite
	}
	return verdictWrong
}
