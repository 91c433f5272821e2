package embedded

import (
	"fmt"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
)

// TestGroupStart: where a group begins. The cases are those of the client's
// persistent_subscription_read_test.go.
func TestGroupStart(t *testing.T) {
	for _, tc := range []struct {
		name          string // of the client's test, without the prefix persistentSubscription_
		before, after int    // events appended before and after the group is made
		from          esdb.StreamPosition
		want          string
	}{
		{"ToExistingStream_StartFromBeginning_AndEventsInIt", 3, 0, esdb.Start{}, "s/0 s/1 s/2"},
		{"ToNonExistingStream_StartFromBeginning_AppendEventsAfterwards", 0, 2, esdb.Start{}, "s/0 s/1"},
		{"ToExistingStream_StartFromEnd_EventsInItAndAppendEventsAfterwards", 10, 1, esdb.End{}, "s/10"},
		{"ToExistingStream_StartFromEnd_EventsInIt", 10, 0, esdb.End{}, ""},
		{"ToNonExistingStream_StartFromTwo_AppendEventsAfterwards", 0, 4, esdb.Revision(2), "s/2 s/3"},
		{"ToExistingStream_StartFrom10_EventsInItAppendEventsAfterwards", 10, 1, esdb.Revision(10), "s/10"},
		{"ToExistingStream_StartFrom4_EventsInIt", 10, 0, esdb.Revision(4), "s/4 s/5 s/6 s/7 s/8 s/9"},
		{"ToExistingStream_StartFromHigherRevisionThenEventsInStream", 11, 1, esdb.Revision(11), "s/11"},
		{"from the end of a missing stream", 0, 2, esdb.End{}, "s/0 s/1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newGroupRig(t, Config{})
			for range tc.before {
				mustAppend(t, r.c, "s", esdb.Any{}, newEvents(1)...)
			}
			r.create("s", tc.from, nil)
			for range tc.after {
				mustAppend(t, r.c, "s", esdb.Any{}, newEvents(1)...)
			}
			c := r.consume("s", 50)
			c.want(tc.want)
			c.quiet()
			mustAppend(t, r.c, "s", esdb.Any{}, newEvents(1)...)
			c.want(fmt.Sprint("s/", tc.before+tc.after))
		})
	}
}

// TestGroupStartOutlivesARestart: a group made at the end begins there, also if
// its first consumer comes after the server was restarted.
func TestGroupStartOutlivesARestart(t *testing.T) {
	dir := t.TempDir()
	r := newGroupRig(t, Config{Dir: dir})
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(3)...)
	r.create("s", esdb.End{}, nil)
	r.createAll(esdb.PersistentAllSubscriptionOptions{
		StartFrom: esdb.End{}, Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"s"}},
	})
	mustAppend(t, r.c, "s", esdb.Any{}, newEvents(1)...)
	r.restart(dir)
	r.consume("s", 10).want("s/3")
	r.consume("$all", 10).want("s/3")
	if got := r.info("s").Settings.StartFrom; got != (esdb.End{}) {
		t.Fatalf("%#v", got)
	}
}

// TestGroupWindow: client tests ReadExistingStream_AckToReceiveNewEvents and
// ReadExistingStream_NackToReceiveNewEvents.
func TestGroupWindow(t *testing.T) {
	for name, answer := range map[string]func(c *consumer, e *esdb.ResolvedEvent){
		"ack":  func(c *consumer, e *esdb.ResolvedEvent) { c.ack(e) },
		"park": func(c *consumer, e *esdb.ResolvedEvent) { c.nack(esdb.NackActionPark, e) },
		"skip": func(c *consumer, e *esdb.ResolvedEvent) { c.nack(esdb.NackActionSkip, e) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newGroupRig(t, Config{})
			mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(3)...)
			r.create("s", esdb.Start{}, nil)
			c := r.consume("s", 2)
			e := c.want("s/0 s/1")
			c.quiet()
			answer(c, e[0])
			c.want("s/2")
		})
	}
}

// TestGroupRetry: persistent_subscription.go of the client, NackAction.
func TestGroupRetry(t *testing.T) {
	r := newGroupRig(t, Config{})
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(2)...)
	r.create("s", esdb.Start{}, eager(func(s *esdb.PersistentSubscriptionSettings) { s.MaxRetryCount = 2 }))
	c := r.consume("s", 1)
	c.nack(esdb.NackActionRetry, c.want("s/0")...)
	c.nack(esdb.NackActionUnknown, c.want("s/0*1")...)
	c.nack(esdb.NackActionRetry, c.want("s/0*2")...)
	c.ack(c.want("s/1")...) // the other is parked
	r.awaitCheckpoint("s", 1)
	r.awaitParked("s", 1)
}

// TestGroupTimeout: types.go of the client, MessageTimeout.
func TestGroupTimeout(t *testing.T) {
	r := newGroupRig(t, Config{})
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(1)...)
	r.create("s", esdb.Start{}, eager(func(s *esdb.PersistentSubscriptionSettings) { s.MessageTimeout = 50; s.MaxRetryCount = 1000 }))
	c := r.consume("s", 1)
	first := c.want("s/0")
	c.want("s/0*1")
	c.want("s/0*2")
	// The id is the same, so the answer to the first counts for the last.
	c.ack(first...)
	r.awaitCheckpoint("s", 0)
}

