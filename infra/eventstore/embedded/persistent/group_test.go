package persistent

import (
	"errors"
	"testing"
	"time"
)

// TestAnswers goes through what a consumer can say to an event: the actions of
// the protocol (persistent.proto, ReadReq) and the client's documentation of them.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer func(r *rig, c *Consumer)
		again  string // what is sent afterwards
		parked string
		open   int // messages that are not finished
	}{
		{"ack", func(r *rig, c *Consumer) { r.ack(c, 0) }, "2", "", 2},
		{"ack of several", func(r *rig, c *Consumer) { r.ack(c, 1, 0) }, "2", "", 1},
		{"unknown retries", func(r *rig, c *Consumer) { r.nack(c, Unknown, 0) }, "0/1", "", 3},
		{"retry", func(r *rig, c *Consumer) { r.nack(c, Retry, 0) }, "0/1", "", 3},
		{"retry keeps the order", func(r *rig, c *Consumer) { r.nack(c, Retry, 1, 0) }, "0/1 1/1", "", 3},
		{"skip", func(r *rig, c *Consumer) { r.nack(c, Skip, 0) }, "2", "", 2},
		{"park", func(r *rig, c *Consumer) { r.nack(c, Park, 0) }, "2", "0", 2},
		{"stop leaves them with the consumer", func(r *rig, c *Consumer) { r.nack(c, Stop, 0) }, "", "", 3},
		{"an id that nobody has", func(r *rig, c *Consumer) { r.ack(c, 7); r.nack(c, Park, 2) }, "", "", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, nil)
			c := r.connect(2)
			r.add(0, 2)
			r.want(c, "0 1")
			tc.answer(r, c)
			r.want(c, tc.again)
			if got := r.parked(); got != tc.parked {
				t.Errorf("parked %q, want %q", got, tc.parked)
			}
			if got := r.source.open.Len(); got != tc.open {
				t.Errorf("%d unfinished, want %d", got, tc.open)
			}
			if r.held != tc.open*100 {
				t.Errorf("%d bytes held for %d messages", r.held, tc.open)
			}
		})
	}
}

func TestAnswersOfAnotherConsumerAreIgnored(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.MessageTimeout = 1000 })
	a := r.connect(1)
	r.add(0, 0)
	r.want(a, "0")
	b := r.connect(1)
	r.wait(time.Second) // the turn is b's
	r.want(b, "0/1")
	r.ack(a, 0)
	r.nack(a, Skip, 0)
	if r.inFlight.Len() != 1 {
		t.Fatal("a late answer counted")
	}
	r.ack(b, 0)
	if r.source.open.Len() != 0 {
		t.Fatal("the answer did not count")
	}
}

// TestTimeout: types.go of the client, MessageTimeout and MaxRetryCount.
func TestTimeout(t *testing.T) {
	t.Run("a message comes again, with its count", func(t *testing.T) {
		r := newRig(t, func(s *Settings) { s.MessageTimeout = 1000 })
		c := r.connect(5)
		r.add(0, 1)
		r.want(c, "0 1")
		r.wait(999 * time.Millisecond)
		r.want(c, "")
		if at, ok := r.NextCheck(r.now); !ok || !at.Equal(begin.Add(time.Second)) {
			t.Fatal(at, ok)
		}
		r.ack(c, 1)
		r.wait(time.Millisecond)
		r.want(c, "0/1")
	})
	t.Run("zero is never", func(t *testing.T) { // client test createPersistentStreamSubscription_MessageTimeoutZero
		r := newRig(t, func(s *Settings) { s.MessageTimeout = 0 })
		c := r.connect(5)
		r.add(0, 0)
		r.want(c, "0")
		r.wait(1000 * time.Hour)
		r.want(c, "")
		if at, ok := r.NextCheck(r.now); ok {
			t.Fatal(at)
		}
	})
	t.Run("after the last retry it is parked", func(t *testing.T) {
		r := newRig(t, func(s *Settings) { s.MessageTimeout = 1000; s.MaxRetryCount = 2 })
		c := r.connect(1)
		r.add(0, 1)
		for _, want := range []string{"0", "0/1", "0/2"} {
			r.want(c, want)
			r.wait(time.Second)
		}
		r.want(c, "1")
		if got := r.parked(); got != "0" {
			t.Fatalf("parked %q", got)
		}
	})
	t.Run("what a consumer has not been sent did not fail", func(t *testing.T) {
		r := newRig(t, func(s *Settings) { s.MessageTimeout = 1000; s.MaxRetryCount = 0 })
		stuck := r.connect(2)
		r.add(0, 1)
		if _, ok := r.Take(stuck); !ok {
			t.Fatal("nothing")
		}
		quick := r.connect(2)
		r.wait(time.Second)
		// 0 was sent and is parked, 1 was not and goes to the next.
		if got := r.parked(); got != "0" {
			t.Fatalf("parked %q", got)
		}
		r.want(quick, "1")
		if len(stuck.queue) != 0 {
			t.Fatal("still queued for the stuck one")
		}
	})
}

