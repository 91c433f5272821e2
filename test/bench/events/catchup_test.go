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

const (
	wayMessages = "in-memory server"
	wayEncoded  = "one that has them encoded"
)

// readers are the servers that P2 compares, each through a client.
type readers map[string]*esdb.Client

func newReaders(b *testing.B, store string, events int) readers {
	b.Helper()
	return readers{
		wayMessages: connect(b, serveCeiling(b, events, false)),
		wayEncoded:  connect(b, serveCeiling(b, events, true)),
		wayEmbedded: connect(b, store),
	}
}

// measure takes the figures of all of them in rounds; in each another one begins.
func (r readers) measure(b *testing.B, events int) (rates, processor map[string][]float64) {
	b.Helper()
	names := []string{wayMessages, wayEmbedded, wayEncoded}
	rates, processor = map[string][]float64{}, map[string][]float64{}
	for round := range catchUpRounds {
		for i := range names {
			name := names[(i+round)%len(names)]
			f := catchUp(b, r[name], events)
			rates[name] = append(rates[name], f.rate)
			processor[name] = append(processor[name], f.processor)
		}
	}
	return rates, processor
}

// BenchmarkP2CatchUp compares catching up with the whole log of the embedded
// store with the same client at a server that has its messages in memory; and
// with one that has them encoded as well and does nothing but send.
func BenchmarkP2CatchUp(b *testing.B) {
	address, _ := open(b, place(b))
	r := newReaders(b, address, catchUpEvents)
	seed(b, r[wayEmbedded], 0, catchUpEvents)
	for b.Loop() {
		f, cpu := r.measure(b, catchUpEvents)
		of := median(ratios(f[wayEmbedded], f[wayMessages]))
		fmt.Printf("\n$all catch-up, %d events of %d B, medians of %d rounds, load %s; events/s, in brackets the processor time of client and server, in µs an event\n",
			catchUpEvents, payload, catchUpRounds, load())
		for _, name := range []string{wayMessages, wayEncoded, wayEmbedded} {
			fmt.Printf("%-26s %14s\n", name, fmt.Sprintf("%.0f (%.1f)", median(f[name]), median(cpu[name])))
		}
		fmt.Printf("%.2f of the in-memory server (bar %.1f: %s), %.2f of the one that has them encoded\n",
			of, catchUpBar, verdict(of, catchUpBar), median(ratios(f[wayEmbedded], f[wayEncoded])))
		b.ReportMetric(median(f[wayEmbedded]), "events/s")
	}
}
