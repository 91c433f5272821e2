package embedded

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func createRequest(stream, group string, change func(*persistent.CreateReq_Options)) *persistent.CreateReq {
	o := &persistent.CreateReq_Options{
		StreamOption: &persistent.CreateReq_Options_Stream{Stream: &persistent.CreateReq_StreamOptions{
			StreamIdentifier: identifier(stream), RevisionOption: &persistent.CreateReq_StreamOptions_Start{Start: &shared.Empty{}},
		}},
		GroupName: group,
		Settings:  &persistent.CreateReq_Settings{ConsumerStrategy: "RoundRobin", MessageTimeout: &persistent.CreateReq_Settings_MessageTimeoutMs{MessageTimeoutMs: 1000}},
	}
	if change != nil {
		change(o)
	}
	return &persistent.CreateReq{Options: o}
}

// TestGroupErrors goes through eventstore.md, "Errors on the wire": statuses and
// trailers of persistent subscriptions.
func TestGroupErrors(t *testing.T) {
	s := serve(t, Config{})
	raw := groupStub(t, s)
	ctx := context.Background()
	for _, group := range []string{"g", "full"} {
		if _, err := raw.Create(ctx, createRequest("s", group, func(o *persistent.CreateReq_Options) { o.Settings.MaxSubscriberCount = 1 })); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := raw.Create(ctx, createRequest("a::b", "c", nil)); err != nil {
		t.Fatal(err)
	}
	read := func(m *persistent.ReadReq, more ...*persistent.ReadReq) func(grpc.CallOption) error {
		return func(opt grpc.CallOption) error {
			r, err := raw.Read(ctx, opt)
			if err != nil {
				return err
			}
			for _, m := range append([]*persistent.ReadReq{m}, more...) {
				_ = r.Send(m) // it may have failed already
			}
			for {
				if _, err := r.Recv(); err != nil {
					return err
				}
			}
		}
	}
	first, err := raw.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Send(readOptions("s", 1, func(o *persistent.ReadReq_Options) { o.GroupName = "full" })); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Recv(); err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{"exception": exceptionGroupMissing, "stream-name": "none", "group-name": "g"}
	none := identifier("none")
	for _, tc := range []struct {
		name    string
		call    func(grpc.CallOption) error
		code    codes.Code
		trailer map[string]string
	}{
		{"read of a missing group", read(readOptions("none", 1, nil)), codes.NotFound, missing},
		{"update of a missing group", func(o grpc.CallOption) error {
			_, err := raw.Update(ctx, &persistent.UpdateReq{Options: &persistent.UpdateReq_Options{
				StreamOption: &persistent.UpdateReq_Options_Stream{Stream: &persistent.UpdateReq_StreamOptions{StreamIdentifier: none}}, GroupName: "g", Settings: &persistent.UpdateReq_Settings{},
			}}, o)
			return err
		}, codes.NotFound, missing},
		{"delete of a missing group", func(o grpc.CallOption) error {
			_, err := raw.Delete(ctx, &persistent.DeleteReq{Options: &persistent.DeleteReq_Options{StreamOption: &persistent.DeleteReq_Options_StreamIdentifier{StreamIdentifier: none}, GroupName: "g"}}, o)
			return err
		}, codes.NotFound, missing},
		{"info of a missing group", func(o grpc.CallOption) error {
			_, err := raw.GetInfo(ctx, &persistent.GetInfoReq{Options: &persistent.GetInfoReq_Options{StreamOption: &persistent.GetInfoReq_Options_StreamIdentifier{StreamIdentifier: none}, GroupName: "g"}}, o)
			return err
		}, codes.NotFound, missing},
		{"replay of a missing group", func(o grpc.CallOption) error {
			_, err := raw.ReplayParked(ctx, &persistent.ReplayParkedReq{Options: &persistent.ReplayParkedReq_Options{StreamOption: &persistent.ReplayParkedReq_Options_StreamIdentifier{StreamIdentifier: none}, GroupName: "g"}}, o)
			return err
		}, codes.NotFound, missing},
		{"missing on the whole log", func(o grpc.CallOption) error {
			_, err := raw.Delete(ctx, &persistent.DeleteReq{Options: &persistent.DeleteReq_Options{StreamOption: &persistent.DeleteReq_Options_All{All: &shared.Empty{}}, GroupName: "g"}}, o)
			return err
		}, codes.NotFound, map[string]string{"exception": exceptionGroupMissing, "stream-name": "$all", "group-name": "g"}},
		{"list of a stream without groups", func(o grpc.CallOption) error {
			_, err := raw.List(ctx, &persistent.ListReq{Options: &persistent.ListReq_Options{ListOption: &persistent.ListReq_Options_ListForStream{
				ListForStream: &persistent.ListReq_StreamOption{StreamOption: &persistent.ListReq_StreamOption_Stream{Stream: none}},
			}}}, o)
			return err
		}, codes.NotFound, map[string]string{"exception": exceptionGroupMissing, "stream-name": "none", "group-name": ""}},
		{"create of an existing group", func(o grpc.CallOption) error {
			_, err := raw.Create(ctx, createRequest("s", "g", nil), o)
			return err
		}, codes.AlreadyExists, map[string]string{"exception": exceptionGroupExists, "stream-name": "s", "group-name": "g"}},
		{
			"one consumer too many", read(readOptions("s", 1, func(o *persistent.ReadReq_Options) { o.GroupName = "full" })),
			codes.FailedPrecondition,
			map[string]string{"exception": exceptionGroupFull, "stream-name": "s", "group-name": "full"},
		},
		{
			"a consumer that stops", read(readOptions("s", 1, nil), &persistent.ReadReq{Content: &persistent.ReadReq_Nack_{Nack: &persistent.ReadReq_Nack{Action: persistent.ReadReq_Nack_Stop}}}),
			codes.Canceled,
			map[string]string{"exception": exceptionGroupDropped, "stream-name": "s", "group-name": "g"},
		},
		{"an unknown strategy", func(o grpc.CallOption) error {
			_, err := raw.Create(ctx, createRequest("s", "x", func(o *persistent.CreateReq_Options) { o.Settings.ConsumerStrategy = "Best" }), o)
			return err
		}, codes.Internal, map[string]string{"exception": exceptionGroupFailed, "stream-name": "s", "group-name": "x", "reason": `consumer strategy "Best" does not exist`}},
		{"a negative size", func(o grpc.CallOption) error {
			_, err := raw.Create(ctx, createRequest("s", "x", func(o *persistent.CreateReq_Options) { o.Settings.ReadBatchSize = -1 }), o)
			return err
		}, codes.Internal, map[string]string{"exception": exceptionGroupFailed, "reason": "readBatchSize must not be negative"}},
		{"the whole log by name", func(o grpc.CallOption) error {
			_, err := raw.Create(ctx, createRequest("$all", "x", nil), o)
			return err
		}, codes.Internal, map[string]string{"exception": exceptionGroupFailed, "stream-name": "$all"}},
		{"the id of another group", func(o grpc.CallOption) error {
			_, err := raw.Create(ctx, createRequest("a", "b::c", nil), o)
			return err
		}, codes.Internal, map[string]string{"exception": exceptionGroupFailed, "reason": "a group of another stream has the id a::b::c"}},
		{"a name with a line break", func(o grpc.CallOption) error {
			_, err := raw.Delete(ctx, &persistent.DeleteReq{Options: &persistent.DeleteReq_Options{StreamOption: &persistent.DeleteReq_Options_StreamIdentifier{StreamIdentifier: identifier("a\nb")}, GroupName: "ü"}}, o)
			return err
		}, codes.NotFound, map[string]string{"exception": exceptionGroupMissing, "stream-name": "ab", "group-name": "ü"}},
		{"no settings", func(o grpc.CallOption) error {
			_, err := raw.Create(ctx, createRequest("s", "x", func(o *persistent.CreateReq_Options) { o.Settings = nil }), o)
			return err
		}, codes.InvalidArgument, nil},
		{"no stream", func(o grpc.CallOption) error {
			_, err := raw.Create(ctx, createRequest("", "x", nil), o)
			return err
		}, codes.InvalidArgument, nil},
		{"no group", func(o grpc.CallOption) error {
			_, err := raw.Create(ctx, createRequest("s", "", nil), o)
			return err
		}, codes.InvalidArgument, nil},
		{"names too long", func(o grpc.CallOption) error {
			_, err := raw.Create(ctx, createRequest(strings.Repeat("s", 600), strings.Repeat("g", 600), nil), o)
			return err
		}, codes.InvalidArgument, nil},
		{"a broken filter", func(o grpc.CallOption) error {
			_, err := raw.Create(ctx, createRequest("s", "x", func(o *persistent.CreateReq_Options) {
				o.StreamOption = &persistent.CreateReq_Options_All{All: &persistent.CreateReq_AllOptions{FilterOption: &persistent.CreateReq_AllOptions_Filter{
					Filter: &persistent.CreateReq_AllOptions_FilterOptions{Filter: &persistent.CreateReq_AllOptions_FilterOptions_EventType{
						EventType: &persistent.CreateReq_AllOptions_FilterOptions_Expression{Regex: "("},
					}},
				}}}
			}), o)
			return err
		}, codes.InvalidArgument, nil},
		{"list of nothing", func(o grpc.CallOption) error { _, err := raw.List(ctx, &persistent.ListReq{}, o); return err }, codes.InvalidArgument, nil},
		{"stop at a negative revision", func(o grpc.CallOption) error {
			_, err := raw.ReplayParked(ctx, &persistent.ReplayParkedReq{Options: &persistent.ReplayParkedReq_Options{
				StreamOption: &persistent.ReplayParkedReq_Options_StreamIdentifier{StreamIdentifier: identifier("s")}, GroupName: "g",
				StopAtOption: &persistent.ReplayParkedReq_Options_StopAt{StopAt: -1},
			}}, o)
			return err
		}, codes.InvalidArgument, nil},
		{"no options first", read(&persistent.ReadReq{Content: &persistent.ReadReq_Ack_{Ack: &persistent.ReadReq_Ack{}}}), codes.InvalidArgument, nil},
		{"no room", read(readOptions("s", 0, nil)), codes.InvalidArgument, nil},
		{"options twice", read(readOptions("s", 1, nil), readOptions("s", 1, nil)), codes.InvalidArgument, nil},
		{"an id that is none", read(readOptions("s", 1, nil), &persistent.ReadReq{Content: &persistent.ReadReq_Ack_{Ack: &persistent.ReadReq_Ack{
			Ids: []*shared.UUID{{Value: &shared.UUID_String_{String_: "x"}}},
		}}}), codes.InvalidArgument, nil},
		{
			"an unknown action", read(readOptions("s", 1, nil), &persistent.ReadReq{Content: &persistent.ReadReq_Nack_{Nack: &persistent.ReadReq_Nack{Action: 9}}}),
			codes.InvalidArgument, nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var md metadata.MD
			err := tc.call(grpc.Trailer(&md))
			if status.Code(err) != tc.code {
				t.Fatalf("%v, want %v", err, tc.code)
			}
			for key, want := range tc.trailer {
				if got := md.Get(key); len(got) != 1 || got[0] != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
			if tc.trailer == nil && len(md.Get("exception")) > 0 {
				t.Error(md)
			}
		})
	}
}

// TestGroupErrorsOfTheClient: what the client makes of them; client tests
// createPersistentStreamSubscription_FailsIfAlreadyExists,
// updatePersistentStreamSubscription_ErrIfSubscriptionDoesNotExist and
// deletePersistentSubscription_ErrIfSubscriptionDoesNotExist.
func TestGroupErrorsOfTheClient(t *testing.T) {
	r := newGroupRig(t, Config{})
	ctx := context.Background()
	r.create("s", esdb.Start{}, nil)
	for _, tc := range []struct {
		name string
		err  error
		want esdb.ErrorCode
	}{
		{"exists", r.c.CreatePersistentSubscription(ctx, "s", "g", esdb.PersistentStreamSubscriptionOptions{}), esdb.ErrorCodeResourceAlreadyExists},
		{"update", r.c.UpdatePersistentSubscription(ctx, "none", "g", esdb.PersistentStreamSubscriptionOptions{}), esdb.ErrorCodeResourceNotFound},
		{"delete", r.c.DeletePersistentSubscription(ctx, "none", "g", esdb.DeletePersistentSubscriptionOptions{}), esdb.ErrorCodeResourceNotFound},
		{"delete on $all", r.c.DeletePersistentSubscriptionToAll(ctx, "g", esdb.DeletePersistentSubscriptionOptions{}), esdb.ErrorCodeResourceNotFound},
		{"update on $all", r.c.UpdatePersistentSubscriptionToAll(ctx, "g", esdb.PersistentAllSubscriptionOptions{Settings: eager(nil)}), esdb.ErrorCodeResourceNotFound},
		{"replay", r.c.ReplayParkedMessages(ctx, "none", "g", esdb.ReplayParkedMessagesOptions{}), esdb.ErrorCodeResourceNotFound},
	} {
		if code(tc.err) != tc.want {
			t.Errorf("%s: %v", tc.name, tc.err)
		}
	}
}

// TestGroupOlderClients: eventstore.md: npm clients fill only the deprecated
// stream_identifier and settings.revision.
//
//nolint:staticcheck // they are deprecated, and filled all the same
func TestGroupOlderClients(t *testing.T) {
	for _, tc := range []struct {
		revision uint64
		start    esdb.StreamPosition
		want     string
	}{
		{0, esdb.Start{}, "s/0 s/1 s/2 s/3"}, {1, esdb.Revision(1), "s/1 s/2 s/3"}, {endMark, esdb.End{}, "s/3"},
	} {
		t.Run(fmt.Sprint(tc.revision), func(t *testing.T) {
			r := newGroupRig(t, Config{})
			raw := groupStub(t, r.s)
			mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(3)...)
			req := createRequest("s", "g", func(o *persistent.CreateReq_Options) {
				o.StreamOption, o.StreamIdentifier = nil, identifier("s")
				o.Settings.Revision, o.Settings.ConsumerStrategy = tc.revision, ""
				o.Settings.NamedConsumerStrategy = persistent.CreateReq_Pinned
				o.Settings.MessageTimeout = &persistent.CreateReq_Settings_MessageTimeoutTicks{MessageTimeoutTicks: 20_000}
			})
			if _, err := raw.Create(context.Background(), req); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, r.c, "s", esdb.Any{}, newEvents(1)...)
			i := r.info("s").Settings
			if i.StartFrom != tc.start || i.MessageTimeout != 2 || i.ConsumerStrategyName != esdb.ConsumerStrategyPinned {
				t.Fatalf("%+v", i)
			}
			_, err := raw.Update(context.Background(), &persistent.UpdateReq{Options: &persistent.UpdateReq_Options{
				StreamIdentifier: identifier("s"), GroupName: "g", Settings: &persistent.UpdateReq_Settings{
					Revision: tc.revision, NamedConsumerStrategy: persistent.UpdateReq_RoundRobin, HistoryBufferSize: 10, ReadBatchSize: 10, LiveBufferSize: 10,
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if tc.revision == endMark {
				tc.want = "" // the group never got anywhere, so its end is now
			}
			c := r.consume("s", 10)
			c.want(tc.want)
			c.quiet()
		})
	}
}

// TestGroupWire: persistent.proto, what Read answers.
func TestGroupWire(t *testing.T) {
	r := newGroupRig(t, Config{})
	raw := groupStub(t, r.s)
	e := newEvents(1)
	w := mustAppend(t, r.c, "s", esdb.NoStream{}, e...)
	r.create("s", esdb.Start{}, nil)
	read, err := raw.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	err = read.Send(readOptions("s", 1, func(o *persistent.ReadReq_Options) {
		o.UuidOption = &persistent.ReadReq_Options_UUIDOption{Content: &persistent.ReadReq_Options_UUIDOption_String_{String_: &shared.Empty{}}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := read.Recv()
	if err != nil || m.GetSubscriptionConfirmation().GetSubscriptionId() != "s::g" {
		t.Fatal(m, err)
	}
	if m, err = read.Recv(); err != nil {
		t.Fatal(err)
	}
	got := m.GetEvent()
	if got.GetCommitPosition() != w.CommitPosition || got.GetEvent().GetId().GetString_() != e[0].EventID.String() || got.GetLink() != nil ||
		got.GetEvent().GetCommitPosition() != w.CommitPosition || got.GetEvent().GetPreparePosition() != w.CommitPosition ||
		got.GetEvent().GetMetadata()["created"] == "" || string(got.GetEvent().GetData()) != `{"a":1}` || string(got.GetEvent().GetCustomMetadata()) != `{"m":1}` {
		t.Fatalf("%+v", got)
	}
	// An answer by text id counts as well.
	ack := &persistent.ReadReq_Ack{Ids: []*shared.UUID{{Value: &shared.UUID_String_{String_: e[0].EventID.String()}}}}
	if err := read.Send(&persistent.ReadReq{Content: &persistent.ReadReq_Ack_{Ack: ack}}); err != nil {
		t.Fatal(err)
	}
	r.await("s", "the answer", func(i *esdb.PersistentSubscriptionInfo) bool { return i.Stats.TotalInFlightMessages == 0 })
}

// TestGroupInfo: client tests persistentGetInfo, …ToAll, …Encoding, and what the
// client's types say of each number.
func TestGroupInfo(t *testing.T) {
	r := newGroupRig(t, Config{})
	if i := func() *esdb.PersistentSubscriptionInfo {
		r.create("s", esdb.End{}, nil)
		return r.info("s")
	}(); i.Stats.LastKnownEventRevision != nil || i.Stats.LastCheckpointedEventRevision != nil || len(i.Connections) != 0 || i.EventSource != "s" || i.GroupName != "g" {
		t.Fatalf("%+v %+v", i, i.Stats)
	}
	mustAppend(t, r.c, "s", esdb.NoStream{}, newEvents(50)...)
	ctx := metadata.AppendToOutgoingContext(context.Background(), "connection-name", "mine")
	raw, err := groupStub(t, r.s).Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Send(readOptions("s", 2, nil)); err != nil {
		t.Fatal(err)
	}
	r.await("s", "the events", func(i *esdb.PersistentSubscriptionInfo) bool {
		s := i.Stats
		return s.TotalInFlightMessages == 2 && s.ReadBufferCount+s.LiveBufferCount == 48 && i.Status == "Live" &&
			*s.LastKnownEventRevision == 49 && len(i.Connections) == 1 && i.Connections[0].ConnectionName == "mine" &&
			i.Connections[0].InFlightMessages == 2 && i.Connections[0].AvailableSlots == 0 && i.Connections[0].TotalItemsProcessed == 2
	})
	stream, group := "/ü/foo", "/g/foo" // client test persistentGetInfoEncoding
	if err := r.c.CreatePersistentSubscription(context.Background(), stream, group, esdb.PersistentStreamSubscriptionOptions{}); err != nil {
		t.Fatal(err)
	}
	i, err := r.c.GetPersistentSubscriptionInfo(context.Background(), stream, group, esdb.GetPersistentSubscriptionOptions{})
	if err != nil || i.EventSource != stream || i.GroupName != group {
		t.Fatal(i, err)
	}
}

// TestGroupUpdateSettings: client tests updatePersistentStreamSubscription and
// persistentAllUpdate.
func TestGroupUpdateSettings(t *testing.T) {
	r := newGroupRig(t, Config{})
	r.create("s", esdb.Revision(3), nil)
	settings := esdb.SubscriptionSettingsDefault()
	settings.HistoryBufferSize++
	settings.ConsumerStrategyName = esdb.ConsumerStrategyDispatchToSingle
	settings.MaxSubscriberCount++
	settings.ReadBatchSize++
	settings.CheckpointAfter++
	settings.CheckpointUpperBound++
	settings.CheckpointLowerBound++
	settings.LiveBufferSize++
	settings.MaxRetryCount++
	settings.MessageTimeout++
	settings.ExtraStatistics = true
	settings.ResolveLinkTos = true
	err := r.c.UpdatePersistentSubscription(context.Background(), "s", "g", esdb.PersistentStreamSubscriptionOptions{Settings: &settings, StartFrom: esdb.Revision(9)})
	if err != nil {
		t.Fatal(err)
	}
	settings.StartFrom = esdb.Revision(9)
	if got := *r.info("s").Settings; got != settings {
		t.Fatalf("%+v", got)
	}
	filter := &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: []string{"a"}}
	r.createAll(esdb.PersistentAllSubscriptionOptions{StartFrom: esdb.Start{}, Filter: filter})
	settings.StartFrom = esdb.Start{}
	err = r.c.UpdatePersistentSubscriptionToAll(context.Background(), "g", esdb.PersistentAllSubscriptionOptions{Settings: &settings, StartFrom: esdb.Start{}})
	if err != nil {
		t.Fatal(err)
	}
	if got := *r.info("$all").Settings; got != settings {
		t.Fatalf("%+v", got)
	}
	mustAppend(t, r.c, "b", esdb.NoStream{}, newEvents(1)...)
	mustAppend(t, r.c, "a", esdb.NoStream{}, newEvents(1)...)
	r.consume("$all", 5).want("a/0") // the filter stays
}

// TestGroupList: client tests persistentListAllSubs, persistentListSubsForStream
// and persistentListSubsToAll.
func TestGroupList(t *testing.T) {
	r := newGroupRig(t, Config{})
	ctx := context.Background()
	list := func(infos []esdb.PersistentSubscriptionInfo, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, i := range infos {
			out = append(out, i.EventSource+"/"+i.GroupName)
		}
		return strings.Join(out, " ")
	}
	if got := list(r.c.ListAllPersistentSubscriptions(ctx, esdb.ListPersistentSubscriptionsOptions{})); got != "" {
		t.Fatal(got)
	}
	for _, n := range []groupName{{"b", "1"}, {"a", "2"}, {"a", "1"}} {
		if err := r.c.CreatePersistentSubscription(ctx, n.stream, n.group, esdb.PersistentStreamSubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.createAll(esdb.PersistentAllSubscriptionOptions{})
	if got := list(r.c.ListAllPersistentSubscriptions(ctx, esdb.ListPersistentSubscriptionsOptions{})); got != "$all/g a/1 a/2 b/1" {
		t.Fatal(got)
	}
	if got := list(r.c.ListPersistentSubscriptionsForStream(ctx, "a", esdb.ListPersistentSubscriptionsOptions{})); got != "a/1 a/2" {
		t.Fatal(got)
	}
	if got := list(r.c.ListPersistentSubscriptionsToAll(ctx, esdb.ListPersistentSubscriptionsOptions{})); got != "$all/g" {
		t.Fatal(got)
	}
}
