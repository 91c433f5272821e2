package persistent

import "hash/fnv"

// buckets is into how many parts pinning divides the events.
const buckets = 1024

// pinned gives all events of one pin, a source stream or a correlation id, to
// one consumer. Pins fall into buckets, and every bucket belongs to a consumer;
// when consumers come and go, buckets change hands, those first of which nobody
// holds an event.
type pinned struct {
	consumers []*Consumer
	owner     [buckets]*Consumer
	holds     [buckets]int // events of the bucket that consumers hold
}

func bucket(pin string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(pin)) // it can't fail
	return int(h.Sum32() % buckets)
}

func (s *pinned) join(c *Consumer) {
	s.consumers = append(s.consumers, c)
	share := buckets / len(s.consumers)
	owned := s.owned()
	for _, busy := range []bool{false, true} {
		for b := range s.owner {
			if share == 0 {
				return
			}
			from := s.owner[b]
			if (s.holds[b] > 0) != busy || from == c || from != nil && owned[from] <= buckets/len(s.consumers) {
				continue
			}
			owned[from]--
			s.owner[b] = c
			share--
		}
	}
}

func (s *pinned) leave(c *Consumer) {
	for i, known := range s.consumers {
		if known == c {
			s.consumers = append(s.consumers[:i:i], s.consumers[i+1:]...)
			break
		}
	}
	owned := s.owned()
	for b := range s.owner {
		if s.owner[b] != c {
			continue
		}
		var heir *Consumer
		for _, other := range s.consumers {
			if heir == nil || owned[other] < owned[heir] {
				heir = other
			}
		}
		s.owner[b] = heir
		owned[heir]++
	}
}

// owned counts the buckets of every consumer.
func (s *pinned) owned() map[*Consumer]int {
	n := make(map[*Consumer]int, len(s.consumers)+1)
	for _, c := range s.owner {
		n[c]++
	}
	return n
}

func (s *pinned) choose(pin string) *Consumer {
	if c := s.owner[bucket(pin)]; c != nil && c.slots() > 0 {
		return c
	}
	return nil
}

func (s *pinned) gave(pin string, n int) { s.holds[bucket(pin)] += n }
