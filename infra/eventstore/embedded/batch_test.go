package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// batchOf makes the only message of a batch: a number of events for a stream.
func batchOf(stream string, events int, f func(*streams.BatchAppendReq)) *streams.BatchAppendReq {
	m := &streams.BatchAppendReq{
		CorrelationId: structuredUUID(uuid.New()),
		Options: &streams.BatchAppendReq_Options{
			StreamIdentifier:       identifier(stream),
			ExpectedStreamPosition: &streams.BatchAppendReq_Options_Any{Any: &emptypb.Empty{}},
		},
		IsFinal: true,
	}
	for range events {
		m.ProposedMessages = append(m.ProposedMessages, batchEvent("{}"))
	}
	if f != nil {
		f(m)
	}
	return m
}

func batchEvent(data string) *streams.BatchAppendReq_ProposedMessage {
	return &streams.BatchAppendReq_ProposedMessage{
		Id:       &shared.UUID{Value: &shared.UUID_String_{String_: uuid.NewString()}}, // as the npm clients do
		Metadata: map[string]string{"type": "made", "content-type": contentJSON},
		Data:     []byte(data),
	}
}

func expect(x any) func(*streams.BatchAppendReq) {
	return func(m *streams.BatchAppendReq) {
		switch x := x.(type) {
		case int:
			m.Options.ExpectedStreamPosition = &streams.BatchAppendReq_Options_StreamPosition{StreamPosition: uint64(x)}
		case esdb.NoStream:
			m.Options.ExpectedStreamPosition = &streams.BatchAppendReq_Options_NoStream{NoStream: &emptypb.Empty{}}
		case esdb.StreamExists:
			m.Options.ExpectedStreamPosition = &streams.BatchAppendReq_Options_StreamExists{StreamExists: &emptypb.Empty{}}
		}
	}
}

