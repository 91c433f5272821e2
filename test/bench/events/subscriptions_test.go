package events

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

const (
	subscriptions = 1000
	// deliveries is how many events are sent to all of them, one after the other.
	deliveries = 50
)

// BenchmarkSubscriptions opens 1,000 subscriptions to the whole log, lets them
// go live, and tells what each costs the store in memory and how long an event
// takes to the last of them, from before its append.
func BenchmarkSubscriptions(b *testing.B) {
	dir := place(b)
	socket := filepath.Join(dir, "run", "s")
	store := startChild(b, dir, socket)
	c := connect(b, "unix:"+socket)
	seed(b, c, 0, 1000)
	before := store.usage()
	var subs sync.WaitGroup
	defer subs.Wait()
	arrived := make(chan time.Time, subscriptions)
	live := make(chan struct{}, subscriptions)
	for range subscriptions {
		sub, err := c.SubscribeToAll(b.Context(), esdb.SubscribeToAllOptions{From: esdb.End{}})
		if err != nil {
			b.Fatal(err)
		}
		defer sub.Close()
		subs.Go(func() {
			for {
				m := sub.Recv()
				switch {
				case m.EventAppeared != nil:
					arrived <- time.Now()
				case m.CaughtUp != nil:
					live <- struct{}{}
				case m.SubscriptionDropped != nil:
					return
				}
			}
		})
	}
	for range subscriptions {
		<-live
	}
	after := store.usage()
	for b.Loop() {
		var slowest, firsts []float64
		for i := range deliveries {
			begin := time.Now()
			if err := appendEvents(b.Context(), c, fmt.Sprintf("live-%s.%d", b.Name(), i), esdb.Any{}, newEvent()); err != nil {
				b.Fatal(err)
			}
			var first, last time.Duration
			for n := range subscriptions {
				took := (<-arrived).Sub(begin)
				if last = max(last, took); n == 0 {
					first = took
				}
			}
			slowest, firsts = append(slowest, last.Seconds()*1000), append(firsts, first.Seconds()*1000)
		}
		fmt.Printf("\n%d subscriptions to $all, load %s\n", subscriptions, load())
		fmt.Printf("each: heap %.1f KiB, stacks %.1f KiB, RSS %.1f KiB, %.1f goroutines in the store's process\n",
			each(before.Heap, after.Heap), each(before.Stacks, after.Stacks), each(before.RSS, after.RSS),
			float64(after.Goroutines-before.Goroutines)/subscriptions)
		fmt.Printf("an event, from before its append to the last of them: median %.1f ms, slowest of %d %.1f ms; to the first: median %.1f ms\n",
			median(slowest), deliveries, largest(slowest), median(firsts))
		b.ReportMetric(median(slowest), "ms-slowest")
	}
}

// each is what one subscription adds, in KiB.
func each(before, after uint64) float64 {
	return (float64(after) - float64(before)) / 1024 / subscriptions
}

func largest(of []float64) (m float64) {
	for _, v := range of {
		m = max(m, v)
	}
	return m
}
