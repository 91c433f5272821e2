package embedded

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// groupRig is a server and the unmodified client, for tests of groups.
type groupRig struct {
	t *testing.T
	s *Server
	c *esdb.Client
}

func newGroupRig(t *testing.T, cfg Config) *groupRig {
	t.Helper()
	s := serve(t, cfg)
	return &groupRig{t: t, s: s, c: connect(t, s)}
}

// eager are settings with which every answer leads to a checkpoint at once.
func eager(change func(*esdb.PersistentSubscriptionSettings)) *esdb.PersistentSubscriptionSettings {
	s := esdb.SubscriptionSettingsDefault()
	s.CheckpointLowerBound, s.CheckpointUpperBound = 1, 1
	if change != nil {
		change(&s)
	}
	return &s
}

func (r *groupRig) create(stream string, from esdb.StreamPosition, settings *esdb.PersistentSubscriptionSettings) {
	r.t.Helper()
	o := esdb.PersistentStreamSubscriptionOptions{StartFrom: from, Settings: settings}
	if err := r.c.CreatePersistentSubscription(context.Background(), stream, "g", o); err != nil {
		r.t.Fatal(err)
	}
}

func (r *groupRig) createAll(o esdb.PersistentAllSubscriptionOptions) {
	r.t.Helper()
	if err := r.c.CreatePersistentSubscriptionToAll(context.Background(), "g", o); err != nil {
		r.t.Fatal(err)
	}
}

func (r *groupRig) replay(stream string, stopAt int) {
	r.t.Helper()
	if err := r.c.ReplayParkedMessages(context.Background(), stream, "g", esdb.ReplayParkedMessagesOptions{StopAt: stopAt}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *groupRig) info(stream string) *esdb.PersistentSubscriptionInfo {
	r.t.Helper()
	var info *esdb.PersistentSubscriptionInfo
	var err error
	if stream == "$all" {
		info, err = r.c.GetPersistentSubscriptionInfoToAll(context.Background(), "g", esdb.GetPersistentSubscriptionOptions{})
	} else {
		info, err = r.c.GetPersistentSubscriptionInfo(context.Background(), stream, "g", esdb.GetPersistentSubscriptionOptions{})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return info
}

// await waits until the group is as wanted.
func (r *groupRig) await(stream, what string, ok func(*esdb.PersistentSubscriptionInfo) bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok(r.info(stream)) {
			return
		}
	}
	i := r.info(stream)
	r.t.Fatalf("%s did not come: %+v %+v", what, i, i.Stats)
}

func (r *groupRig) awaitParked(stream string, n int64) {
	r.t.Helper()
	r.await(stream, fmt.Sprint(n, " parked"), func(i *esdb.PersistentSubscriptionInfo) bool { return i.Stats.ParkedMessagesCount == n })
}

func (r *groupRig) awaitCheckpoint(stream string, revision uint64) {
	r.t.Helper()
	r.await(stream, fmt.Sprint("checkpoint ", revision), func(i *esdb.PersistentSubscriptionInfo) bool {
		at := i.Stats.LastCheckpointedEventRevision
		return at != nil && *at == revision
	})
}

// restart closes the server and opens it again, with a new client.
func (r *groupRig) restart(dir string) {
	r.t.Helper()
	_ = r.c.Close()
	closeServer(r.t, r.s)
	r.s = serve(r.t, Config{Dir: dir})
	r.c = connect(r.t, r.s)
}

// consumer reads a persistent subscription in the background, so that a test
// can wait for each message with a deadline.
type consumer struct {
	t    *testing.T
	sub  *esdb.PersistentSubscription
	msgs chan *esdb.PersistentSubscriptionEvent
}

func (r *groupRig) consume(stream string, buffer uint32) *consumer {
	r.t.Helper()
	c, err := r.tryConsume(stream, buffer)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *groupRig) tryConsume(stream string, buffer uint32) (*consumer, error) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o := esdb.SubscribeToPersistentSubscriptionOptions{BufferSize: buffer}
	var sub *esdb.PersistentSubscription
	var err error
	if stream == "$all" {
		sub, err = r.c.SubscribeToPersistentSubscriptionToAll(ctx, "g", o)
	} else {
		sub, err = r.c.SubscribeToPersistentSubscription(ctx, stream, "g", o)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	c := &consumer{t: r.t, sub: sub, msgs: make(chan *esdb.PersistentSubscriptionEvent)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			m := sub.Recv()
			select {
			case c.msgs <- m:
			case <-ctx.Done():
				return
			}
			if m.SubscriptionDropped != nil {
				return
			}
		}
	}()
	r.t.Cleanup(func() { cancel(); _ = sub.Close(); <-done })
	return c, nil
}

func (c *consumer) next() *esdb.PersistentSubscriptionEvent {
	c.t.Helper()
	select {
	case m := <-c.msgs:
		return m
	case <-time.After(20 * time.Second):
		c.t.Fatal("no message")
		return nil
	}
}

// events takes n events and describes them: stream/revision, and *n after n
// retries.
func (c *consumer) events(n int) ([]*esdb.ResolvedEvent, string) {
	c.t.Helper()
	var out []*esdb.ResolvedEvent
	var text []string
	for range n {
		m := c.next()
		if m.EventAppeared == nil {
			c.t.Fatalf("after %v: %v", text, m.SubscriptionDropped.Error)
		}
		e := m.EventAppeared.Event
		one := fmt.Sprintf("%s/%d", e.Event.StreamID, e.Event.EventNumber)
		if m.EventAppeared.RetryCount > 0 {
			one += fmt.Sprint("*", m.EventAppeared.RetryCount)
		}
		out, text = append(out, e), append(text, one)
	}
	return out, strings.Join(text, " ")
}

// want takes as many events as the text has, and compares.
func (c *consumer) want(text string) []*esdb.ResolvedEvent {
	c.t.Helper()
	out, got := c.events(len(strings.Fields(text)))
	if got != text {
		c.t.Fatalf("got %q, want %q", got, text)
	}
	return out
}

func (c *consumer) ack(events ...*esdb.ResolvedEvent) {
	c.t.Helper()
	if err := c.sub.Ack(events...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *consumer) nack(action esdb.NackAction, events ...*esdb.ResolvedEvent) {
	c.t.Helper()
	if err := c.sub.Nack("because", action, events...); err != nil {
		c.t.Fatal(err)
	}
}

// quiet checks that nothing comes for a while.
func (c *consumer) quiet() {
	c.t.Helper()
	select {
	case m := <-c.msgs:
		c.t.Fatalf("unexpected message %+v", m)
	case <-time.After(100 * time.Millisecond):
	}
}

// wantDropped waits until the server has ended the call.
func (c *consumer) wantDropped(code codes.Code) {
	c.t.Helper()
	m := c.next()
	if m.SubscriptionDropped == nil || status.Code(m.SubscriptionDropped.Error) != code {
		c.t.Fatalf("%+v, want %v", m, code)
	}
}

// groupStub gives the protocol's stub, for what the client hides.
func groupStub(t testing.TB, s *Server) persistent.PersistentSubscriptionsClient {
	t.Helper()
	conn, err := grpc.NewClient(s.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return persistent.NewPersistentSubscriptionsClient(conn)
}
