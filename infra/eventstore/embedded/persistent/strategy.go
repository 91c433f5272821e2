package persistent

// strategy chooses who gets an event. It knows every consumer of the group, and
// chooses only one that has a slot free.
type strategy interface {
	join(c *Consumer)
	leave(c *Consumer)
	// choose gives nil where nobody who may have the event has room.
	choose(pin string) *Consumer
	// gave counts an event that a consumer was given (+1) or holds no more (-1).
	gave(pin string, n int)
}

// newStrategy makes the strategy of a name; nil if there is none.
func newStrategy(name string) strategy {
	switch name {
	case RoundRobin:
		return &inTurn{}
	case DispatchToSingle:
		return &inTurn{stay: true}
	case Pinned, PinnedByCorrelation:
		return &pinned{}
	default:
		return nil
	}
}

// inTurn goes round among the consumers: to the next with every event, or only
// when the one whose turn it is has no room.
type inTurn struct {
	stay      bool
	consumers []*Consumer
	turn      int
}

func (s *inTurn) join(c *Consumer) { s.consumers = append(s.consumers, c) }

func (s *inTurn) leave(c *Consumer) {
	for i, known := range s.consumers {
		if known != c {
			continue
		}
		s.consumers = append(s.consumers[:i:i], s.consumers[i+1:]...)
		if i < s.turn {
			s.turn--
		}
		return
	}
}

func (s *inTurn) choose(string) *Consumer {
	for range s.consumers {
		if s.turn >= len(s.consumers) {
			s.turn = 0
		}
		c := s.consumers[s.turn]
		if c.slots() > 0 {
			if !s.stay {
				s.turn++
			}
			return c
		}
		s.turn++
	}
	return nil
}

func (s *inTurn) gave(string, int) {}
