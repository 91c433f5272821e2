package persistent

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrMaximumSubscribers refuses a consumer that the settings leave no room for.
var ErrMaximumSubscribers = errors.New("maximum subscribers reached")

// Consumer is one connected consumer. At most its capacity of events are with
// it at a time: waiting in its queue or sent and unanswered.
type Consumer struct {
	capacity int
	held     int
	queue    []*message // given to it, not yet taken; all of them are in flight
	ready    func()     // called when the queue is no longer empty; must not block

	total    int64
	measured int64 // total at the last statistics
	latency  *latencies
}

// slots is how many more events the consumer may have.
func (c *Consumer) slots() int { return c.capacity - c.held }

// Delivery is an event for a consumer, and how often it failed before.
type Delivery struct {
	Event
	Retries int
}

// Connect adds a consumer that takes up to capacity events at a time, at least
// one. ready is called, and must not block, whenever Take has something for it.
func (g *Group) Connect(now time.Time, capacity int, ready func()) (*Consumer, error) {
	if n := int(g.settings.MaxSubscriberCount); n > 0 && len(g.consumers) >= n {
		return nil, ErrMaximumSubscribers
	}
	c := &Consumer{capacity: max(capacity, 1), ready: ready}
	if g.settings.ExtraStatistics {
		c.latency = &latencies{}
	}
	g.consumers = append(g.consumers, c)
	g.free += c.capacity
	g.strategy.join(c)
	g.assign(now)
	return c, nil
}

// Disconnect takes a consumer out. What it was sent counts as failed, since an
// event may be what brought it down; what it was not sent goes back unharmed.
func (g *Group) Disconnect(now time.Time, c *Consumer) {
	at := -1
	for i, known := range g.consumers {
		if known == c {
			at = i
		}
	}
	if at < 0 {
		return
	}
	g.consumers = append(g.consumers[:at:at], g.consumers[at+1:]...)
	g.free -= c.slots()
	g.strategy.leave(c)
	c.queue = nil
	for e := g.inFlight.Front(); e != nil; {
		m, next := e.Value.(*message), e.Next()
		if m.consumer == c {
			g.takeBack(m)
			g.free-- // the slot went with the consumer
			g.again(m, m.sent)
		}
		e = next
	}
	g.assign(now)
}

// Take hands a consumer the next event of its queue.
func (g *Group) Take(c *Consumer) (Delivery, bool) {
	if len(c.queue) == 0 {
		return Delivery{}, false
	}
	m := c.queue[0]
	c.queue[0] = nil
	c.queue = c.queue[1:]
	m.sent = true
	return Delivery{Event: m.Event, Retries: m.retries}, true
}

// unqueue takes a message that was not sent out of its consumer's queue.
func (c *Consumer) unqueue(m *message) {
	for i, q := range c.queue {
		switch {
		case q != m:
			continue
		case i == 0: // the usual case: the oldest goes first
			c.queue = c.queue[1:]
		default:
			c.queue = append(c.queue[:i], c.queue[i+1:]...)
		}
		return
	}
}

// find gives the message with an id that is with this consumer.
func (g *Group) find(c *Consumer, id uuid.UUID) *message {
	if m := g.byID[id]; m != nil && m.consumer == c {
		return m
	}
	return nil
}
