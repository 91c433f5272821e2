package persistent

import (
	"container/list"
	"time"

	"github.com/google/uuid"
)

// maxHeld is how many bytes of events a group holds before it reads no more,
// whatever its buffers have room for.
const maxHeld = 32 << 20

// Group is a group of competing consumers and the events between the source
// and them. It is not safe for concurrent use.
type Group struct {
	settings  Settings
	strategy  strategy
	consumers []*Consumer
	free      int // slots of all consumers together

	retry  *list.List // of *message: failed ones in the source's order, then replayed ones
	buffer *list.List // of *message, from the source, in its order
	held   int        // bytes of all messages in the group

	inFlight *list.List // of *message that consumers have, in the order of their deadlines
	byID     map[uuid.UUID]*message
	parking  []*message

	source source
	replay replay
	mark   mark

	total    int64
	measured int64 // total at the last statistics
	since    time.Time
}

// source is how far the group has read.
type source struct {
	live   bool       // the last read reached the end
	looked Position   // how far the source was looked at
	seq    uint64     // of the last message, or of the last stretch that had none
	barren int        // events looked at since then that are none of the group's
	open   *list.List // of *message that are not finished, in the source's order
}

// New makes a group that begins behind a position of its source. done tells
// that the position is a checkpoint, not just where the client wants to start.
// The settings must be valid.
func New(now time.Time, settings Settings, after Position, done bool) *Group {
	g := &Group{
		settings: settings,
		strategy: newStrategy(settings.Strategy),
		retry:    list.New(),
		buffer:   list.New(),
		inFlight: list.New(),
		byID:     map[uuid.UUID]*message{},
		source:   source{looked: after, open: list.New()},
		replay:   replay{open: list.New()},
		mark:     mark{at: after, known: done},
		since:    now,
	}
	return g
}

// Room is how many events the group would take now. It is 0 without consumers.
func (g *Group) Room() int {
	if len(g.consumers) == 0 || g.held >= maxHeld {
		return 0
	}
	limit := atLeastOne(g.settings.HistoryBufferSize)
	if g.source.live {
		limit = atLeastOne(g.settings.LiveBufferSize)
	}
	return max(min(limit-g.buffer.Len(), atLeastOne(g.settings.ReadBatchSize)), 0)
}

// Looked is the position behind which to read on.
func (g *Group) Looked() Position { return g.source.looked }

// Add takes the next event of the source.
func (g *Group) Add(now time.Time, e Event) {
	s := &g.source
	s.seq++
	m := &message{Event: e, seq: s.seq, before: s.looked}
	m.open = s.open.PushBack(m)
	s.looked, s.barren = e.Position, 0
	g.held += e.Size
	g.buffer.PushBack(m)
	g.assign(now)
}

// Pass tells that an event of the source is none of the group's. Every stretch
// of interval such events counts as one event towards a checkpoint, so that a
// group that wants few of many need not look at them twice.
func (g *Group) Pass(at Position, interval int) {
	s := &g.source
	s.looked = at
	if s.barren++; s.barren >= interval {
		s.seq++
		s.barren = 0
	}
}

// Ignore tells that an event of the source must not count at all, since it
// comes of what groups do themselves: counted, it would cause the next one.
func (g *Group) Ignore(at Position) { g.source.looked = at }

// ReachedEnd tells whether the last read came to the end of the source.
func (g *Group) ReachedEnd(end bool) { g.source.live = end }

// assign gives waiting messages to consumers as long as there are both.
func (g *Group) assign(now time.Time) {
	for _, waiting := range []*list.List{g.retry, g.buffer} {
		for e := waiting.Front(); e != nil && g.free > 0; {
			m, next := e.Value.(*message), e.Next()
			if g.byID[m.ID] == nil {
				if c := g.strategy.choose(m.Pin); c != nil {
					waiting.Remove(e)
					g.give(now, m, c)
				}
			}
			e = next
		}
	}
}

func (g *Group) give(now time.Time, m *message, c *Consumer) {
	m.consumer, m.sent, m.given = c, false, now
	if d := g.settings.messageTimeout(); d > 0 {
		m.deadline = now.Add(d)
	}
	m.inFlight = g.inFlight.PushBack(m)
	g.byID[m.ID] = m
	c.held++
	g.free--
	g.strategy.gave(m.Pin, +1)
	c.total++
	g.total++
	if c.queue = append(c.queue, m); len(c.queue) == 1 {
		c.ready()
	}
}

// takeBack ends a consumer's hold on a message.
func (g *Group) takeBack(m *message) {
	g.inFlight.Remove(m.inFlight)
	m.inFlight = nil
	delete(g.byID, m.ID)
	m.consumer.held--
	g.free++
	g.strategy.gave(m.Pin, -1)
	if !m.sent {
		m.consumer.unqueue(m)
	}
	m.consumer = nil
}

// finish ends a message for good.
func (g *Group) finish(m *message) {
	g.held -= m.Size
	if m.replayed {
		g.replay.open.Remove(m.open)
	} else {
		g.source.open.Remove(m.open)
	}
	m.open = nil
}
