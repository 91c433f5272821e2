package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"google.golang.org/grpc/codes"
)

// TestGroupRestart: eventstore.md: checkpoints and groups are durable, so that a
// restart goes on.
func TestGroupRestart(t *testing.T) {
	t.Run("from the checkpoint", func(t *testing.T) {
		dir := t.TempDir()
		r := newGroupRig(t, Config{Dir: dir})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(5)...)
		r.create("s", esdb.Start{}, eager(nil))
		c := r.consume("s", 3)
		e := c.want("s/0 s/1 s/2")
		c.ack(e[0], e[2]) // 1 is not answered
		r.awaitCheckpoint("s", 0)
		r.restart(dir)
		r.consume("s", 5).want("s/1 s/2 s/3 s/4")
		if at := r.info("s").Stats.LastCheckpointedEventRevision; at == nil || *at != 0 {
			t.Fatal(at)
		}
	})
	t.Run("an orderly stop writes down what the bounds would not", func(t *testing.T) {
		dir := t.TempDir()
		r := newGroupRig(t, Config{Dir: dir})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(3)...)
		r.create("s", esdb.Start{}, nil) // ten events at least
		c := r.consume("s", 3)
		c.ack(c.want("s/0 s/1 s/2")[:2]...)
		r.await("s", "the answers", func(i *esdb.PersistentSubscriptionInfo) bool { return i.Stats.TotalInFlightMessages == 1 })
		r.restart(dir)
		r.consume("s", 3).want("s/2")
	})
	t.Run("without one it goes on from the last that was written", func(t *testing.T) {
		dir := t.TempDir()
		r := newGroupRig(t, Config{Dir: dir})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(4)...)
		r.create("s", esdb.Start{}, eager(func(s *esdb.PersistentSubscriptionSettings) { s.CheckpointUpperBound, s.CheckpointAfter = 100, 1<<30 }))
		c := r.consume("s", 4)
		e := c.want("s/0 s/1 s/2 s/3")
		c.ack(e[0])
		r.awaitCheckpoint("s", 0)
		c.ack(e[1:]...)
		r.await("s", "the answers", func(i *esdb.PersistentSubscriptionInfo) bool { return i.Stats.TotalInFlightMessages == 0 })
		g, err := r.s.subs.find(groupName{"s", "g"})
		if err != nil {
			t.Fatal(err)
		}
		g.end(false) // as if the process had died
		r.restart(dir)
		r.consume("s", 4).want("s/1 s/2 s/3")
	})
	t.Run("the whole log", func(t *testing.T) {
		dir := t.TempDir()
		r := newGroupRig(t, Config{Dir: dir})
		r.createAll(esdb.PersistentAllSubscriptionOptions{
			StartFrom: esdb.Start{}, Settings: eager(nil), Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"s"}},
		})
		w := mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(1)...)
		mustAppend(t, r.c, "s", esdb.Any{}, newEvents(1)...)
		c := r.consume("$all", 5)
		c.ack(c.want("s/0 s/1")[0])
		r.await("$all", "a checkpoint", func(i *esdb.PersistentSubscriptionInfo) bool {
			return i.Stats.LastCheckpointedPosition != nil && i.Stats.LastCheckpointedPosition.Commit == w.CommitPosition
		})
		r.restart(dir)
		r.consume("$all", 5).want("s/1")
	})
	t.Run("settings", func(t *testing.T) {
		dir := t.TempDir()
		r := newGroupRig(t, Config{Dir: dir})
		r.create("s", esdb.Revision(7), eager(func(s *esdb.PersistentSubscriptionSettings) {
			s.MaxSubscriberCount, s.ConsumerStrategyName, s.ExtraStatistics = 3, esdb.ConsumerStrategyPinned, true
		}))
		before := *r.info("s").Settings
		r.restart(dir)
		if after := *r.info("s").Settings; after != before {
			t.Fatalf("%+v, was %+v", after, before)
		}
	})
	t.Run("checkpoints do not pile up", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(20)...)
		r.create("s", esdb.Start{}, eager(nil))
		c := r.consume("s", 1)
		for range 20 {
			e, _ := c.events(1)
			c.ack(e...)
		}
		r.awaitCheckpoint("s", 19)
		e, err := readForward(t, r.c, groupName{"s", "g"}.checkpoints(), esdb.Start{}, 100)
		if err != nil || len(e) != keptEvents || string(e[1].Data) != `"19"` || e[1].EventType != checkpointType {
			t.Fatal(len(e), err)
		}
	})
}

