package persistent

import (
	"container/list"
	"time"

	"github.com/google/uuid"
)

// Event is what a group hands out.
type Event struct {
	// ID is the id by which consumers answer. Two events may have the same;
	// then the second waits until the first is answered.
	ID uuid.UUID
	// Position is the event's place in the source; of a parked event that is
	// replayed, its revision among the parked.
	Position Position
	// Pin is what a pinning strategy goes by.
	Pin string
	// Size is about how many bytes the event takes in memory.
	Size int
	// Body is the owner's; the group does not look at it.
	Body any
}

// message is an event on its way through the group. It is in one place at a
// time: waiting, with a consumer, or being parked.
type message struct {
	Event
	seq      uint64   // order in which the group took it from its source
	before   Position // how far the source was done before it
	retries  int
	replayed bool // it comes from the parked ones and has no place in the source
	reason   string

	consumer *Consumer
	sent     bool // the consumer took it from its queue
	given    time.Time
	deadline time.Time

	inFlight *list.Element // in Group.inFlight, while a consumer has it
	open     *list.Element // in Group.open or Group.replay.open, until it is finished
}
