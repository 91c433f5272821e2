package embedded

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// wantFailure checks that a call about the group fails with a reason.
func wantFailure(t *testing.T, s *Server) {
	t.Helper()
	var md metadata.MD
	_, err := groupStub(t, s).GetInfo(context.Background(), &persistent.GetInfoReq{Options: &persistent.GetInfoReq_Options{
		StreamOption: &persistent.GetInfoReq_Options_StreamIdentifier{StreamIdentifier: identifier("s")}, GroupName: "g",
	}}, grpc.Trailer(&md))
	if status.Code(err) != codes.Internal || len(md.Get("reason")) != 1 || md.Get("exception")[0] != exceptionGroupFailed {
		t.Fatal(err, md)
	}
}

// TestGroupListDamaged: what can't be read stops neither the server nor its
// streams, and is not written over.
func TestGroupListDamaged(t *testing.T) {
	for _, body := range []string{
		"x", `{"version":"99"}`,
		`{"version":"tallyard-1","entries":[{"stream":"s","group":"g","namedConsumerStrategy":"Best"}]}`,
		`{"version":"tallyard-1","entries":[{"stream":"s","group":"g","namedConsumerStrategy":"RoundRobin","filter":{"regex":"("}}]}`,
	} {
		t.Run(body, func(t *testing.T) {
			dir := t.TempDir()
			r := newGroupRig(t, Config{Dir: dir})
			r.create("s", esdb.Start{}, nil)
			mustAppend(t, r.c, groupConfigStream, esdb.Any{}, esdb.EventData{EventID: uuid.New(), EventType: groupConfigType, ContentType: esdb.ContentTypeBinary, Data: []byte(body)})
			r.restart(dir)
			mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(1)...)
			wantFailure(t, r.s)
			ctx := context.Background()
			if err := r.c.CreatePersistentSubscription(ctx, "s", "h", esdb.PersistentStreamSubscriptionOptions{}); err == nil {
				t.Fatal("a group was made over the others")
			}
			// What was wrong is mended by hand, and read again.
			if err := r.s.store.appendOwn(ctx, groupConfigStream, proposed{id: uuid.New(), kind: groupConfigType, contentType: contentJSON, data: []byte(`{"version":"tallyard-1"}`)}); err != nil {
				t.Fatal(err)
			}
			if err := r.c.RestartPersistentSubscriptionSubsystem(ctx, esdb.RestartPersistentSubscriptionSubsystemOptions{}); err != nil {
				t.Fatal(err)
			}
			r.create("s", esdb.Start{}, nil)
		})
	}
}

// TestGroupCheckpointDamaged: a group that does not know where it stands says
// so; the others go on.
func TestGroupCheckpointDamaged(t *testing.T) {
	for _, body := range []string{"x", `"-7"`, `"C:1/P:1"`} {
		dir := t.TempDir()
		r := newGroupRig(t, Config{Dir: dir})
		r.create("s", esdb.Start{}, nil)
		if err := r.c.CreatePersistentSubscription(context.Background(), "other", "g", esdb.PersistentStreamSubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, r.c, groupName{"s", "g"}.checkpoints(), esdb.Any{}, esdb.EventData{EventID: uuid.New(), EventType: checkpointType, ContentType: esdb.ContentTypeBinary, Data: []byte(body)})
		r.restart(dir)
		if _, err := r.tryConsume("s", 1); err == nil {
			t.Fatal("it knows where it stands")
		}
		if i := r.info("s"); i.Status != "NotReady" {
			t.Fatalf("%+v", i)
		}
		mustAppend(t, r.c, "other", esdb.NoStream{}, newEvents(1)...)
		r.consume("other", 1).want("other/0")
		if err := r.c.DeletePersistentSubscription(context.Background(), "s", "g", esdb.DeletePersistentSubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
		r.create("s", esdb.Start{}, nil)
		mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(1)...)
		r.consume("s", 1).want("s/0")
	}
}

// TestGroupStoreFails: eventstore.md: a store that takes no more writes ends its
// sessions.
func TestGroupStoreFails(t *testing.T) {
	st := newTestStore(t, storeOptions{dir: t.TempDir()})
	s, err := serveStore(context.Background(), st, Config{Socket: socketPath(t), Logger: discard()})
	if err != nil {
		t.Fatal(err)
	}
	r := &groupRig{t: t, s: s, c: connect(t, s)}
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(1)...)
	r.create("s", esdb.Start{}, nil)
	c := r.consume("s", 1)
	c.want("s/0")
	st.trap.spring(fmt.Errorf("the disk is gone"))
	c.wantDropped(codes.Unavailable)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ctx); err == nil {
		t.Fatal("a failed store closed without an error")
	}
	// What a failed store holds open is closed here, for the sake of the other tests.
	s.subs.close()
	<-st.done
	if err := st.db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := st.lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestGroupTooMany: the list of groups is one event, which has a largest size.
func TestGroupTooMany(t *testing.T) {
	st := newTestStore(t, storeOptions{dir: t.TempDir()})
	defer st.close()
	entries := make([]groupEntry, 5000)
	for i := range entries {
		entries[i] = groupEntry{Stream: fmt.Sprint("stream-", i), Group: "g", Strategy: "RoundRobin"}
	}
	err := st.saveGroups(context.Background(), entries)
	if failure := (groupFailure{}); !errors.As(err, &failure) {
		t.Fatal(err)
	}
	if err := st.saveGroups(context.Background(), entries[:1000]); err != nil {
		t.Fatal(err)
	}
	if got, err := st.loadGroups(context.Background()); err != nil || len(got) != 1000 || got[7].Stream != "stream-7" {
		t.Fatal(len(got), err)
	}
}

// TestGroupPinnedByCorrelation: a strategy that the Go client can't ask for, but
// others can (persistent.proto, consumer_strategy).
func TestGroupPinnedByCorrelation(t *testing.T) {
	r := newGroupRig(t, Config{})
	_, err := groupStub(t, r.s).Create(context.Background(), createRequest("s", "g", func(o *persistent.CreateReq_Options) {
		o.Settings.ConsumerStrategy, o.Settings.HistoryBufferSize, o.Settings.LiveBufferSize, o.Settings.ReadBatchSize = "PinnedByCorrelation", 100, 100, 20
		o.StreamOption = &persistent.CreateReq_Options_All{All: &persistent.CreateReq_AllOptions{AllOption: &persistent.CreateReq_AllOptions_End{End: &shared.Empty{}}}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	a, b := r.consume("$all", 100), r.consume("$all", 100)
	for n := range 40 {
		e := newEvents(1)
		e[0].Metadata = fmt.Appendf(nil, `{"$correlationId":"c%d"}`, n%20)
		mustAppend(t, r.c, fmt.Sprint("s", n), esdb.NoStream{}, e...)
	}
	who := map[string]*consumer{}
	for range 40 {
		var m *esdb.PersistentSubscriptionEvent
		var c *consumer
		select {
		case m = <-a.msgs:
			c = a
		case m = <-b.msgs:
			c = b
		case <-time.After(20 * time.Second):
			t.Fatal("no event")
		}
		by := string(m.EventAppeared.Event.Event.UserMetadata)
		if other := who[by]; other != nil && other != c {
			t.Fatalf("%s went to both", by)
		}
		who[by] = c
	}
	if len(who) != 20 {
		t.Fatal(who)
	}
}