// TestGroupOnAll: eventstore.md, groups on $all with filters.
func TestGroupOnAll(t *testing.T) {
	fill := func(r *groupRig) {
		for n, stream := range []string{"order-1", "user-1", "order-2"} {
			e := newEvents(1)
			e[0].EventType = fmt.Sprint("kind-", n)
			mustAppend(t, r.c, stream, esdb.NoStream{}, e...)
		}
	}
	for _, tc := range []struct {
		name   string
		filter *esdb.SubscriptionFilter
		want   string
	}{
		{"all", nil, "order-1/0 user-1/0 order-2/0"},
		{"stream prefix", &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"order-", "x"}}, "order-1/0 order-2/0"},
		{"stream expression", &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Regex: "^user"}, "user-1/0"},
		{"type prefix", &esdb.SubscriptionFilter{Type: esdb.EventFilterType, Prefixes: []string{"kind-2"}}, "order-2/0"},
		{"type expression", &esdb.SubscriptionFilter{Type: esdb.EventFilterType, Regex: "[01]$"}, "order-1/0 user-1/0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newGroupRig(t, Config{})
			r.createAll(esdb.PersistentAllSubscriptionOptions{StartFrom: esdb.Start{}, Filter: tc.filter})
			fill(r)
			c := r.consume("$all", 10)
			c.ack(c.want(tc.want)...)
			c.quiet()
		})
	}
	t.Run("from a position on, inclusive", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(1)...)
		w := mustAppend(t, r.c, "s", esdb.Any{}, newEvents(1)...)
		mustAppend(t, r.c, "s", esdb.Any{}, newEvents(1)...)
		r.createAll(esdb.PersistentAllSubscriptionOptions{StartFrom: esdb.Position{Commit: w.CommitPosition, Prepare: w.PreparePosition}})
		c := r.consume("$all", 10)
		e := c.want("s/1 s/2")
		if e[0].Commit == nil || *e[0].Commit != w.CommitPosition || e[0].Event.Position.Commit != w.CommitPosition {
			t.Fatalf("%+v", e[0])
		}
		start := esdb.Position{Commit: w.CommitPosition, Prepare: w.CommitPosition}
		if got := r.info("$all").Settings.StartFrom.(*esdb.Position); *got != start {
			t.Fatalf("%+v", got)
		}
	})
	t.Run("client test persistentSubscriptionToAll_Read", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		r.createAll(esdb.PersistentAllSubscriptionOptions{StartFrom: esdb.Start{}})
		fill(r)
		c := r.consume("$all", 2)
		c.ack(c.want("order-1/0 user-1/0")[0])
		c.ack(c.want("order-2/0")...)
	})
	t.Run("events that do not pass move the checkpoint", func(t *testing.T) {
		dir := t.TempDir()
		r := newGroupRig(t, Config{Dir: dir})
		r.createAll(esdb.PersistentAllSubscriptionOptions{
			StartFrom: esdb.Start{}, Settings: eager(nil), Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"none"}},
		})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(100)...)
		r.consume("$all", 2)
		r.await("$all", "a checkpoint", func(i *esdb.PersistentSubscriptionInfo) bool { return i.Stats.LastCheckpointedPosition != nil })
	})
	t.Run("its own checkpoints cause none", func(t *testing.T) {
		r := newGroupRig(t, Config{})
		r.createAll(esdb.PersistentAllSubscriptionOptions{StartFrom: esdb.Start{}, Settings: eager(func(s *esdb.PersistentSubscriptionSettings) { s.CheckpointAfter = 0 })})
		w := mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(1)...)
		c := r.consume("$all", 10)
		c.ack(c.want("s/0")...)
		r.await("$all", "the checkpoint", func(i *esdb.PersistentSubscriptionInfo) bool {
			return i.Stats.LastCheckpointedPosition != nil && i.Stats.LastCheckpointedPosition.Commit == w.CommitPosition
		})
		c.quiet()
		end := r.s.store.committed.Load()
		c.quiet()
		if now := r.s.store.committed.Load(); now != end {
			t.Fatalf("the log grows by itself, from %d to %d", end, now)
		}
	})
}