// openBatches begins a call that ends with the test.
func openBatches(t *testing.T, c streams.StreamsClient, ctx context.Context) streams.Streams_BatchAppendClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	b, err := c.BatchAppend(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sendBatch(t *testing.T, b streams.Streams_BatchAppendClient, msgs ...*streams.BatchAppendReq) *streams.BatchAppendResp {
	t.Helper()
	for _, m := range msgs {
		if err := b.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := b.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if want := msgs[len(msgs)-1].GetCorrelationId(); !proto.Equal(resp.GetCorrelationId(), want) {
		t.Fatalf("answered %v, want %v", resp.GetCorrelationId(), want)
	}
	return resp
}

// detail unpacks the detail of a failed batch, as the npm clients do: they fail
// themselves where there is none, or no stream.
func detail(t *testing.T, resp *streams.BatchAppendResp) proto.Message {
	t.Helper()
	details := resp.GetError().GetDetails()
	if len(details) != 1 || resp.GetStreamIdentifier() == nil {
		t.Fatal(resp)
	}
	m, err := details[0].UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// eventstore.md, Server contract: BatchAppend is what the npm clients use for
// every append. Its outcomes are those of Append.
func TestBatchAppend(t *testing.T) {
	s := serve(t, Config{})
	c := connect(t, s)
	mustAppend(t, c, "three", esdb.NoStream{}, newEvents(3)...)
	mustAppend(t, c, "ended", esdb.NoStream{}, newEvents(1)...)
	if _, err := c.TombstoneStream(context.Background(), "ended", esdb.TombstoneStreamOptions{}); err != nil {
		t.Fatal(err)
	}
	b := openBatches(t, stub(t, s), context.Background())
	big := string(bytes.Repeat([]byte("x"), maxAppend/2))
	wrong := func(current, expected any) *shared.WrongExpectedVersion {
		w := &shared.WrongExpectedVersion{}
		switch x := current.(type) {
		case int:
			w.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentStreamRevision{CurrentStreamRevision: uint64(x)}
		default:
			w.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &emptypb.Empty{}}
		}
		switch x := expected.(type) {
		case int:
			w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamPosition{ExpectedStreamPosition: uint64(x)}
		case esdb.NoStream:
			w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &emptypb.Empty{}}
		default:
			w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &emptypb.Empty{}}
		}
		return w
	}
	for _, tc := range []struct {
		name     string
		send     *streams.BatchAppendReq
		revision uint64
		fails    proto.Message
	}{
		{"any", batchOf("new", 2, nil), 1, nil},
		{"the right revision", batchOf("new", 1, expect(1)), 2, nil},
		{"no stream", batchOf("other", 1, expect(esdb.NoStream{})), 0, nil},
		{"stream exists", batchOf("other", 1, expect(esdb.StreamExists{})), 1, nil},
		{"a deadline to come, as a moment", batchOf("moment", 1, func(m *streams.BatchAppendReq) {
			m.Options.DeadlineOption = &streams.BatchAppendReq_Options_Deadline_21_10_0{Deadline_21_10_0: timestamppb.New(time.Now().Add(time.Hour))}
		}), 0, nil},
		{"a deadline to come, as a time", batchOf("time", 1, func(m *streams.BatchAppendReq) {
			m.Options.DeadlineOption = &streams.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(time.Hour)}
		}), 0, nil},
		{"no events", batchOf("three", 0, nil), 2, nil},
		{"a wrong revision", batchOf("three", 1, expect(7)), 0, wrong(2, 7)},
		{"a stream that should not be", batchOf("three", 1, expect(esdb.NoStream{})), 0, wrong(2, esdb.NoStream{})},
		{"a stream that should be", batchOf("missing", 1, expect(esdb.StreamExists{})), 0, wrong(nil, esdb.StreamExists{})},
		{"a tombstoned stream", batchOf("ended", 1, nil), 0, &shared.StreamDeleted{StreamIdentifier: identifier("ended")}},
		{"too large", batchOf("large", 0, func(m *streams.BatchAppendReq) {
			m.ProposedMessages = append(m.ProposedMessages, batchEvent(big), batchEvent(big))
		}), 0, &shared.MaximumAppendSizeExceeded{MaxAppendSize: maxAppend}},
		{"a moment that has passed", batchOf("late", 1, func(m *streams.BatchAppendReq) {
			m.Options.DeadlineOption = &streams.BatchAppendReq_Options_Deadline_21_10_0{Deadline_21_10_0: timestamppb.New(time.Now().Add(-time.Second))}
		}), 0, &shared.Timeout{}},
		{"no time at all", batchOf("late", 1, func(m *streams.BatchAppendReq) {
			m.Options.DeadlineOption = &streams.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(0)}
		}), 0, &shared.Timeout{}},
		{
			"no expectation", batchOf("s", 1, func(m *streams.BatchAppendReq) { m.Options.ExpectedStreamPosition = nil }), 0,
			&shared.BadRequest{Message: "the batch names no expected revision"},
		},
		{"no stream name", batchOf("", 1, nil), 0, &shared.BadRequest{Message: "the stream has no name"}},
		{
			"no options", batchOf("s", 1, func(m *streams.BatchAppendReq) { m.Options = nil }), 0,
			&shared.BadRequest{Message: "the options must stand in the first message of a batch"},
		},
		{
			"an event without an id", batchOf("s", 1, func(m *streams.BatchAppendReq) { m.ProposedMessages[0].Id = nil }), 0,
			&shared.BadRequest{Message: "the event has no id"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp := sendBatch(t, b, tc.send)
			if tc.fails != nil {
				if got := detail(t, resp); !proto.Equal(got, tc.fails) {
					t.Fatalf("%T %v", got, got)
				}
				return
			}
			ok := resp.GetSuccess()
			if ok == nil || ok.GetCurrentRevision() != tc.revision || ok.GetPosition().GetCommitPosition() == 0 {
				t.Fatal(resp)
			}
			if name := string(resp.GetStreamIdentifier().GetStreamName()); name != string(tc.send.GetOptions().GetStreamIdentifier().GetStreamName()) {
				t.Fatal(name)
			}
		})
	}
	for _, stream := range []string{"late", "large"} {
		if _, err := readForward(t, c, stream, esdb.Start{}, 1); code(err) != esdb.ErrorCodeResourceNotFound {
			t.Errorf("%s was written to: %v", stream, err)
		}
	}
	if err := b.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Recv(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// A batch may come in several messages, those of several batches among each
// other; options stand in the first, and the last is final.
func TestBatchInSeveralMessages(t *testing.T) {
	s := serve(t, Config{})
	b := openBatches(t, stub(t, s), context.Background())
	part := func(of *streams.BatchAppendReq, final bool) *streams.BatchAppendReq {
		return &streams.BatchAppendReq{
			CorrelationId: of.GetCorrelationId(), IsFinal: final,
			ProposedMessages: []*streams.BatchAppendReq_ProposedMessage{batchEvent("{}")},
		}
	}
	notFinal := func(m *streams.BatchAppendReq) { m.IsFinal = false }
	first, second := batchOf("first", 1, notFinal), batchOf("second", 2, notFinal)
	if got := sendBatch(t, b, first, second, part(first, false), part(second, true)).GetSuccess().GetCurrentRevision(); got != 2 {
		t.Error("second", got)
	}
	if got := sendBatch(t, b, part(first, true)).GetSuccess().GetCurrentRevision(); got != 2 {
		t.Error("first", got)
	}
	third := batchOf("third", 1, notFinal)
	again := part(third, true)
	again.Options = third.Options
	if _, ok := detail(t, sendBatch(t, b, third, again)).(*shared.BadRequest); !ok {
		t.Error("options twice were taken")
	}
	large := batchOf("large", 0, func(m *streams.BatchAppendReq) {
		notFinal(m)
		m.ProposedMessages = append(m.ProposedMessages, batchEvent(string(bytes.Repeat([]byte("x"), maxAppend))))
	})
	if _, ok := detail(t, sendBatch(t, b, large, part(large, false), part(large, true))).(*shared.MaximumAppendSizeExceeded); !ok {
		t.Error("too large, and taken")
	}
}

// A batch that isn't final by its deadline is answered then, and only then: a
// client that is answered twice for one batch fails.
func TestBatchThatIsNotFinalInTime(t *testing.T) {
	b := openBatches(t, stub(t, serve(t, Config{})), context.Background())
	late := batchOf("late", 1, func(m *streams.BatchAppendReq) {
		m.IsFinal = false
		m.Options.DeadlineOption = &streams.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(20 * time.Millisecond)}
	})
	if _, ok := detail(t, sendBatch(t, b, late)).(*shared.Timeout); !ok {
		t.Fatal("not a timeout")
	}
	rest := &streams.BatchAppendReq{CorrelationId: late.GetCorrelationId(), IsFinal: true}
	if resp := sendBatch(t, b, rest, batchOf("next", 1, nil)); resp.GetSuccess() == nil {
		t.Fatal(resp)
	}
}