// TestGroupWithoutTimeout: client test
// createPersistentStreamSubscription_MessageTimeoutZero.
func TestGroupWithoutTimeout(t *testing.T) {
	r := newGroupRig(t, Config{})
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(1)...)
	r.create("s", esdb.Start{}, eager(func(s *esdb.PersistentSubscriptionSettings) { s.MessageTimeout = 0 }))
	c := r.consume("s", 1)
	c.want("s/0")
	c.quiet()
}

// TestGroupCompetingConsumers: types.go of the client, ConsumerStrategy.
func TestGroupCompetingConsumers(t *testing.T) {
	t.Run("RoundRobin", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		r.create("s", esdb.Start{}, nil)
		a, b := r.consume("s", 10), r.consume("s", 10)
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(4)...)
		a.want("s/0 s/2")
		b.want("s/1 s/3")
	})
	t.Run("DispatchToSingle", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		r.create("s", esdb.Start{}, eager(func(s *esdb.PersistentSubscriptionSettings) {
			s.ConsumerStrategyName = esdb.ConsumerStrategyDispatchToSingle
		}))
		a, b := r.consume("s", 3), r.consume("s", 10)
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(4)...)
		a.want("s/0 s/1 s/2")
		b.want("s/3")
	})
	t.Run("Pinned, on links", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		const sources = 40
		r.create("links", esdb.Start{}, eager(func(s *esdb.PersistentSubscriptionSettings) {
			s.ConsumerStrategyName, s.ResolveLinkTos = esdb.ConsumerStrategyPinned, true
		}))
		a, b := r.consume("links", 2*sources), r.consume("links", 2*sources)
		for n := range sources {
			mustAppend(t, r.c, fmt.Sprint("source-", n), esdb.NoStream{}, newEvents(2)...)
		}
		for n := range 2 * sources {
			mustAppend(t, r.c, "links", esdb.Any{}, esdb.EventData{
				EventID: uuid.New(), EventType: linkType, ContentType: esdb.ContentTypeBinary,
				Data: fmt.Appendf(nil, "%d@source-%d", n/sources, n%sources),
			})
		}
		who := map[string]*consumer{}
		for n := range 2 * sources {
			var m *esdb.PersistentSubscriptionEvent
			var c *consumer
			select {
			case m = <-a.msgs:
				c = a
			case m = <-b.msgs:
				c = b
			case <-time.After(20 * time.Second):
				t.Fatalf("%d events came", n)
			}
			source := m.EventAppeared.Event.Event.StreamID
			if m.EventAppeared.Event.Link == nil || m.EventAppeared.Event.Link.StreamID != "links" {
				t.Fatalf("%+v", m.EventAppeared.Event)
			}
			if other := who[source]; other != nil && other != c {
				t.Fatalf("%s went to both", source)
			}
			who[source] = c
			c.ack(m.EventAppeared.Event)
		}
		got := map[*consumer]int{}
		for _, c := range who {
			got[c]++
		}
		if len(who) != sources || got[a] == 0 || got[b] == 0 {
			t.Fatalf("%d sources, %d and %d", len(who), got[a], got[b])
		}
	})
	t.Run("one leaves, the other gets what it had", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		r.create("s", esdb.Start{}, nil)
		a, b := r.consume("s", 10), r.consume("s", 10)
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(2)...)
		a.want("s/0")
		b.want("s/1")
		if err := a.sub.Close(); err != nil {
			t.Fatal(err)
		}
		b.want("s/0*1")
	})
}

// TestGroupOnLinks: persistent.proto, ReadEvent and Settings.resolve_links.
func TestGroupOnLinks(t *testing.T) {
	for _, resolve := range []bool{true, false} {
		t.Run(fmt.Sprint("resolve ", resolve), func(t *testing.T) {
			r := newGroupRig(t, Config{})
			target := newEvents(1)
			mustAppend(t, r.c, "target", esdb.NoStream{}, target...)
			link := esdb.EventData{EventID: uuid.New(), EventType: linkType, ContentType: esdb.ContentTypeBinary, Data: []byte("0@target")}
			broken := link
			broken.EventID, broken.Data = uuid.New(), []byte("7@target")
			mustAppend(t, r.c, "links", esdb.NoStream{}, link, broken)
			r.create("links", esdb.Start{}, eager(func(s *esdb.PersistentSubscriptionSettings) { s.ResolveLinkTos = resolve }))
			c := r.consume("links", 5)
			want := "links/0 links/1"
			if resolve {
				want = "target/0 links/1"
			}
			e := c.want(want)
			if resolve && (e[0].Event.EventID != target[0].EventID || e[0].Link.EventID != link.EventID) {
				t.Fatalf("%+v", e[0])
			}
			c.ack(e...) // by the link's id
			r.awaitCheckpoint("links", 1)
		})
	}
}