// TestGroupDrops: eventstore.md, "Errors on the wire": dropped is Cancelled.
func TestGroupDrops(t *testing.T) {
	ctx := context.Background()
	for _, tc := range []struct {
		name string
		drop func(r *groupRig, c *consumer, e []*esdb.ResolvedEvent)
		want string // what a new consumer gets; empty is that there is no group
	}{
		{"delete", func(r *groupRig, _ *consumer, _ []*esdb.ResolvedEvent) {
			if err := r.c.DeletePersistentSubscription(ctx, "s", "g", esdb.DeletePersistentSubscriptionOptions{}); err != nil {
				r.t.Fatal(err)
			}
		}, ""},
		{"update", func(r *groupRig, _ *consumer, _ []*esdb.ResolvedEvent) {
			// What was acknowledged stays so, though no bound asked for a checkpoint.
			if err := r.c.UpdatePersistentSubscription(ctx, "s", "g", esdb.PersistentStreamSubscriptionOptions{StartFrom: esdb.Start{}}); err != nil {
				r.t.Fatal(err)
			}
		}, "s/1 s/2"},
		{"stop", func(_ *groupRig, c *consumer, e []*esdb.ResolvedEvent) { c.nack(esdb.NackActionStop, e[1]) }, "s/1*1 s/2*1"},
		{"restart of the subsystem", func(r *groupRig, _ *consumer, _ []*esdb.ResolvedEvent) { // client test persistentRestartSubsystem
			if err := r.c.RestartPersistentSubscriptionSubsystem(ctx, esdb.RestartPersistentSubscriptionSubsystemOptions{}); err != nil {
				r.t.Fatal(err)
			}
		}, "s/1 s/2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newGroupRig(t, Config{})
			mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(3)...)
			r.create("s", esdb.Start{}, nil)
			a := r.consume("s", 3)
			e := a.want("s/0 s/1 s/2")
			a.ack(e[0])
			r.await("s", "the answer", func(i *esdb.PersistentSubscriptionInfo) bool { return i.Stats.TotalInFlightMessages == 2 })
			b := r.consume("s", 3)
			tc.drop(r, a, e)
			a.wantDropped(codes.Canceled)
			b.wantDropped(codes.Canceled)
			if tc.want != "" {
				r.consume("s", 3).want(tc.want)
			} else if _, err := r.tryConsume("s", 3); code(err) != esdb.ErrorCodeResourceNotFound {
				t.Fatal(err)
			}
		})
	}
	t.Run("a group of the same name begins anew", func(t *testing.T) { // client test createPersistentStreamSubscription_AfterDeleting
		dir := t.TempDir()
		r := newGroupRig(t, Config{Dir: dir})
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(2)...)
		for range 2 {
			r.create("s", esdb.Start{}, eager(nil))
			c := r.consume("s", 2)
			e := c.want("s/0 s/1")
			c.ack(e[0])
			c.nack(esdb.NackActionPark, e[1])
			r.awaitCheckpoint("s", 1)
			if err := r.c.DeletePersistentSubscription(ctx, "s", "g", esdb.DeletePersistentSubscriptionOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		r.create("s", esdb.Start{}, eager(nil))
		if i := r.info("s"); i.Stats.ParkedMessagesCount != 0 || i.Stats.LastCheckpointedEventRevision != nil {
			t.Fatalf("%+v", i.Stats)
		}
		r.restart(dir)
		c := r.consume("s", 2)
		c.ack(c.want("s/0 s/1")...)
		r.awaitCheckpoint("s", 1)
		r.restart(dir)
		r.consume("s", 2).quiet()
	})
}

// TestGroupServerCloses: eventstore.md, "Stop": every session ends with a status
// within a second.
func TestGroupServerCloses(t *testing.T) {
	r := newGroupRig(t, Config{})
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(3)...)
	r.create("s", esdb.Start{}, nil)
	busy, idle := r.consume("s", 1), r.consume("s", 5)
	busy.want("s/0")
	idle.want("s/1 s/2")
	begin := time.Now()
	closed := make(chan struct{})
	go func() { defer close(closed); closeServer(t, r.s) }()
	busy.wantDropped(codes.Unavailable)
	idle.wantDropped(codes.Unavailable)
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it took %v", took)
	}
	<-closed
}

// TestGroupSlowConsumer: a consumer that does not read costs no more than its
// buffer, and keeps nothing from the others.
func TestGroupSlowConsumer(t *testing.T) {
	r := newGroupRig(t, Config{})
	r.create("s", esdb.Start{}, eager(func(s *esdb.PersistentSubscriptionSettings) { s.MessageTimeout = 0 }))
	raw := groupStub(t, r.s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	slow, err := raw.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := slow.Send(readOptions("s", 4, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Recv(); err != nil { // the confirmation, and nothing more
		t.Fatal(err)
	}
	const n = 60
	quick := r.consume("s", 10)
	go func() {
		for range n {
			e := newEvents(1)
			e[0].Data = make([]byte, 256<<10) // more than flow control lets through unread
			e[0].ContentType = esdb.ContentTypeBinary
			if _, err := r.c.AppendToStream(context.Background(), "s", esdb.AppendToStreamOptions{}, e...); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range n - 4 {
		e, _ := quick.events(1)
		quick.ack(e...)
	}
	r.await("s", "what the slow one holds", func(i *esdb.PersistentSubscriptionInfo) bool { return i.Stats.TotalInFlightMessages == 4 })
	cancel()
	quick.events(4)
}

func readOptions(stream string, buffer int32, change func(*persistent.ReadReq_Options)) *persistent.ReadReq {
	o := &persistent.ReadReq_Options{
		StreamOption: &persistent.ReadReq_Options_StreamIdentifier{StreamIdentifier: identifier(stream)}, GroupName: "g", BufferSize: buffer,
	}
	if change != nil {
		change(o)
	}
	return &persistent.ReadReq{Content: &persistent.ReadReq_Options_{Options: o}}
}

// TestGroupConsumerSaysNoMore: a consumer that has closed its side can't answer;
// its call ends, and another gets its events.
func TestGroupConsumerSaysNoMore(t *testing.T) {
	r := newGroupRig(t, Config{})
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(1)...)
	r.create("s", esdb.Start{}, nil)
	one, err := groupStub(t, r.s).Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Send(readOptions("s", 4, nil)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // confirmation, event
		if _, err := one.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Recv(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	r.consume("s", 1).want("s/0*1")
}
