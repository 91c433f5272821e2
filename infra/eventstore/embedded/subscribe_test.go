package embedded

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// follower reads a subscription's messages in the background, so that a test
// can wait for each with a deadline.
type follower struct {
	t    *testing.T
	sub  *esdb.Subscription
	msgs chan *esdb.SubscriptionEvent
	stop context.CancelFunc
	done chan struct{}
}

func follow(t *testing.T, open func(context.Context) (*esdb.Subscription, error)) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	sub, err := open(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	f := &follower{t: t, sub: sub, msgs: make(chan *esdb.SubscriptionEvent), stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for {
			m := sub.Recv()
			select {
			case f.msgs <- m:
			case <-ctx.Done():
				return
			}
			if m.SubscriptionDropped != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); _ = sub.Close(); <-f.done })
	return f
}

func followAll(t *testing.T, c *esdb.Client, o esdb.SubscribeToAllOptions) *follower {
	t.Helper()
	return follow(t, func(ctx context.Context) (*esdb.Subscription, error) { return c.SubscribeToAll(ctx, o) })
}

func followStream(t *testing.T, c *esdb.Client, stream string, from esdb.StreamPosition) *follower {
	t.Helper()
	return follow(t, func(ctx context.Context) (*esdb.Subscription, error) {
		return c.SubscribeToStream(ctx, stream, esdb.SubscribeToStreamOptions{From: from})
	})
}

func (f *follower) next() *esdb.SubscriptionEvent {
	f.t.Helper()
	select {
	case m := <-f.msgs:
		return m
	case <-time.After(10 * time.Second):
		f.t.Fatal("no message")
		return nil
	}
}

// script describes messages in short: the stream and revision of an event, C
// for a checkpoint, L for caught up, X for dropped.
func (f *follower) script(n int) string {
	f.t.Helper()
	out := ""
	for range n {
		switch m := f.next(); {
		case m.EventAppeared != nil:
			e := m.EventAppeared.OriginalEvent()
			out += fmt.Sprintf("%s/%d ", e.StreamID, e.EventNumber)
		case m.CheckPointReached != nil:
			out += "C "
		case m.CaughtUp != nil:
			out += "L "
		case m.SubscriptionDropped != nil:
			return out + "X "
		}
	}
	return out
}

func (f *follower) want(script string) {
	f.t.Helper()
	n := 0
	for _, r := range script {
		if r == ' ' {
			n++
		}
	}
	if got := f.script(n); got != script {
		f.t.Fatalf("got %q, want %q", got, script)
	}
}

// quiet checks that nothing comes for a while.
func (f *follower) quiet(d time.Duration) {
	f.t.Helper()
	select {
	case m := <-f.msgs:
		f.t.Fatalf("unexpected message %+v", m)
	case <-time.After(d):
	}
}