// Batches of one call are decided in the order in which they were sent.
func TestBatchesKeepTheirOrder(t *testing.T) {
	s := serve(t, Config{})
	b := openBatches(t, stub(t, s), context.Background())
	const n = 600 // more than may wait at once
	sent := make(chan error, 1)
	go func() {
		for i := range n {
			m := batchOf("ordered", 0, func(m *streams.BatchAppendReq) {
				m.ProposedMessages = append(m.ProposedMessages, batchEvent(fmt.Sprint(i)))
			})
			if err := b.Send(m); err != nil {
				sent <- err
				return
			}
		}
		sent <- b.CloseSend()
	}()
	answers := 0
	for {
		resp, err := b.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || resp.GetSuccess() == nil {
			t.Fatal(resp, err)
		}
		answers++
	}
	if err := <-sent; err != nil || answers != n {
		t.Fatal(answers, err)
	}
	events, err := readForward(t, connect(t, s), "ordered", esdb.Start{}, n+1)
	if err != nil || len(events) != n {
		t.Fatal(len(events), err)
	}
	for i, e := range events {
		if string(e.Data) != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, e.Data)
		}
	}
}

// What concerns the whole call ends it: a client could not tell which batch is meant.
func TestBatchCallEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		send func(streams.Streams_BatchAppendClient)
		want codes.Code
	}{
		"no correlation id": {func(b streams.Streams_BatchAppendClient) {
			_ = b.Send(batchOf("s", 1, func(m *streams.BatchAppendReq) { m.CorrelationId = nil }))
		}, codes.InvalidArgument},
		"a correlation id that is none": {func(b streams.Streams_BatchAppendClient) {
			_ = b.Send(batchOf("s", 1, func(m *streams.BatchAppendReq) {
				m.CorrelationId = &shared.UUID{Value: &shared.UUID_String_{String_: "x"}}
			}))
		}, codes.InvalidArgument},
		"too many begun": {func(b streams.Streams_BatchAppendClient) {
			for range maxOpenBatches + 1 {
				_ = b.Send(batchOf("s", 0, func(m *streams.BatchAppendReq) { m.IsFinal = false }))
			}
		}, codes.ResourceExhausted},
		"too much begun": {func(b streams.Streams_BatchAppendClient) {
			half := string(bytes.Repeat([]byte("x"), maxAppend/2))
			for range maxOpenBytes/(maxAppend/2) + 1 {
				_ = b.Send(batchOf("s", 0, func(m *streams.BatchAppendReq) {
					m.IsFinal = false
					m.ProposedMessages = append(m.ProposedMessages, batchEvent(half))
				}))
			}
		}, codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBatches(t, stub(t, serve(t, Config{})), context.Background())
			tc.send(b)
			if _, err := b.Recv(); status.Code(err) != tc.want {
				t.Fatal(err)
			}
		})
	}
	t.Run("the server stops", func(t *testing.T) {
		s := serve(t, Config{})
		b := openBatches(t, stub(t, s), context.Background())
		sendBatch(t, b, batchOf("s", 1, nil))
		closeServer(t, s)
		if _, err := b.Recv(); status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
	})
}

