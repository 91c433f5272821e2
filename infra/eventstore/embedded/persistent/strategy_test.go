package persistent

import (
	"fmt"
	"testing"
)

// TestStrategies: types.go of the client describes what each does.
func TestStrategies(t *testing.T) {
	t.Run("RoundRobin goes to all in turn, but to none without room", func(t *testing.T) {
		r := newRig(t, func(s *Settings) { s.Strategy = RoundRobin })
		a, b, c := r.connect(3), r.connect(1), r.connect(3)
		r.add(0, 6)
		r.want(a, "0 3 5")
		r.want(b, "1")
		r.want(c, "2 4 6")
		r.ack(b, 1)
		r.add(7, 8)
		r.want(b, "7")
		r.ack(c, 4)
		r.want(c, "8")
	})
	t.Run("RoundRobin goes on when one leaves", func(t *testing.T) {
		r := newRig(t, func(s *Settings) { s.Strategy = RoundRobin })
		a, b := r.connect(9), r.connect(9)
		r.add(0, 0)
		r.Disconnect(r.now, a)
		r.add(1, 2)
		r.want(b, "0 1 2")
	})
	t.Run("DispatchToSingle fills one before the next", func(t *testing.T) {
		r := newRig(t, func(s *Settings) { s.Strategy = DispatchToSingle })
		a, b := r.connect(2), r.connect(2)
		r.add(0, 2)
		r.want(a, "0 1")
		r.want(b, "2")
		r.ack(a, 0, 1)
		r.add(3, 4)
		r.want(b, "3") // it is b's turn until b is full
		r.want(a, "4")
	})
	for _, name := range []string{Pinned, PinnedByCorrelation} {
		t.Run(name+" keeps a pin with its consumer", func(t *testing.T) {
			r := newRig(t, func(s *Settings) { s.Strategy = name })
			a, b := r.connect(100), r.connect(100)
			for n := range 100 {
				e := event(n)
				e.Pin = fmt.Sprint("stream-", n%10)
				r.Add(r.now, e)
			}
			who := map[string]*Consumer{}
			for _, c := range []*Consumer{a, b} {
				last := map[string]Position{}
				for d, ok := r.Take(c); ok; d, ok = r.Take(c) {
					if other := who[d.Pin]; other != nil && other != c {
						t.Fatalf("%s is with two consumers", d.Pin)
					}
					who[d.Pin] = c
					if p, again := last[d.Pin]; again && p > d.Position {
						t.Fatalf("%s is out of order", d.Pin)
					}
					last[d.Pin] = d.Position
				}
				if len(last) == 0 {
					t.Error("a consumer has nothing")
				}
			}
			if len(who) != 10 {
				t.Fatal(who)
			}
		})
	}
	t.Run("Pinned lets others by when one is full", func(t *testing.T) {
		r := newRig(t, func(s *Settings) { s.Strategy = Pinned })
		a, b := r.connect(1), r.connect(9)
		own := func(c *Consumer) string {
			for n := range 1000 {
				if pin := fmt.Sprint(n); r.strategy.(*pinned).owner[bucket(pin)] == c {
					return pin
				}
			}
			t.Fatal("a consumer owns nothing")
			return ""
		}
		for n, pin := range []string{own(a), own(a), own(b)} {
			e := event(n)
			e.Pin = pin
			r.Add(r.now, e)
		}
		r.want(a, "0")
		r.want(b, "2")
		r.ack(a, 0)
		r.want(a, "1")
	})
}

func TestPinnedBuckets(t *testing.T) {
	s := &pinned{}
	members := []*Consumer{{capacity: 1}, {capacity: 1}, {capacity: 1}, {capacity: 1}, {capacity: 1}}
	check := func(n int) {
		t.Helper()
		owned := s.owned()
		if owned[nil] != 0 {
			t.Fatalf("%d buckets belong to nobody", owned[nil])
		}
		for _, c := range s.consumers {
			if got := owned[c]; got < buckets/n-n || got > buckets/n+n {
				t.Fatalf("%d of %d consumers' buckets: %d", n, n, got)
			}
		}
	}
	for i, c := range members {
		s.join(c)
		check(i + 1)
	}
	for i, c := range members[:4] {
		s.leave(c)
		check(4 - i)
	}
	s.leave(members[4])
	if s.owned()[nil] != buckets || s.choose("x") != nil {
		t.Fatal("buckets belong to one that left")
	}
	// A bucket that somebody works on changes hands last.
	s = &pinned{}
	s.join(members[0])
	for b := range buckets / 2 {
		s.holds[b] = 1
	}
	s.join(members[1])
	for b := range buckets / 2 {
		if s.owner[b] != members[0] {
			t.Fatal("a busy bucket was taken")
		}
	}
}
