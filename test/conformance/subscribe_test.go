package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const subscribeContract = "eventstore.md, Server contract, Subscribe: "

var subscribing = []check{
	{"what is there, then what comes", subscribeContract + "Start = from the first event; caught_up on every turn to live", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(2)...)
		f := n.follow(t, s, esdb.Start{})
		f.events(t, s, 0, 1)
		f.caughtUp(t)
		n.append(t, s, esdb.Any{}, events(1)...)
		f.events(t, s, 2)
	}},
	{"behind a revision", subscribeContract + "given revision and position are exclusive", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(3)...)
		n.follow(t, s, esdb.Revision(0)).events(t, s, 1, 2)
	}},
	{"only what comes", subscribeContract + "End = only new ones", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(3)...)
		f := n.follow(t, s, esdb.End{})
		f.caughtUp(t)
		n.append(t, s, esdb.Any{}, events(1)...)
		f.events(t, s, 3)
	}},
	{"a stream to come", "docs: Subscriptions, subscribing to a stream that doesn't exist yet", func(t *testing.T, n *node) {
		s := stream()
		f := n.follow(t, s, esdb.Start{})
		f.caughtUp(t)
		n.append(t, s, esdb.Any{}, events(1)...)
		f.events(t, s, 0)
	}},
	{"the log behind a position", subscribeContract + "given revision and position are exclusive", func(t *testing.T, n *node) {
		s := stream()
		w := n.append(t, s, esdb.Any{}, events(1)...)
		n.append(t, s, esdb.Any{}, events(1)...)
		f := n.followAll(t, esdb.SubscribeToAllOptions{From: esdb.Position{Commit: w.CommitPosition, Prepare: w.PreparePosition}})
		f.events(t, s, 1)
	}},
	{"filtered by a stream's name", "eventstore.md, Server contract: filters: event type or stream name; prefixes or one regex", func(t *testing.T, n *node) {
		s := stream()
		f := n.followAll(t, esdb.SubscribeToAllOptions{From: esdb.End{}, Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"nothing-of-this-kind", s}}})
		f.caughtUp(t)
		n.append(t, stream(), esdb.Any{}, events(40)...)
		n.append(t, s, esdb.Any{}, events(2)...)
		f.events(t, s, 0, 1)
	}},
	{"filtered by a regular expression on types", "client: subscriptions_test.go, subscriptionAllFilter", func(t *testing.T, n *node) {
		s := stream()
		kind := "kind" + strings.ReplaceAll(s, "-", "")
		f := n.followAll(t, esdb.SubscribeToAllOptions{From: esdb.End{}, Filter: &esdb.SubscriptionFilter{Type: esdb.EventFilterType, Regex: "^" + kind + "$"}})
		f.caughtUp(t)
		e := events(3)
		e[1].EventType = kind
		n.append(t, s, esdb.Any{}, e...)
		f.events(t, s, 1)
	}},
	{"checkpoints", subscribeContract + "filtered $all only: a checkpoint after max × multiplier considered events and one on going live; strictly increasing and inside the log", func(t *testing.T, n *node) {
		s := stream()
		began := n.append(t, s, esdb.Any{}, events(1)...)
		n.append(t, s, esdb.Any{}, events(100)...)
		end := n.append(t, s, esdb.Any{}, events(1)...)
		f := n.followAll(t, esdb.SubscribeToAllOptions{
			From:            esdb.Position{Commit: began.CommitPosition, Prepare: began.PreparePosition},
			MaxSearchWindow: 10, CheckpointInterval: 2,
			Filter: &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"nothing-of-this-kind"}},
		})
		f.caughtUp(t)
		if len(f.checkpoints) < 101/20 || f.checkpoints[0] <= began.CommitPosition || f.checkpoints[len(f.checkpoints)-1] < end.CommitPosition {
			t.Fatal(f.checkpoints, began, end)
		}
		sorted := slices.Compact(slices.Sorted(slices.Values(f.checkpoints)))
		if !slices.Equal(sorted, f.checkpoints) {
			t.Fatal(f.checkpoints)
		}
	}},
	{"no checkpoint interval", subscribeContract + "multiplier 0 is an error", func(t *testing.T, n *node) {
		req := readRequest("")
		req.Options.StreamOption = &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{
			AllOption: &streams.ReadReq_Options_AllOptions_Start{Start: &shared.Empty{}},
		}}
		req.Options.CountOption = &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}}
		req.Options.FilterOption = &streams.ReadReq_Options_Filter{Filter: &streams.ReadReq_Options_FilterOptions{
			Filter: &streams.ReadReq_Options_FilterOptions_StreamIdentifier{
				StreamIdentifier: &streams.ReadReq_Options_FilterOptions_Expression{Prefix: []string{"x"}},
			},
			Window: &streams.ReadReq_Options_FilterOptions_Max{Max: 32},
		}}
		r, err := n.streams().Read(n.admin(t), req)
		for err == nil {
			_, err = r.Recv()
		}
		if status.Code(err) != codes.InvalidArgument {
			t.Fatal(err)
		}
	}},
	{"the confirmation comes first", subscribeContract + "first message is the confirmation", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		req := readRequest(s)
		req.Options.CountOption = &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}}
		ctx, cancel := context.WithCancel(n.admin(t))
		defer cancel()
		r, err := n.streams().Read(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := r.Recv(); err != nil || m.GetConfirmation().GetSubscriptionId() == "" {
			t.Fatal(m, err)
		}
	}},
	{"a tombstoned stream", "eventstore.md, Errors on the wire: read of a tombstoned stream; subscriptions are reads", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.tombstone(t, s)
		sub, err := n.client.SubscribeToStream(nobody(t), s, esdb.SubscribeToStreamOptions{From: esdb.Start{}})
		if err == nil {
			// A server may take the subscription first and drop it then.
			defer sub.Close()
			dropped := sub.Recv().SubscriptionDropped
			if dropped == nil {
				t.Fatal("it is followed")
			}
			if status.Code(dropped.Error) != codes.FailedPrecondition {
				t.Fatal(dropped.Error)
			}
			return
		}
		wants(t, err, esdb.ErrorCodeStreamDeleted)
	}},
}