func TestDisconnect(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.MaxRetryCount = 1 })
	a := r.connect(4)
	r.add(0, 3)
	for range 2 { // 0 and 1 are sent, 2 and 3 wait in the queue
		if _, ok := r.Take(a); !ok {
			t.Fatal("nothing")
		}
	}
	r.Disconnect(r.now, a)
	r.Disconnect(r.now, a) // again is nothing
	if r.free != 0 || r.inFlight.Len() != 0 {
		t.Fatal(r.free, r.inFlight.Len())
	}
	b := r.connect(4)
	r.want(b, "0/1 1/1 2 3")
	r.Disconnect(r.now, b)
	if got := r.parked(); got != "0 1" {
		t.Fatalf("parked %q", got)
	}
	c := r.connect(4)
	r.want(c, "2/1 3/1")
}

// TestMaxSubscribers: types.go of the client, MaxSubscriberCount.
func TestMaxSubscribers(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.MaxSubscriberCount = 2 })
	a := r.connect(1)
	r.connect(1)
	if _, err := r.Connect(r.now, 1, func() {}); !errors.Is(err, ErrMaximumSubscribers) {
		t.Fatal(err)
	}
	r.Disconnect(r.now, a)
	r.connect(1)
}

func TestTwoEventsOfTheSameID(t *testing.T) {
	r := newRig(t, nil)
	c := r.connect(5)
	first, second := event(0), event(1)
	second.ID = first.ID
	r.Add(r.now, first)
	r.Add(r.now, second)
	r.Add(r.now, event(2))
	r.want(c, "0 2")
	r.ack(c, 0)
	r.want(c, "1")
	r.ack(c, 0)
	if r.source.open.Len() != 1 {
		t.Fatal("the second one is not finished")
	}
}

// TestRoom: types.go of the client, LiveBufferSize, ReadBatchSize and HistoryBufferSize.
func TestRoom(t *testing.T) {
	small := func(s *Settings) { s.LiveBufferSize, s.ReadBatchSize, s.HistoryBufferSize = 3, 4, 10 }
	for _, tc := range []struct {
		name  string
		setup func(r *rig)
		want  int
	}{
		{"nothing without consumers", func(*rig) {}, 0},
		{"a batch", func(r *rig) { r.connect(1) }, 4},
		{"what the history buffer leaves", func(r *rig) { r.connect(1); r.add(0, 7) }, 3}, // one is in flight
		{"nothing when it is full", func(r *rig) { r.connect(1); r.add(0, 10) }, 0},
		{"the live buffer is another", func(r *rig) { r.connect(1); r.add(0, 1); r.ReachedEnd(true) }, 2},
		{"and full", func(r *rig) { r.connect(1); r.add(0, 3); r.ReachedEnd(true) }, 0},
		{"and left when behind again", func(r *rig) { r.connect(1); r.add(0, 3); r.ReachedEnd(true); r.ReachedEnd(false) }, 4},
		{"events in flight take no room", func(r *rig) { r.connect(100); r.add(0, 50) }, 4},
		{"large events do", func(r *rig) {
			r.connect(100)
			e := event(0)
			e.Size = maxHeld
			r.Add(r.now, e)
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, small)
			tc.setup(r)
			if got := r.Room(); got != tc.want {
				t.Fatalf("%d, want %d", got, tc.want)
			}
		})
	}
	t.Run("sizes of zero still move", func(t *testing.T) {
		r := newRig(t, func(s *Settings) { s.LiveBufferSize, s.ReadBatchSize, s.HistoryBufferSize = 0, 0, 0 })
		r.connect(1)
		if r.Room() != 1 {
			t.Fatal(r.Room())
		}
	})
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		change func(*Settings)
		want   string
	}{
		{nil, ""},
		{func(s *Settings) { s.Strategy = PinnedByCorrelation }, ""},
		{func(s *Settings) { *s = Settings{Strategy: DispatchToSingle} }, ""},
		{func(s *Settings) { s.Strategy = "roundrobin" }, `consumer strategy "roundrobin" does not exist`},
		{func(s *Settings) { s.ReadBatchSize = -1 }, "readBatchSize must not be negative"},
		{func(s *Settings) { s.MessageTimeout = -5 }, "messageTimeout must not be negative"},
	} {
		got := ""
		s := settings(tc.change)
		if err := s.Validate(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

func TestPositionText(t *testing.T) {
	for _, tc := range []struct {
		text string
		all  bool
		want Position
	}{
		{"0", false, 0}, {"-1", false, -1}, {"12", false, 12}, {"C:0/P:0", true, 0}, {"C:-1/P:-1", true, -1}, {"C:640/P:640", true, 640},
	} {
		got, err := ParsePosition(tc.text, tc.all)
		if err != nil || got != tc.want || got.Format(tc.all) != tc.text {
			t.Errorf("%s: %d, %v, %s", tc.text, got, err, got.Format(tc.all))
		}
	}
	for _, bad := range []string{"", "x", "C:1", "1/P:2", "-2", "C:x/P:1", "99999999999999999999"} {
		for _, all := range []bool{true, false} {
			if got, err := ParsePosition(bad, all); err == nil {
				t.Errorf("%q: %d", bad, got)
			}
		}
	}
}
