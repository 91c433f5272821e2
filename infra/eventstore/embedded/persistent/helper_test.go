package persistent

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// begin is the time at which every test's clock starts.
var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// id is the id of the event at a position.
func id(n int) uuid.UUID {
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[8:], uint64(n)+1)
	return u
}

func ids(ns ...int) []uuid.UUID {
	out := make([]uuid.UUID, len(ns))
	for i, n := range ns {
		out[i] = id(n)
	}
	return out
}

func event(n int) Event { return Event{ID: id(n), Position: Position(n), Size: 100} }

// settings are those of a client's defaults, changed.
func settings(change func(*Settings)) Settings {
	s := Settings{
		MaxRetryCount: 10, MinCheckpointCount: 10, MaxCheckpointCount: 1000, LiveBufferSize: 500, ReadBatchSize: 20,
		HistoryBufferSize: 500, MessageTimeout: 30_000, CheckpointAfter: 2_000, Strategy: RoundRobin,
	}
	if change != nil {
		change(&s)
	}
	return s
}

// rig is a group with a clock that stands until it is moved.
type rig struct {
	*Group
	t   testing.TB
	now time.Time
}

func newRig(t testing.TB, change func(*Settings)) *rig {
	t.Helper()
	s := settings(change)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return &rig{Group: New(begin, s, Before, false), t: t, now: begin}
}

func (r *rig) connect(capacity int) *Consumer {
	r.t.Helper()
	c, err := r.Connect(r.now, capacity, func() {})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// add adds the events of a range of positions.
func (r *rig) add(from, to int) {
	for n := from; n <= to; n++ {
		r.Add(r.now, event(n))
	}
}

// take gives what a consumer is sent now: positions, with the retries behind a
// slash where there were any.
func (r *rig) take(c *Consumer) string {
	var out []string
	for {
		d, ok := r.Take(c)
		if !ok {
			return strings.Join(out, " ")
		}
		s := fmt.Sprint(d.Position)
		if d.Retries > 0 {
			s += fmt.Sprint("/", d.Retries)
		}
		out = append(out, s)
	}
}

func (r *rig) want(c *Consumer, want string) {
	r.t.Helper()
	if got := r.take(c); got != want {
		r.t.Fatalf("sent %q, want %q", got, want)
	}
}

func (r *rig) ack(c *Consumer, ns ...int) { r.Ack(r.now, c, ids(ns...)) }

func (r *rig) nack(c *Consumer, a Action, ns ...int) { r.Nack(r.now, c, a, "because", ids(ns...)) }

// wait moves the clock and lets the group see it.
func (r *rig) wait(d time.Duration) {
	r.now = r.now.Add(d)
	r.Expire(r.now)
}

// parked writes what is to be parked, and gives its positions.
func (r *rig) parked() string {
	var out []string
	for {
		ps := r.Parking(r.now)
		if len(ps) == 0 {
			return strings.Join(out, " ")
		}
		for _, p := range ps {
			out = append(out, fmt.Sprint(p.Position))
		}
		r.ParkingWritten(r.now, len(ps))
	}
}

// checkpoint gives the checkpoint that is due, -2 if none is.
func (r *rig) checkpoint() Position {
	at, ok := r.Checkpoint(r.now, false)
	if !ok {
		return -2
	}
	r.CheckpointWritten(r.now, true)
	return at
}
