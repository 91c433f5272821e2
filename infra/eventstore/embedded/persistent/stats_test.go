package persistent

import (
	"testing"
	"time"
)

// TestStats: persistent.proto, SubscriptionInfo.
func TestStats(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.ExtraStatistics = true })
	c := r.connect(4)
	r.add(0, 9)
	r.take(c)
	r.now = r.now.Add(2 * time.Second)
	r.ack(c, 0)
	r.nack(c, Park, 1)
	r.nack(c, Retry, 2)
	s := r.Measure(r.now)
	if s.Waiting != 4 || s.Retrying != 0 || s.InFlight != 4 || s.Outstanding != 5 || s.Total != 7 || s.SinceLast != 7 || s.PerSecond != 3 {
		t.Fatalf("%+v", s)
	}
	cs := s.Consumers[0]
	if cs.Consumer != c || cs.FreeSlots != 0 || cs.InFlight != 4 || cs.Total != 7 || len(cs.Latency) != 14 {
		t.Fatalf("%+v", cs)
	}
	for _, m := range cs.Latency {
		if m.Value != 2000 {
			t.Errorf("%s %d", m.Key, m.Value)
		}
	}
	if s := r.Measure(r.now); s.SinceLast != 0 || s.PerSecond != 0 || s.Total != 7 {
		t.Fatalf("%+v", s)
	}
}

func TestLatencies(t *testing.T) {
	l := &latencies{}
	if l.measure() != nil {
		t.Fatal("measured nothing")
	}
	for range 3 { // the window keeps the last ones only
		for n := range latencyWindow {
			l.add(time.Duration(n) * time.Millisecond)
		}
	}
	got := map[string]int64{}
	for _, m := range l.measure() {
		got[m.Key] = m.Value
	}
	for key, want := range map[string]int64{
		"Mean": 499, "Median": 500, "Fastest": 0, "Quintile 3": 400, "90%": 900, "99.9%": 999, "Highest": 999,
	} {
		if got[key] != want {
			t.Errorf("%s is %d, want %d", key, got[key], want)
		}
	}
}
