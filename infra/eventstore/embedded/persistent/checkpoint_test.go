package persistent

import (
	"testing"
	"time"
)

// TestCheckpoint: types.go of the client, CheckpointLowerBound,
// CheckpointUpperBound and CheckpointAfter.
func TestCheckpoint(t *testing.T) {
	bounds := func(low, high, after int32) func(*Settings) {
		return func(s *Settings) { s.MinCheckpointCount, s.MaxCheckpointCount, s.CheckpointAfter = low, high, after }
	}
	for _, tc := range []struct {
		name   string
		change func(*Settings)
		do     func(r *rig, c *Consumer)
		want   Position // -2 is none
	}{
		{"nothing happened", bounds(0, 0, 0), func(*rig, *Consumer) {}, -2},
		{"nothing is finished", bounds(0, 0, 0), func(r *rig, _ *Consumer) { r.add(0, 5) }, -2},
		{"one event, no bounds", bounds(0, 0, 0), func(r *rig, c *Consumer) { r.add(0, 5); r.ack(c, 0) }, 0},
		{"fewer than the lower bound", bounds(3, 100, 0), func(r *rig, c *Consumer) { r.add(0, 5); r.ack(c, 0, 1) }, -2},
		{"the lower bound", bounds(3, 100, 0), func(r *rig, c *Consumer) { r.add(0, 5); r.ack(c, 0, 1, 2) }, 2},
		{"the first needs no time", bounds(3, 100, 5000), func(r *rig, c *Consumer) { r.add(0, 5); r.ack(c, 0, 1, 2) }, 2},
		{"the second does", bounds(1, 100, 5000), func(r *rig, c *Consumer) {
			r.add(0, 5)
			r.ack(c, 0)
			r.checkpoint()
			r.ack(c, 1, 2)
			r.wait(4999 * time.Millisecond)
		}, -2},
		{"and then comes", bounds(1, 100, 5000), func(r *rig, c *Consumer) {
			r.add(0, 5)
			r.ack(c, 0)
			r.checkpoint()
			r.ack(c, 1, 2)
			r.wait(5000 * time.Millisecond)
		}, 2},
		{"the upper bound does not wait", bounds(1, 2, 5000), func(r *rig, c *Consumer) {
			r.add(0, 5)
			r.ack(c, 0)
			r.checkpoint()
			r.ack(c, 1, 2)
		}, 2},
		{"an upper bound below the lower one", bounds(12, 1, 5000), func(r *rig, c *Consumer) { r.add(0, 5); r.ack(c, 0) }, 0},
		{"never past an unanswered event", bounds(1, 100, 0), func(r *rig, c *Consumer) { r.add(0, 5); r.ack(c, 0, 1, 3, 4, 5) }, 1},
		{"never past one that failed", bounds(1, 100, 0), func(r *rig, c *Consumer) { r.add(0, 5); r.ack(c, 0, 1, 3); r.nack(c, Retry, 2) }, 1},
		{"never past one that is not parked yet", bounds(1, 100, 0), func(r *rig, c *Consumer) { r.add(0, 5); r.ack(c, 0, 1, 3); r.nack(c, Park, 2) }, 1},
		{"past one that is", bounds(1, 100, 0), func(r *rig, c *Consumer) {
			r.add(0, 5)
			r.ack(c, 0, 1, 3)
			r.nack(c, Park, 2)
			r.parked()
		}, 3},
		{"past one that is skipped", bounds(1, 100, 0), func(r *rig, c *Consumer) { r.add(0, 5); r.ack(c, 0); r.nack(c, Skip, 1) }, 1},
		{"gaps in the source", bounds(1, 100, 0), func(r *rig, c *Consumer) {
			r.Add(r.now, event(10))
			r.Add(r.now, event(20))
			r.ack(c, 10)
		}, 10},
		{"events of others count by stretches", bounds(1, 100, 0), func(r *rig, _ *Consumer) {
			for n := range 31 {
				r.Pass(Position(n), 32)
			}
		}, -2},
		{"a whole stretch", bounds(1, 100, 0), func(r *rig, _ *Consumer) {
			for n := range 33 {
				r.Pass(Position(n), 32)
			}
		}, 32},
		{"but not past an unanswered event", bounds(1, 100, 0), func(r *rig, c *Consumer) {
			r.add(0, 1)
			r.ack(c, 0)
			for n := 2; n < 90; n++ {
				r.Pass(Position(n), 32)
			}
		}, 0},
		{"what groups write counts never", bounds(0, 1, 0), func(r *rig, _ *Consumer) {
			for n := range 100 {
				r.Ignore(Position(n))
			}
		}, -2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tc.change)
			c := r.connect(100)
			tc.do(r, c)
			r.take(c)
			if got := r.checkpoint(); got != tc.want {
				t.Fatalf("%d, want %d", got, tc.want)
			}
			if got := r.checkpoint(); got != -2 {
				t.Fatalf("again %d", got)
			}
		})
	}
}

func TestCheckpointIsTriedAgain(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.MinCheckpointCount, s.MaxCheckpointCount = 1, 1 })
	c := r.connect(5)
	r.add(0, 1)
	r.ack(c, 0)
	if at, ok := r.Checkpoint(r.now, false); !ok || at != 0 {
		t.Fatal(at, ok)
	}
	r.ack(c, 1)
	if at, ok := r.Checkpoint(r.now, false); ok {
		t.Fatal("two at a time", at)
	}
	r.CheckpointWritten(r.now, false)
	if got := r.checkpoint(); got != -2 {
		t.Fatal("at once", got)
	}
	if _, known := r.LastCheckpoint(); known {
		t.Fatal("known though it failed")
	}
	at, ok := r.NextCheck(r.now)
	if !ok || at.Sub(r.now) != writeBackoff {
		t.Fatal(at, ok)
	}
	r.wait(writeBackoff)
	if got := r.checkpoint(); got != 1 {
		t.Fatal(got)
	}
	if at, known := r.LastCheckpoint(); !known || at != 1 {
		t.Fatal(at, known)
	}
}

func TestFinalCheckpoint(t *testing.T) {
	r := newRig(t, nil) // needs ten events otherwise
	c := r.connect(5)
	r.add(0, 2)
	r.ack(c, 0)
	if at, ok := r.Checkpoint(r.now, true); !ok || at != 0 {
		t.Fatal(at, ok)
	}
	r.CheckpointWritten(r.now, true)
	if at, ok := r.Checkpoint(r.now, true); ok {
		t.Fatal("nothing new", at)
	}
}

// TestNextCheck: nobody needs to speak for a timed checkpoint to come.
func TestNextCheck(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.MinCheckpointCount, s.CheckpointAfter, s.MessageTimeout = 1, 2000, 0 })
	c := r.connect(5)
	r.add(0, 2)
	r.ack(c, 0)
	r.checkpoint()
	if at, ok := r.NextCheck(r.now); ok {
		t.Fatal(at)
	}
	r.ack(c, 1)
	if at, ok := r.NextCheck(r.now); !ok || at.Sub(begin) != 2*time.Second {
		t.Fatal(at, ok)
	}
}