// TestSubscription covers eventstore.md, "Server contract", on subscriptions,
// and the failures of failures.md that lie on the server's side.
func TestSubscription(t *testing.T) {
	t.Run("stream from the start, a revision and the end", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		mustAppend(t, c, "s", esdb.NoStream{}, newEvents(3)...)
		start := followStream(t, c, "s", esdb.Start{})
		start.want("s/0 s/1 s/2 L ")
		middle := followStream(t, c, "s", esdb.Revision(1)) // exclusive
		middle.want("s/2 L ")
		end := followStream(t, c, "s", esdb.End{})
		end.want("L ")
		mustAppend(t, c, "other", esdb.NoStream{}, newEvents(1)...)
		mustAppend(t, c, "s", esdb.Revision(2), newEvents(2)...)
		for _, f := range []*follower{start, middle, end} {
			f.want("s/3 s/4 ")
		}
	})
	t.Run("the whole log, unfiltered", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		w := mustAppend(t, c, "s", esdb.NoStream{}, newEvents(2)...)
		start := followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}})
		start.want("s/0 s/1 L ")
		after := followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Position{Commit: w.CommitPosition, Prepare: w.PreparePosition}})
		after.want("L ") // exclusive
		end := followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.End{}})
		end.want("L ")
		mustAppend(t, c, "s2", esdb.NoStream{}, newEvents(1)...)
		for _, f := range []*follower{start, after, end} {
			f.want("s2/0 ")
			f.quiet(50 * time.Millisecond)
		}
	})
	t.Run("E9 no checkpoint delivers the first event, a checkpoint is not repeated", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		w := mustAppend(t, c, "s", esdb.NoStream{}, newEvents(1)...)
		filter := &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"s"}}
		followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: filter}).want("s/0 C L ")
		f := followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Position{Commit: w.CommitPosition, Prepare: w.PreparePosition}, Filter: filter})
		f.want("C L ")
		f.quiet(50 * time.Millisecond)
	})
	t.Run("E4 missing, truncated and deleted streams give caught-up", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		missing := followStream(t, c, "missing", esdb.Start{})
		missing.want("L ")
		mustAppend(t, c, "missing", esdb.NoStream{}, newEvents(1)...)
		missing.want("missing/0 ")

		mustAppend(t, c, "truncated", esdb.NoStream{}, newEvents(3)...)
		m := esdb.StreamMetadata{}
		m.SetTruncateBefore(3)
		setMetadata(t, c, "truncated", m)
		truncated := followStream(t, c, "truncated", esdb.Start{})
		truncated.want("L ")
		mustAppend(t, c, "truncated", esdb.Any{}, newEvents(1)...)
		truncated.want("truncated/3 ")

		mustAppend(t, c, "deleted", esdb.NoStream{}, newEvents(3)...)
		if _, err := c.DeleteStream(context.Background(), "deleted", esdb.DeleteStreamOptions{}); err != nil {
			t.Fatal(err)
		}
		deleted := followStream(t, c, "deleted", esdb.Start{})
		deleted.want("L ")
		mustAppend(t, c, "deleted", esdb.NoStream{}, newEvents(1)...)
		deleted.want("deleted/3 ")
	})
	t.Run("a tombstone ends a subscription to the stream", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		mustAppend(t, c, "s", esdb.NoStream{}, newEvents(1)...)
		f := followStream(t, c, "s", esdb.Start{})
		f.want("s/0 L ")
		if _, err := c.TombstoneStream(context.Background(), "s", esdb.TombstoneStreamOptions{}); err != nil {
			t.Fatal(err)
		}
		if m := f.next(); m.SubscriptionDropped == nil || status.Code(m.SubscriptionDropped.Error) != codes.FailedPrecondition {
			t.Fatalf("%+v", m)
		}
	})
	t.Run("E5 a filter that matches nothing gives a checkpoint inside the log", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		w := mustAppend(t, c, "s", esdb.NoStream{}, newEvents(3)...)
		f := followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: &esdb.SubscriptionFilter{Type: esdb.EventFilterType, Prefixes: []string{"none"}}})
		m := f.next()
		if m.CheckPointReached == nil || m.CheckPointReached.Commit != w.CommitPosition || m.CheckPointReached.Prepare != w.CommitPosition {
			t.Fatalf("%+v", m)
		}
		f.want("L ")
	})
	t.Run("E5 an empty log gives no checkpoint, nor does a start beyond the end", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		filter := &esdb.SubscriptionFilter{Type: esdb.EventFilterType, Prefixes: []string{"none"}}
		followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: filter}).want("L ")
		mustAppend(t, c, "s", esdb.NoStream{}, newEvents(1)...)
		followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Position{Commit: 1 << 40, Prepare: 1 << 40}, Filter: filter}).want("L ")
	})
	t.Run("E6 checkpoints strictly increase while live", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		f := followAll(t, c, esdb.SubscribeToAllOptions{
			From: esdb.Start{}, MaxSearchWindow: 4, CheckpointInterval: 2,
			Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"a"}},
		})
		f.want("L ")
		var end uint64
		for i := range 40 {
			end = mustAppend(t, c, []string{"a", "b"}[i%2], esdb.Any{}, newEvents(3)...).CommitPosition
		}
		var last uint64
		checkpoints, events := 0, 0
		for last < end {
			switch m := f.next(); {
			case m.CheckPointReached != nil:
				checkpoints++
				if p := m.CheckPointReached.Commit; p <= last || p > end {
					t.Fatalf("checkpoint %d after %d, end %d", p, last, end)
				} else {
					last = p
				}
			case m.EventAppeared != nil:
				events++
			}
		}
		if checkpoints < 120/8 || events != 60 {
			t.Fatalf("%d checkpoints, %d events", checkpoints, events)
		}
	})
	t.Run("a checkpoint after window times multiplier events", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		mustAppend(t, c, "s", esdb.NoStream{}, newEvents(200)...)
		f := followAll(t, c, esdb.SubscribeToAllOptions{
			From: esdb.Start{}, CheckpointInterval: 2,
			Filter: &esdb.SubscriptionFilter{Type: esdb.EventFilterType, Regex: "^none$"},
		})
		f.want("C C C C L ") // after 64, 128, 192 and on going live
	})
	t.Run("filters by stream, by type, by prefix and by expression", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		for _, s := range []string{"order-1", "user-1", "order-2"} {
			e := newEvents(1)
			e[0].EventType = "made-" + s
			mustAppend(t, c, s, esdb.NoStream{}, e...)
		}
		for _, tc := range []struct {
			filter esdb.SubscriptionFilter
			want   string
		}{
			{esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"order-"}}, "order-1/0 order-2/0 C L "},
			{esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Regex: "^user"}, "user-1/0 C L "},
			{esdb.SubscriptionFilter{Type: esdb.EventFilterType, Prefixes: []string{"x", "made-user"}}, "user-1/0 C L "},
			{esdb.SubscriptionFilter{Type: esdb.EventFilterType, Regex: "-2$"}, "order-2/0 C L "},
			{*esdb.ExcludeSystemEventsFilter(), "order-1/0 user-1/0 order-2/0 C L "},
		} {
			followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: &tc.filter}).want(tc.want)
		}
	})
	t.Run("E7 unmatched events move the checkpoint of an idle subscription", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		f := followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"a"}}})
		f.want("L ")
		w := mustAppend(t, c, "b", esdb.NoStream{}, newEvents(3)...)
		if m := f.next(); m.CheckPointReached == nil || m.CheckPointReached.Commit != w.CommitPosition {
			t.Fatalf("%+v", m)
		}
		f.quiet(2 * quietTime)
	})
	t.Run("caught up again after falling behind", func(t *testing.T) {
		c := connect(t, serve(t, Config{}))
		f := followStream(t, c, "s", esdb.Start{})
		f.want("L ")
		mustAppend(t, c, "s", esdb.NoStream{}, newEvents(3*pageEvents)...)
		n := 0
		for m := f.next(); m.CaughtUp == nil; m = f.next() {
			n++
		}
		if n != 3*pageEvents {
			t.Fatal(n)
		}
	})
}