func TestBatchAccess(t *testing.T) {
	s, ca := serveNetwork(t, 2)
	for who, want := range map[string]bool{"": false, "ada": false, "admin": true} {
		b := openBatches(t, streams.NewStreamsClient(dial(t, s, ca, 1)), as(who))
		resp := sendBatch(t, b, batchOf("$theirs", 1, nil))
		if want && resp.GetSuccess() == nil {
			t.Error(who, resp)
		}
		if want {
			continue
		}
		if _, ok := detail(t, resp).(*shared.AccessDenied); !ok {
			t.Error(who, resp)
		}
	}
	b := openBatches(t, streams.NewStreamsClient(dial(t, s, ca, 1)), withBasic("admin:wrong"))
	if err := b.Send(batchOf("s", 1, nil)); err != nil {
		t.Fatal("answered before it was asked:", err)
	}
	if _, err := b.Recv(); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
}

// A batch that there is no room for is refused; the call goes on, for the next
// may be let in.
func TestBatchToAFullStoreLeavesTheCall(t *testing.T) {
	s := serve(t, Config{})
	s.store.space.reserve = 1 << 62
	s.store.measureSpace()
	b := openBatches(t, stub(t, s), context.Background())
	for range 2 {
		resp := sendBatch(t, b, batchOf("s", 1, nil))
		if detail(t, resp); codes.Code(resp.GetError().GetCode()) != codes.ResourceExhausted {
			t.Fatal(resp)
		}
	}
	if resp := sendBatch(t, b, batchOf("$$s", 1, nil)); resp.GetSuccess() == nil {
		t.Fatalf("metadata: %v", resp)
	}
}
