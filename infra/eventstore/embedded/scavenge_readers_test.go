package embedded

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// A scavenge runs beside readers of every kind, who get no error and miss
// nothing that they may see: subscriptions to the whole log and to a stream, a
// group of consumers, reads of a stream that is cut while they read.
func TestScavengeBesideReaders(t *testing.T) {
	s := serve(t, Config{})
	c := connect(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), workloadLimit)
	defer cancel()
	const rounds, perRound = 30, 10
	total := rounds * perRound
	if err := c.CreatePersistentSubscription(ctx, "kept", "g", esdb.PersistentStreamSubscriptionOptions{StartFrom: esdb.Start{}}); err != nil {
		t.Fatal(err)
	}
	setMetadata(t, c, "capped", capped(20))
	mustAppend(t, c, "capped", esdb.Any{}, newEvents(30)...)
	var readers, writers sync.WaitGroup
	written := make(chan struct{})

	all, err := c.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.Start{}})
	if err != nil {
		t.Fatal(err)
	}
	readers.Go(func() { inOrder(t, "the whole log", total, all.Recv) })
	one, err := c.SubscribeToStream(ctx, "kept", esdb.SubscribeToStreamOptions{From: esdb.Start{}})
	if err != nil {
		t.Fatal(err)
	}
	readers.Go(func() { inOrder(t, "the stream", total, one.Recv) })
	group, err := c.SubscribeToPersistentSubscription(ctx, "kept", "g", esdb.SubscribeToPersistentSubscriptionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	readers.Go(func() { delivered(t, total, group) })
	for _, dir := range []esdb.Direction{esdb.Forwards, esdb.Backwards} {
		readers.Go(func() { readCapped(ctx, t, c, dir, written) })
	}

	for w := range 2 {
		writers.Go(func() {
			for i := range rounds {
				if w == 0 {
					mustAppend(t, c, "kept", esdb.Any{}, newEvents(perRound)...)
					continue
				}
				mustAppend(t, c, "capped", esdb.Any{}, newEvents(perRound)...)
				gone := fmt.Sprint("gone-", i)
				mustAppend(t, c, gone, esdb.Any{}, newEvents(perRound)...)
				if _, err := c.DeleteStream(ctx, gone, esdb.DeleteStreamOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { writers.Wait(); close(written) }()
	var removed uint64
	for writing := true; writing; {
		select {
		case <-written:
			writing = false
		default:
		}
		out, err := s.Scavenge(ctx, nil)
		if err != nil {
			t.Errorf("scavenge: %v", err)
			break
		}
		removed += out.Removed
	}
	readers.Wait()
	for _, sub := range []interface{ Close() error }{all, one, group} {
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	}
	// All of the deleted streams, all but twenty of the capped one.
	if want := uint64(total + 30 + total - 20); removed != want {
		t.Errorf("%d events were removed, %d were out of sight", removed, want)
	}
	if rep, err := s.Verify(ctx, nil); err != nil || rep.Damaged != 0 {
		t.Errorf("%+v, %v", rep, err)
	}
}

func capped(n uint64) esdb.StreamMetadata {
	m := esdb.StreamMetadata{}
	m.SetMaxCount(n)
	return m
}

// inOrder waits for all events of the stream that is never cut.
func inOrder(t *testing.T, who string, total int, recv func() *esdb.SubscriptionEvent) {
	for next := 0; next < total; {
		m := recv()
		switch {
		case m.SubscriptionDropped != nil:
			t.Errorf("%s: dropped after %d events: %v", who, next, m.SubscriptionDropped.Error)
			return
		case m.EventAppeared != nil && m.EventAppeared.OriginalEvent().StreamID == "kept":
			if got := m.EventAppeared.OriginalEvent().EventNumber; got != uint64(next) {
				t.Errorf("%s: event %d came where %d was due", who, got, next)
				return
			}
			next++
		}
	}
}

// delivered waits until a group has been given every event.
func delivered(t *testing.T, total int, group *esdb.PersistentSubscription) {
	seen := map[uint64]bool{}
	for len(seen) < total {
		m := group.Recv()
		switch {
		case m.SubscriptionDropped != nil:
			t.Errorf("the group: dropped after %d events: %v", len(seen), m.SubscriptionDropped.Error)
			return
		case m.EventAppeared != nil:
			seen[m.EventAppeared.Event.OriginalEvent().EventNumber] = true
			if err := group.Ack(m.EventAppeared.Event); err != nil {
				t.Errorf("the group: %v", err)
				return
			}
		}
	}
}

// readCapped reads the stream that is cut, again and again. What one read gives
// has no gap, and nothing that was there for good is missing.
func readCapped(ctx context.Context, t *testing.T, c *esdb.Client, dir esdb.Direction, until <-chan struct{}) {
	for {
		select {
		case <-until:
			return
		default:
		}
		opt := esdb.ReadStreamOptions{Direction: dir, From: esdb.Start{}}
		if dir == esdb.Backwards {
			opt.From = esdb.End{}
		}
		s, err := c.ReadStream(ctx, "capped", opt, 1000)
		events, err := readEvents(t, s, err)
		if err != nil {
			t.Errorf("read the capped stream: %v", err)
			return
		}
		for i := 1; i < len(events); i++ {
			step := int64(events[i].EventNumber) - int64(events[i-1].EventNumber)
			if dir == esdb.Forwards && step != 1 || dir == esdb.Backwards && step != -1 {
				t.Errorf("read the capped stream: %s", revisions(events))
				return
			}
		}
		if len(events) == 0 || len(events) > 20 {
			t.Errorf("read the capped stream: %d events", len(events))
			return
		}
	}
}