// follower is a subscription. Another one's events are of no concern to it,
// since other checks write at the same time.
type follower struct {
	subscription *esdb.Subscription
	checkpoints  []uint64
}

func (n *node) follow(t *testing.T, name string, from esdb.StreamPosition) *follower {
	t.Helper()
	s, err := n.client.SubscribeToStream(nobody(t), name, esdb.SubscribeToStreamOptions{From: from})
	return newFollower(t, s, err)
}

func (n *node) followAll(t *testing.T, o esdb.SubscribeToAllOptions) *follower {
	t.Helper()
	s, err := n.client.SubscribeToAll(nobody(t), o)
	return newFollower(t, s, err)
}

func newFollower(t *testing.T, s *esdb.Subscription, err error) *follower {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &follower{subscription: s}
}

// next is the next that isn't a checkpoint.
func (f *follower) next(t *testing.T) *esdb.SubscriptionEvent {
	t.Helper()
	for {
		e := f.subscription.Recv()
		switch {
		case e.SubscriptionDropped != nil:
			t.Fatal(e.SubscriptionDropped.Error)
		case e.CheckPointReached != nil:
			f.checkpoints = append(f.checkpoints, e.CheckPointReached.Commit)
		default:
			return e
		}
	}
}

// events waits for events of a stream, exactly these of it.
func (f *follower) events(t *testing.T, name string, revisions ...uint64) {
	t.Helper()
	for _, want := range revisions {
		e := f.next(t)
		for e.EventAppeared == nil || e.EventAppeared.OriginalEvent().StreamID != name {
			e = f.next(t)
		}
		if got := e.EventAppeared.OriginalEvent().EventNumber; got != want {
			t.Fatalf("revision %d, want %d", got, want)
		}
	}
}

// caughtUp waits until the subscription has turned live.
func (f *follower) caughtUp(t *testing.T) {
	t.Helper()
	for f.next(t).CaughtUp == nil {
	}
}
