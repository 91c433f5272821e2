package persistent

import (
	"container/list"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Action is what a consumer wants done with an event that it could not handle.
type Action int

// The actions of the protocol.
const (
	// Unknown leaves it to the group, which retries.
	Unknown Action = iota
	// Park puts the event aside until somebody replays it.
	Park
	// Retry delivers it again, or parks it after too many failures.
	Retry
	// Skip drops it.
	Skip
	// Stop ends the subscription of all consumers; see Nack.
	Stop
)

// Ack takes events as handled. An id that is not with the consumer, since its
// time ran out for one, is ignored: the event was given to another, who answers.
func (g *Group) Ack(now time.Time, c *Consumer, ids []uuid.UUID) {
	for _, id := range ids {
		if m := g.find(c, id); m != nil {
			if c.latency != nil {
				c.latency.add(now.Sub(m.given))
			}
			g.takeBack(m)
			g.finish(m)
		}
	}
	g.assign(now)
}

// Nack takes events as not handled. With Stop, the events stay with the
// consumer, and the owner must disconnect every consumer of the group.
func (g *Group) Nack(now time.Time, c *Consumer, action Action, reason string, ids []uuid.UUID) {
	for _, id := range ids {
		m := g.find(c, id)
		if m == nil {
			continue
		}
		switch action {
		case Stop:
			continue
		case Skip:
			g.takeBack(m)
			g.finish(m)
		case Park:
			g.takeBack(m)
			g.park(m, "The consumer parked it: "+reason)
		case Unknown, Retry:
			g.takeBack(m)
			g.again(m, true)
		}
	}
	g.assign(now)
}

// Expire takes back what consumers have had for too long.
func (g *Group) Expire(now time.Time) {
	expired := false
	for e := g.inFlight.Front(); e != nil; e = g.inFlight.Front() {
		m := e.Value.(*message)
		if m.deadline.IsZero() || now.Before(m.deadline) {
			break
		}
		expired = true
		g.takeBack(m)
		g.again(m, m.sent)
	}
	if expired {
		g.assign(now)
	}
}

// again puts a message that is with nobody back to be delivered. If it failed
// once more than it may, it is parked instead: it would come back for ever.
func (g *Group) again(m *message, failed bool) {
	if failed {
		if m.retries >= int(g.settings.MaxRetryCount) {
			g.park(m, fmt.Sprintf("It failed more often than the group retries (%d).", g.settings.MaxRetryCount))
			return
		}
		m.retries++
	}
	insertRetry(g.retry, m)
}

// insertRetry keeps the source's order among messages that failed; replayed
// ones come last, as they were added.
func insertRetry(l *list.List, m *message) {
	if m.replayed {
		l.PushBack(m)
		return
	}
	for e := l.Front(); e != nil; e = e.Next() {
		if other := e.Value.(*message); other.replayed || other.seq > m.seq {
			l.InsertBefore(m, e)
			return
		}
	}
	l.PushBack(m)
}
