package events

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

const (
	// catchUpEvents is how long the log is that is caught up with in one round.
	catchUpEvents = 50_000
	catchUpRounds = 15
	// catchUpBar is the bar of P2.
	catchUpBar = 0.9
)

// catchUp subscribes to the whole log from its start and tells how many events
// a second came until the given number was there.
func catchUp(b *testing.B, c *esdb.Client, events int) figure {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	started, used := time.Now(), processorTime()
	sub, err := c.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.Start{}})
	if err != nil {
		b.Fatal(err)
	}
	defer sub.Close()
	for n := 0; n < events; {
		m := sub.Recv()
		switch {
		case m.EventAppeared != nil:
			n++
		case m.SubscriptionDropped != nil:
			b.Fatal(m.SubscriptionDropped.Error)
		case m.CaughtUp != nil:
			b.Fatalf("caught up after %d events of %d", n, events)
		}
	}
	return figure{
		rate:      float64(events) / time.Since(started).Seconds(),
		processor: (processorTime() - used).Seconds() * 1e6 / float64(events),
	}
}

// comparison is how two servers did in rounds in which they took turns.
type comparison struct{ store, top, storeProcessor, topProcessor []float64 }

func compareCatchUp(b *testing.B, store, top *esdb.Client, events, rounds int) (c comparison) {
	b.Helper()
	for r := range rounds {
		for i := range 2 {
			if (r+i)%2 == 0 {
				f := catchUp(b, store, events)
				c.store, c.storeProcessor = append(c.store, f.rate), append(c.storeProcessor, f.processor)
			} else {
				f := catchUp(b, top, events)
				c.top, c.topProcessor = append(c.top, f.rate), append(c.topProcessor, f.processor)
			}
		}
	}
	return c
}

// BenchmarkP2CatchUp compares catching up with the whole log of the embedded
// store with the same client at a server that has its messages in memory.
func BenchmarkP2CatchUp(b *testing.B) {
	address, _ := open(b, place(b))
	store, top := connect(b, address), connect(b, serveCeiling(b, catchUpEvents))
	seed(b, store, 0, catchUpEvents)
	for b.Loop() {
		c := compareCatchUp(b, store, top, catchUpEvents, catchUpRounds)
		of := median(ratios(c.store, c.top))
		fmt.Printf("\n$all catch-up, %d events of %d B, medians of %d rounds, load %s; in brackets the processor time of client and server, in µs an event\n",
			catchUpEvents, payload, catchUpRounds, load())
		fmt.Printf("%s %.0f events/s (%.1f), %s %.0f events/s (%.1f): %.2f (bar %.1f: %s)\n", wayCeiling, median(c.top), median(c.topProcessor),
			wayEmbedded, median(c.store), median(c.storeProcessor), of, catchUpBar, verdict(of, catchUpBar))
		b.ReportMetric(median(c.store), "events/s")
	}
}