// E3: stopping the server ends every open subscription with a status within a
// second, and also those whose clients don't read.
func TestStop(t *testing.T) {
	t.Run("E3 subscriptions end with a status within a second", func(t *testing.T) {
		s := serve(t, Config{})
		c := connect(t, s)
		big := newEvent(newEvents(1)[0].EventID)
		big.Data = make([]byte, 500_000)
		mustAppend(t, c, "s", esdb.NoStream{}, big)
		for range 5 {
			mustAppend(t, c, "s", esdb.StreamExists{}, func() esdb.EventData { e := big; e.EventID = newEvents(1)[0].EventID; return e }())
		}
		var subs []*follower
		for range 20 {
			subs = append(subs, followAll(t, c, esdb.SubscribeToAllOptions{From: esdb.End{}}), followStream(t, c, "s", esdb.End{}))
		}
		for _, f := range subs {
			f.want("L ")
		}
		// One that never reads, so that the server's sending is blocked.
		stalled, err := stub(t, s).Read(t.Context(), &streams.ReadReq{Options: &streams.ReadReq_Options{
			StreamOption: &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Start{Start: &shared.Empty{}}}},
			CountOption:  &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stalled.Recv(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		closed := make(chan error, 1)
		go func() { closed <- s.Close(context.Background()) }()
		for _, f := range subs {
			m := f.next()
			if m.SubscriptionDropped == nil || status.Code(m.SubscriptionDropped.Error) != codes.Unavailable {
				t.Fatalf("%+v", m)
			}
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("it took %v", d)
		}
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("closing took %v", d)
		}
	})
	t.Run("a closed server answers nobody and can be closed again", func(t *testing.T) {
		s := serve(t, Config{})
		c := connect(t, s)
		mustAppend(t, c, "s", esdb.NoStream{}, newEvents(1)...)
		closeServer(t, s)
		closeServer(t, s)
		_, err := c.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, newEvents(1)...)
		if code(err) != esdb.ErrorUnavailable {
			t.Fatal(err)
		}
	})
}

// goneStream is a call whose client has gone away.
type goneStream struct {
	streams.Streams_ReadServer
	ctx context.Context
}

func (g *goneStream) Context() context.Context     { return g.ctx }
func (g *goneStream) Send(*streams.ReadResp) error { return nil }
func (g *goneStream) SetTrailer(metadata.MD)       {}
func (g *goneStream) SendMsg(any) error            { return nil }
func (g *goneStream) RecvMsg(any) error            { return io.EOF }
func (g *goneStream) SetHeader(metadata.MD) error  { return nil }
func (g *goneStream) SendHeader(metadata.MD) error { return nil }

// A read of which nothing passes the filter sends nothing, and ends all the same
// when its client goes away.
func TestFilteredReadsEndWithTheirClient(t *testing.T) {
	s := serve(t, Config{})
	for range 4 {
		put(t, s.store, "s", expectation{}, pageEvents)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	filter, err := newEventFilter(filterOption(1, "nothing").Filter)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{store: s.store, server: s, out: &goneStream{ctx: ctx}, filter: filter}
	if err := r.readAll(&streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Start{}}, false, 1); status.Code(err) != codes.Canceled {
		t.Errorf("a read: %v", err)
	}
	a := &allSubscription{reader: r}
	if err := a.run(); err == nil || a.looked >= s.store.committed.Load() {
		t.Errorf("a subscription looked up to %d: %v", a.looked, err)
	}
}
