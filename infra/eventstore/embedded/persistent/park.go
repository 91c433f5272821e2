package persistent

import (
	"container/list"
	"time"
)

const (
	// maxReason bounds what a consumer may say about why it parks an event.
	maxReason = 4 << 10
	// parkBatch is how many messages are parked in one write.
	parkBatch = 100
	// truncateStep is how many replayed messages are finished before those
	// parked are cut off while a replay still goes on.
	truncateStep = 500
)

// replay is how far the parked messages are replayed. Their positions are
// revisions of the stream in which they are parked.
type replay struct {
	next  Position   // first that is not read again
	stop  Position   // first that is not to be replayed
	open  *list.List // of *message that are not finished, in their order
	cut   Position   // those before are cut off
	known bool       // next and cut are

	cutting       Position // being cut off; 0 is nothing
	truncateAfter time.Time
	parkAfter     time.Time
}

// park sets a message aside until the owner has written it.
func (g *Group) park(m *message, reason string) {
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	m.reason = reason
	g.parking = append(g.parking, m)
}

// Parked is a message that must be written to those parked.
type Parked struct {
	Event
	Reason string
	// Source tells that Position is one of the source.
	Source bool
}

// Parking gives the messages to park next, at most a batch. The owner writes
// them and calls ParkingWritten with their number, or 0 if it could not.
func (g *Group) Parking(now time.Time) []Parked {
	if now.Before(g.replay.parkAfter) {
		return nil
	}
	out := make([]Parked, 0, min(len(g.parking), parkBatch))
	for _, m := range g.parking[:cap(out)] {
		out = append(out, Parked{Event: m.Event, Reason: m.reason, Source: !m.replayed})
	}
	return out
}

// ParkingWritten finishes the first n messages that Parking gave. Those that
// could not be written stay unfinished and are tried again later.
func (g *Group) ParkingWritten(now time.Time, n int) {
	for _, m := range g.parking[:n] {
		g.finish(m)
	}
	g.parking = append(g.parking[:0:0], g.parking[n:]...)
	if n == 0 {
		g.replay.parkAfter = now.Add(writeBackoff)
	}
}

// Replay asks for the parked messages from the first one on and before stop. A
// replay under way is extended.
func (g *Group) Replay(first, stop Position) {
	r := &g.replay
	if !r.known {
		r.known, r.next, r.cut = true, first, first
	}
	r.next = max(r.next, first)
	r.stop = max(r.stop, stop)
}

// ReplayNext tells which parked messages to read next, from a revision on, and
// how many; 0 is none.
func (g *Group) ReplayNext() (from Position, n int) {
	r := &g.replay
	if len(g.consumers) == 0 || g.held >= maxHeld || r.next >= r.stop {
		return 0, 0
	}
	room := atLeastOne(g.settings.HistoryBufferSize) - g.retry.Len()
	return r.next, max(min(room, atLeastOne(g.settings.ReadBatchSize), int(min(r.stop-r.next, 1<<16))), 0)
}

// AddReplayed takes the next parked message, whose position is its revision
// among the parked. One that is to be delivered no more is passed by with PassReplayed.
func (g *Group) AddReplayed(now time.Time, e Event) {
	m := &message{Event: e, replayed: true}
	m.open = g.replay.open.PushBack(m)
	g.replay.next = e.Position + 1
	g.held += e.Size
	insertRetry(g.retry, m)
	g.assign(now)
}

// PassReplayed tells that there is nothing to replay before a revision.
func (g *Group) PassReplayed(before Position) { g.replay.next = max(g.replay.next, before) }

// handled is the first parked message that is not finished again.
func (r *replay) handled() Position {
	if e := r.open.Front(); e != nil {
		return e.Value.(*message).Position
	}
	return r.next
}

func (g *Group) truncateDue() bool {
	r := &g.replay
	if !r.known || r.cutting != 0 || r.handled() <= r.cut {
		return false
	}
	idle := r.open.Len() == 0 && r.next >= r.stop
	return idle || r.handled()-r.cut >= truncateStep
}

// Truncate tells before which parked message to cut off, if it is worth it; the
// owner answers with Truncated. final asks for whatever is finished.
func (g *Group) Truncate(now time.Time, final bool) (Position, bool) {
	r := &g.replay
	due := g.truncateDue() && !now.Before(r.truncateAfter)
	if final {
		due = r.known && r.cutting == 0 && r.handled() > r.cut
	}
	if !due {
		return 0, false
	}
	r.cutting = r.handled()
	return r.cutting, true
}

// Truncated tells what became of the cut that was asked for.
func (g *Group) Truncated(now time.Time, ok bool) {
	r := &g.replay
	if ok {
		r.cut = r.cutting
	} else {
		r.truncateAfter = now.Add(writeBackoff)
	}
	r.cutting = 0
}

// Replaying tells whether parked messages are being replayed.
func (g *Group) Replaying() bool { return g.replay.next < g.replay.stop || g.replay.open.Len() > 0 }
