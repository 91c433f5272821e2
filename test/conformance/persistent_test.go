package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	groupErrors = "eventstore.md, Errors on the wire: persistent group missing / exists / dropped: NotFound / AlreadyExists / Cancelled; exception=persistent-subscription-…, stream-name, group-name"
	clientReads = "client: persistent_subscription_read_test.go, "
)

var grouping = []check{
	{"the calls are named, with what groups may be on", "@eventstore/db-client 6.2.1, dist/persistentSubscription/*.js: each call asks for the feature stream or all", func(t *testing.T, n *node) {
		methods, err := serverfeatures.NewServerFeaturesClient(n.conn).GetSupportedMethods(nobody(t), &shared.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]bool{}
		for _, m := range methods.GetMethods() {
			if m.GetServiceName() == "event_store.client.persistent_subscriptions.persistentsubscriptions" {
				named[m.GetMethodName()] = true
				for _, f := range m.GetFeatures() {
					named[m.GetMethodName()+"/"+f] = true
				}
			}
		}
		for _, want := range []string{
			"create/stream", "create/all", "update/all", "delete/all", "read/all", "getinfo/stream", "getinfo/all",
			"replayparked/stream", "replayparked/all", "list/stream", "list/all", "restartsubsystem",
		} {
			if !named[want] {
				t.Error(want + " is not named")
			}
		}
	}},
	{"from the start, one after the other", clientReads + "ReadExistingStream_AckToReceiveNewEvents", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(3)...)
		n.group(t, s, esdb.Start{})
		c := n.consume(t, s)
		for i := range uint64(3) {
			c.ack(t, c.event(t, i, 0))
		}
	}},
	{"from a revision", clientReads + "ToNonExistingStream_StartFromTwo_AppendEventsAfterwards", func(t *testing.T, n *node) {
		s := stream()
		n.group(t, s, esdb.Revision(2))
		n.append(t, s, esdb.Any{}, events(4)...)
		n.consume(t, s).event(t, 2, 0)
	}},
	{"from the end", clientReads + "ToExistingStream_StartFromEnd_EventsInItAndAppendEventsAfterwards", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(3)...)
		n.group(t, s, esdb.End{})
		n.append(t, s, esdb.Any{}, events(1)...)
		n.consume(t, s).event(t, 3, 0)
	}},
	{"once more", "docs: Persistent subscriptions, Consumer: nack with retry", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.group(t, s, esdb.Start{})
		c := n.consume(t, s)
		if err := c.Nack("again", esdb.NackActionRetry, c.event(t, 0, 0)); err != nil {
			t.Fatal(err)
		}
		c.ack(t, c.event(t, 0, 1))
	}},
	{"parked and replayed", "client: persistent_subscriptions_test.go, persistentReplayParkedMessages", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.group(t, s, esdb.Start{})
		c := n.consume(t, s)
		if err := c.Nack("later", esdb.NackActionPark, c.event(t, 0, 0)); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			info, err := n.client.GetPersistentSubscriptionInfo(nobody(t), s, "g", esdb.GetPersistentSubscriptionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if info.Stats.ParkedMessagesCount == 1 {
				break
			}
			if time.Since(began) > 30*time.Second {
				t.Fatal("nothing is parked")
			}
		}
		if err := n.client.ReplayParkedMessages(nobody(t), s, "g", esdb.ReplayParkedMessagesOptions{}); err != nil {
			t.Fatal(err)
		}
		if e := c.Recv(); e.EventAppeared == nil || e.EventAppeared.Event.OriginalEvent().EventNumber != 0 {
			t.Fatal(e)
		}
	}},
	{"the whole log, filtered", "client: persistent_subscriptions_test.go, persistentAllCreate; docs: Persistent subscriptions, server filter", func(t *testing.T, n *node) {
		s := stream()
		err := n.client.CreatePersistentSubscriptionToAll(nobody(t), s, esdb.PersistentAllSubscriptionOptions{
			StartFrom: esdb.Start{}, Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{s}},
		})
		if err != nil {
			t.Fatal(err)
		}
		n.append(t, stream(), esdb.Any{}, events(1)...)
		n.append(t, s, esdb.Any{}, events(1)...)
		sub, err := n.client.SubscribeToPersistentSubscriptionToAll(nobody(t), s, esdb.SubscribeToPersistentSubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		if e := sub.Recv(); e.EventAppeared == nil || e.EventAppeared.Event.OriginalEvent().StreamID != s {
			t.Fatal(e)
		}
		if err := n.client.DeletePersistentSubscriptionToAll(nobody(t), s, esdb.DeletePersistentSubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
	}},
	{"a group that exists", groupErrors, func(t *testing.T, n *node) {
		s := stream()
		n.group(t, s, esdb.Start{})
		var trailer metadata.MD
		_, err := n.groups().Create(n.admin(t), &persistent.CreateReq{Options: &persistent.CreateReq_Options{
			StreamOption: &persistent.CreateReq_Options_Stream{Stream: &persistent.CreateReq_StreamOptions{
				StreamIdentifier: identifier(s),
				RevisionOption:   &persistent.CreateReq_StreamOptions_Start{Start: &shared.Empty{}},
			}},
			GroupName: "g", Settings: createSettings(),
		}}, grpc.Trailer(&trailer))
		aboutGroup(t, err, codes.AlreadyExists, trailer, "persistent-subscription-exists", s)
	}},
	{"a group that is missing", groupErrors, func(t *testing.T, n *node) {
		s := stream()
		var trailer metadata.MD
		_, err := n.groups().Delete(n.admin(t), &persistent.DeleteReq{Options: &persistent.DeleteReq_Options{
			StreamOption: &persistent.DeleteReq_Options_StreamIdentifier{StreamIdentifier: identifier(s)}, GroupName: "g",
		}}, grpc.Trailer(&trailer))
		aboutGroup(t, err, codes.NotFound, trailer, "persistent-subscription-does-not-exist", s)
	}},
	{"a group that goes away", groupErrors, func(t *testing.T, n *node) {
		s := stream()
		n.group(t, s, esdb.Start{})
		ctx, cancel := context.WithCancel(n.admin(t))
		defer cancel()
		r, err := n.groups().Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Send(&persistent.ReadReq{Content: &persistent.ReadReq_Options_{Options: &persistent.ReadReq_Options{
			StreamOption: &persistent.ReadReq_Options_StreamIdentifier{StreamIdentifier: identifier(s)}, GroupName: "g", BufferSize: 10,
			UuidOption: &persistent.ReadReq_Options_UUIDOption{Content: &persistent.ReadReq_Options_UUIDOption_Structured{Structured: &shared.Empty{}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := r.Recv(); err != nil || m.GetSubscriptionConfirmation() == nil {
			t.Fatal(m, err)
		}
		if err := n.client.DeletePersistentSubscription(nobody(t), s, "g", esdb.DeletePersistentSubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = r.Recv()
		}
		aboutGroup(t, err, codes.Canceled, r.Trailer(), "persistent-subscription-dropped", s)
	}},
	{"not for everyone", "docs: Security, Authorization: persistent subscriptions are managed by $ops and $admins", secured(func(t *testing.T, n *node) {
		_, err := n.groups().Delete(nobody(t), &persistent.DeleteReq{Options: &persistent.DeleteReq_Options{
			StreamOption: &persistent.DeleteReq_Options_StreamIdentifier{StreamIdentifier: identifier(stream())}, GroupName: "g",
		}})
		if c := status.Code(err); c != codes.PermissionDenied && c != codes.Unauthenticated {
			t.Fatal(err)
		}
	})},
}

func (n *node) groups() persistent.PersistentSubscriptionsClient {
	return persistent.NewPersistentSubscriptionsClient(n.conn)
}

func createSettings() *persistent.CreateReq_Settings {
	return &persistent.CreateReq_Settings{
		MaxRetryCount: 10, MinCheckpointCount: 10, MaxCheckpointCount: 1000, LiveBufferSize: 500, ReadBatchSize: 20, HistoryBufferSize: 500,
		MessageTimeout:  &persistent.CreateReq_Settings_MessageTimeoutMs{MessageTimeoutMs: 30_000},
		CheckpointAfter: &persistent.CreateReq_Settings_CheckpointAfterMs{CheckpointAfterMs: 2_000},
	}
}

// aboutGroup fails the test unless an error is what the contract says of the group g.
func aboutGroup(t *testing.T, err error, code codes.Code, trailer metadata.MD, exception, name string) {
	t.Helper()
	if status.Code(err) != code {
		t.Fatal(err)
	}
	trails(t, trailer, "exception", exception)
	trails(t, trailer, "stream-name", name)
	trails(t, trailer, "group-name", "g")
}

// group makes the group g.
func (n *node) group(t *testing.T, name string, from esdb.StreamPosition) {
	t.Helper()
	if err := n.client.CreatePersistentSubscription(nobody(t), name, "g", esdb.PersistentStreamSubscriptionOptions{StartFrom: from}); err != nil {
		t.Fatal(err)
	}
}

// consumer is one of the group g.
type consumer struct{ *esdb.PersistentSubscription }

func (n *node) consume(t *testing.T, name string) consumer {
	t.Helper()
	s, err := n.client.SubscribeToPersistentSubscription(nobody(t), name, "g", esdb.SubscribeToPersistentSubscriptionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return consumer{s}
}

// event waits for an event, which must be of a revision and sent for the given time.
func (c consumer) event(t *testing.T, revision uint64, retry int) *esdb.ResolvedEvent {
	t.Helper()
	e := c.Recv()
	if e.EventAppeared == nil {
		t.Fatal(e.SubscriptionDropped)
	}
	if got := e.EventAppeared; got.Event.OriginalEvent().EventNumber != revision || got.RetryCount != retry {
		t.Fatalf("revision %d, retry %d; want %d, %d", got.Event.OriginalEvent().EventNumber, got.RetryCount, revision, retry)
	}
	return e.EventAppeared.Event
}

func (c consumer) ack(t *testing.T, e *esdb.ResolvedEvent) {
	t.Helper()
	if err := c.Ack(e); err != nil {
		t.Fatal(err)
	}
}
