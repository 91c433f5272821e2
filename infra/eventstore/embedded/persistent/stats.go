package persistent

import (
	"slices"
	"time"
)

// Stats tell what a group is doing. Rates and counts since the last measurement
// go from one call to the next.
type Stats struct {
	Live, Replaying bool
	Rate

	Waiting     int // read and given to nobody yet
	Retrying    int // waiting because they failed, or were parked
	InFlight    int
	Outstanding int // in flight, or being parked
	Consumers   []ConsumerStats
}

// Rate counts events that were handed out.
type Rate struct {
	PerSecond int
	Total     int64
	SinceLast int64
}

// ConsumerStats tell what a consumer is doing.
type ConsumerStats struct {
	Consumer *Consumer
	Rate
	FreeSlots int
	InFlight  int
	Latency   []Measurement // only with extra statistics
}

// Measurement is one number about a consumer; times are in milliseconds.
type Measurement struct {
	Key   string
	Value int64
}

// Measure gives the group's statistics.
func (g *Group) Measure(now time.Time) Stats {
	elapsed := now.Sub(g.since)
	g.since = now
	s := Stats{
		Live: g.source.live, Replaying: g.Replaying(), Rate: rate(g.total, &g.measured, elapsed),
		Waiting: g.buffer.Len(), Retrying: g.retry.Len(),
		InFlight: g.inFlight.Len(), Outstanding: g.inFlight.Len() + len(g.parking),
	}
	for _, c := range g.consumers {
		cs := ConsumerStats{Consumer: c, Rate: rate(c.total, &c.measured, elapsed), FreeSlots: c.slots(), InFlight: c.held}
		if c.latency != nil {
			cs.Latency = c.latency.measure()
		}
		s.Consumers = append(s.Consumers, cs)
	}
	return s
}

func rate(total int64, last *int64, elapsed time.Duration) Rate {
	r := Rate{Total: total, SinceLast: total - *last}
	*last = total
	if elapsed > 0 {
		r.PerSecond = int(float64(r.SinceLast) / elapsed.Seconds())
	}
	return r
}

// latencyWindow is from how many answers the latencies of a consumer are told.
const latencyWindow = 1000

// latencies are how long a consumer took for its last events.
type latencies struct {
	ring []time.Duration
	next int
}

func (l *latencies) add(d time.Duration) {
	if len(l.ring) < latencyWindow {
		l.ring = append(l.ring, d)
		return
	}
	l.ring[l.next] = d
	l.next = (l.next + 1) % latencyWindow
}

// measure gives the measurements that the protocol knows; none before the first answer.
func (l *latencies) measure() []Measurement {
	n := len(l.ring)
	if n == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(l.ring))
	var sum time.Duration
	for _, d := range sorted {
		sum += d
	}
	part := func(permille int) int64 { return sorted[min(n*permille/1000, n-1)].Milliseconds() }
	return []Measurement{
		{"Mean", (sum / time.Duration(n)).Milliseconds()},
		{"Median", part(500)},
		{"Fastest", part(0)},
		{"Quintile 1", part(0)},
		{"Quintile 2", part(200)},
		{"Quintile 3", part(400)},
		{"Quintile 4", part(600)},
		{"Quintile 5", part(800)},
		{"90%", part(900)},
		{"95%", part(950)},
		{"99%", part(990)},
		{"99.5%", part(995)},
		{"99.9%", part(999)},
		{"Highest", part(1000)},
	}
}
