package persistent

import (
	"strings"
	"testing"
)

// replayAll reads what the group asks for of parked messages.
func (r *rig) replayAll() {
	for {
		from, n := r.ReplayNext()
		if n == 0 {
			return
		}
		for i := range n {
			at := from + Position(i)
			r.AddReplayed(r.now, Event{ID: id(1000 + int(at)), Position: at, Size: 100})
		}
	}
}

func (r *rig) truncate() Position {
	at, ok := r.Truncate(r.now, false)
	if !ok {
		return -2
	}
	r.Truncated(r.now, true)
	return at
}

// TestReplay: client tests persistentReplayParkedMessages and the documentation
// of ReplayParkedMessagesOptions.StopAt.
func TestReplay(t *testing.T) {
	t.Run("all, in their order, and then they are cut off", func(t *testing.T) {
		r := newRig(t, nil)
		c := r.connect(10)
		r.Replay(2, 5)
		if !r.Replaying() {
			t.Fatal("not replaying")
		}
		r.replayAll()
		r.want(c, "2 3 4")
		if got := r.truncate(); got != -2 {
			t.Fatal("cut off before they are handled", got)
		}
		r.ack(c, 1002, 1004)
		if got := r.truncate(); got != -2 {
			t.Fatal(got)
		}
		r.ack(c, 1003)
		if got := r.truncate(); got != 5 {
			t.Fatal(got)
		}
		if got := r.truncate(); got != -2 || r.Replaying() {
			t.Fatal("again", got, r.Replaying())
		}
		if got := r.checkpoint(); got != -2 {
			t.Fatal("parked messages moved the checkpoint", got)
		}
	})
	t.Run("they wait for a consumer, and for room", func(t *testing.T) {
		r := newRig(t, func(s *Settings) { s.HistoryBufferSize = 4; s.ReadBatchSize = 3 })
		r.Replay(0, 100)
		if _, n := r.ReplayNext(); n != 0 {
			t.Fatal("without a consumer", n)
		}
		c := r.connect(2)
		r.replayAll()
		if got := r.retry.Len(); got != 4 {
			t.Fatal("waiting", got)
		}
		r.want(c, "0 1")
	})
	t.Run("after what failed", func(t *testing.T) {
		r := newRig(t, nil)
		c := r.connect(1)
		r.add(0, 3)
		r.want(c, "0")
		r.Replay(0, 2)
		r.replayAll()
		r.nack(c, Retry, 0)
		r.want(c, "0/1")
		r.ack(c, 0)
		r.want(c, "0") // the parked one
		r.ack(c, 1000)
		r.want(c, "1")
		r.ack(c, 1001)
		r.want(c, "1") // of the source
	})
	t.Run("a second call extends the first", func(t *testing.T) {
		r := newRig(t, nil)
		c := r.connect(100)
		r.Replay(0, 2)
		r.replayAll()
		r.Replay(0, 4)
		r.replayAll()
		r.want(c, "0 1 2 3")
		r.ack(c, 1000, 1001, 1002, 1003)
		if got := r.truncate(); got != 4 {
			t.Fatal(got)
		}
		r.Replay(4, 4)
		if r.Replaying() {
			t.Fatal("there is nothing")
		}
	})
	t.Run("parked again it counts as handled once it is written", func(t *testing.T) {
		r := newRig(t, nil)
		c := r.connect(1)
		r.Replay(0, 1)
		r.replayAll()
		r.want(c, "0")
		r.nack(c, Park, 1000)
		if got := r.truncate(); got != -2 {
			t.Fatal("cut off while it stands nowhere else", got)
		}
		ps := r.Parking(r.now)
		if len(ps) != 1 || ps[0].Source {
			t.Fatal(ps)
		}
		r.ParkingWritten(r.now, 1)
		if got := r.truncate(); got != 1 {
			t.Fatal(got)
		}
	})
	t.Run("gone ones are passed by", func(t *testing.T) {
		r := newRig(t, nil)
		c := r.connect(10)
		r.Replay(0, 3)
		r.PassReplayed(2)
		r.replayAll()
		r.want(c, "2")
		r.ack(c, 1002)
		if got := r.truncate(); got != 3 {
			t.Fatal(got)
		}
	})
	t.Run("a cut that failed is tried again", func(t *testing.T) {
		r := newRig(t, nil)
		c := r.connect(1)
		r.Replay(0, 1)
		r.replayAll()
		r.ack(c, 1000)
		if _, ok := r.Truncate(r.now, false); !ok {
			t.Fatal("not due")
		}
		r.Truncated(r.now, false)
		if got := r.truncate(); got != -2 {
			t.Fatal("at once", got)
		}
		at, ok := r.NextCheck(r.now)
		if !ok || at.Sub(r.now) != writeBackoff {
			t.Fatal(at, ok)
		}
		r.wait(writeBackoff)
		if got := r.truncate(); got != 1 {
			t.Fatal(got)
		}
	})
	t.Run("a group that ends cuts off what is handled", func(t *testing.T) {
		r := newRig(t, nil)
		c := r.connect(10)
		r.Replay(0, 3)
		r.replayAll()
		r.ack(c, 1000)
		if at, ok := r.Truncate(r.now, true); !ok || at != 1 {
			t.Fatal(at, ok)
		}
	})
}

func TestParking(t *testing.T) {
	r := newRig(t, nil)
	c := r.connect(1000)
	r.add(0, 249)
	for n := range 250 {
		r.Nack(r.now, c, Park, strings.Repeat("x", 2*maxReason), ids(n))
	}
	ps := r.Parking(r.now)
	if len(ps) != parkBatch || !ps[0].Source || len(ps[0].Reason) != maxReason {
		t.Fatal(len(ps), len(ps[0].Reason))
	}
	r.ParkingWritten(r.now, 0)
	if got := r.Parking(r.now); got != nil {
		t.Fatal("at once")
	}
	if at, ok := r.NextCheck(r.now); !ok || at.Sub(r.now) != writeBackoff {
		t.Fatal(at, ok)
	}
	r.wait(writeBackoff)
	if got := strings.Count(r.parked(), " "); got != 249 {
		t.Fatal(got)
	}
	if r.held != 0 || r.source.open.Len() != 0 {
		t.Fatal(r.held, r.source.open.Len())
	}
}
