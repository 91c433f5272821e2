package persistent

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestAtLeastOnce lets chance connect, disconnect, answer and fail, and holds
// what must hold in any order (eventstore.md: nothing is lost): a checkpoint
// passes no event that is not finished, nobody holds more than its capacity,
// and in the end every event was acknowledged, skipped or parked.
func TestAtLeastOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{rt: rt, now: begin, finished: map[Position]bool{}}
		w.s = Settings{
			Strategy:           rapid.SampledFrom([]string{RoundRobin, DispatchToSingle, Pinned}).Draw(rt, "strategy"),
			MaxRetryCount:      rapid.Int32Range(0, 3).Draw(rt, "retries"),
			MinCheckpointCount: rapid.Int32Range(0, 3).Draw(rt, "min"),
			MaxCheckpointCount: rapid.Int32Range(0, 5).Draw(rt, "max"),
			MessageTimeout:     rapid.Int32Range(0, 2).Draw(rt, "timeout") * 1000,
			LiveBufferSize:     5, HistoryBufferSize: 8, ReadBatchSize: 3,
		}
		w.g = New(w.now, w.s, Before, false)
		rt.Repeat(map[string]func(*rapid.T){
			"add": w.add, "pass": w.pass, "connect": w.connect, "disconnect": w.disconnect, "take": w.take,
			"answer": w.answer, "tick": w.tick, "park": w.park, "checkpoint": w.checkpoint, "": w.check,
		})
		w.drain()
	})
}

type world struct {
	rt       *rapid.T
	s        Settings
	g        *Group
	now      time.Time
	next     Position
	finished map[Position]bool
	members  []*member
}

type member struct {
	c    *Consumer
	sent map[Position]bool
}

func (w *world) add(*rapid.T) {
	for range w.g.Room() {
		e := event(int(w.next))
		e.Pin = string(rune('a' + w.next%7))
		w.g.Add(w.now, e)
		w.next += 2
	}
}

func (w *world) pass(*rapid.T) {
	if w.g.Room() > 0 {
		w.finished[w.next] = true
		w.g.Pass(w.next, 2)
		w.next += 2
	}
}

func (w *world) connect(rt *rapid.T) {
	c, err := w.g.Connect(w.now, rapid.IntRange(1, 4).Draw(rt, "capacity"), func() {})
	if err != nil {
		rt.Fatal(err)
	}
	w.members = append(w.members, &member{c: c, sent: map[Position]bool{}})
}

func (w *world) some(rt *rapid.T) *member {
	if len(w.members) == 0 {
		rt.Skip("nobody")
	}
	return w.members[rapid.IntRange(0, len(w.members)-1).Draw(rt, "who")]
}

func (w *world) disconnect(rt *rapid.T) {
	gone := w.some(rt)
	w.g.Disconnect(w.now, gone.c)
	for i, m := range w.members {
		if m == gone {
			w.members = append(w.members[:i:i], w.members[i+1:]...)
			return
		}
	}
}

func (w *world) take(rt *rapid.T) {
	m := w.some(rt)
	if d, ok := w.g.Take(m.c); ok {
		if w.finished[d.Position] {
			rt.Fatalf("%d is delivered after it was finished", d.Position)
		}
		m.sent[d.Position] = true
	}
}

func (w *world) answer(rt *rapid.T) {
	m := w.some(rt)
	for at := range m.sent {
		delete(m.sent, at)
		holds := w.g.find(m.c, id(int(at))) != nil
		switch a := Action(rapid.IntRange(-1, int(Skip)).Draw(rt, "answer")); {
		case a < 0:
			w.g.Ack(w.now, m.c, ids(int(at)))
			w.finished[at] = w.finished[at] || holds
		case a == Skip:
			w.g.Nack(w.now, m.c, a, "", ids(int(at)))
			w.finished[at] = w.finished[at] || holds
		default:
			w.g.Nack(w.now, m.c, a, "", ids(int(at)))
		}
		return
	}
}

func (w *world) tick(rt *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(rt, "ms")) * time.Millisecond)
	w.g.Expire(w.now)
}

func (w *world) park(rt *rapid.T) {
	ps := w.g.Parking(w.now)
	n := 0
	if len(ps) > 0 {
		n = rapid.IntRange(0, len(ps)).Draw(rt, "written")
	}
	for _, p := range ps[:n] {
		w.finished[p.Position] = true
	}
	w.g.ParkingWritten(w.now, n)
}

func (w *world) checkpoint(rt *rapid.T) {
	at, ok := w.g.Checkpoint(w.now, rapid.Bool().Draw(rt, "final"))
	if !ok {
		return
	}
	for p := Position(0); p <= at; p += 2 {
		if !w.finished[p] {
			rt.Fatalf("checkpoint %d, but %d is not finished", at, p)
		}
	}
	w.g.CheckpointWritten(w.now, rapid.Bool().Draw(rt, "written"))
}

func (w *world) check(rt *rapid.T) {
	held, free := 0, 0
	for _, m := range w.members {
		if m.c.slots() < 0 || len(m.c.queue) > m.c.held {
			rt.Fatalf("capacity %d, held %d, queued %d", m.c.capacity, m.c.held, len(m.c.queue))
		}
		held += m.c.held
		free += m.c.slots()
	}
	g := w.g
	if held != g.inFlight.Len() || held != len(g.byID) || free != g.free {
		rt.Fatalf("held %d, in flight %d, by id %d, free %d of %d", held, g.inFlight.Len(), len(g.byID), g.free, free)
	}
	open := g.buffer.Len() + g.retry.Len() + len(g.parking) + held
	if open != g.source.open.Len() || g.held != open*100 {
		rt.Fatalf("%d messages, %d open, %d bytes", open, g.source.open.Len(), g.held)
	}
	if free > 0 && w.s.Strategy != Pinned && g.buffer.Len()+g.retry.Len() > 0 {
		rt.Fatalf("%d free slots, and messages wait", free)
	}
	if p, ok := g.strategy.(*pinned); ok {
		n := 0
		for _, h := range p.holds {
			n += h
		}
		if n != held {
			rt.Fatalf("pinned counts %d of %d", n, held)
		}
	}
}

// drain lets one consumer handle all that is left.
func (w *world) drain() {
	for _, m := range w.members {
		w.g.Disconnect(w.now, m.c)
	}
	c, err := w.g.Connect(w.now, 3, func() {})
	if err != nil {
		w.rt.Fatal(err)
	}
	for d, ok := w.g.Take(c); ok; d, ok = w.g.Take(c) {
		w.finished[d.Position] = true
		w.g.Ack(w.now, c, ids(int(d.Position)))
	}
	w.now = w.now.Add(writeBackoff)
	for ps := w.g.Parking(w.now); len(ps) > 0; ps = w.g.Parking(w.now) {
		for _, p := range ps {
			w.finished[p.Position] = true
		}
		w.g.ParkingWritten(w.now, len(ps))
	}
	if n := w.g.source.open.Len(); n > 0 || w.g.held != 0 {
		w.rt.Fatalf("%d events are left, %d bytes", n, w.g.held)
	}
	for p := Position(0); p < w.next; p += 2 {
		if !w.finished[p] {
			w.rt.Fatalf("%d was lost", p)
		}
	}
}
