package conformance

import (
	"bytes"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// What the npm clients unpack is the source of the details of errors.
const npmDetails = "@eventstore/db-client 6.2.1, dist/streams/appendToStream/unpackError.js: "

var batching = []check{
	{"written", "eventstore.md, Server contract: BatchAppend, the npm clients use it for every append when it is advertised", func(t *testing.T, n *node) {
		m := batch(stream(), 2)
		ok := n.batch(t, m).GetSuccess()
		if ok.GetCurrentRevision() != 1 || ok.GetPosition().GetCommitPosition() == 0 {
			t.Fatal(ok)
		}
	}},
	{"in two messages", "docs: gRPC, streams.proto, BatchAppendReq.is_final", func(t *testing.T, n *node) {
		m := batch(stream(), 2)
		m.IsFinal = false
		rest := &streams.BatchAppendReq{CorrelationId: m.GetCorrelationId(), IsFinal: true, ProposedMessages: batch("", 1).GetProposedMessages()}
		if ok := n.batch(t, m, rest).GetSuccess(); ok.GetCurrentRevision() != 2 {
			t.Fatal(ok)
		}
	}},
	{"a wrong version", npmDetails + "event_store.client.WrongExpectedVersion", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(2)...)
		m := batch(s, 1)
		m.Options.ExpectedStreamPosition = &streams.BatchAppendReq_Options_StreamPosition{StreamPosition: 7}
		var w shared.WrongExpectedVersion
		if unpack(t, n.batch(t, m), &w); w.GetCurrentStreamRevision() != 1 || w.GetExpectedStreamPosition() != 7 {
			t.Fatal(&w)
		}
	}},
	{"a stream that is not there", npmDetails + "event_store.client.WrongExpectedVersion", func(t *testing.T, n *node) {
		m := batch(stream(), 1)
		m.Options.ExpectedStreamPosition = &streams.BatchAppendReq_Options_StreamExists{StreamExists: &emptypb.Empty{}}
		var w shared.WrongExpectedVersion
		if unpack(t, n.batch(t, m), &w); w.GetCurrentNoStream() == nil || w.GetExpectedStreamExists() == nil {
			t.Fatal(&w)
		}
	}},
	{"tombstoned", npmDetails + "event_store.client.StreamDeleted", func(t *testing.T, n *node) {
		s := stream()
		n.append(t, s, esdb.Any{}, events(1)...)
		n.tombstone(t, s)
		unpack(t, n.batch(t, batch(s, 1)), &shared.StreamDeleted{})
	}},
	{"too large", npmDetails + "event_store.client.MaximumAppendSizeExceeded", func(t *testing.T, n *node) {
		m := batch(stream(), 1)
		m.ProposedMessages[0].Data = bytes.Repeat([]byte("x"), 1<<20+1)
		var large shared.MaximumAppendSizeExceeded
		if unpack(t, n.batch(t, m), &large); large.GetMaxAppendSize() != 1<<20 {
			t.Fatal(&large)
		}
	}},
	{"too late", npmDetails + "event_store.client.Timeout", func(t *testing.T, n *node) {
		m := batch(stream(), 1)
		m.Options.DeadlineOption = &streams.BatchAppendReq_Options_Deadline_21_10_0{Deadline_21_10_0: timestamppb.New(time.Now().Add(-time.Minute))}
		unpack(t, n.batch(t, m), &shared.Timeout{})
	}},
}

func batch(name string, count int) *streams.BatchAppendReq {
	id := uuid.New()
	m := &streams.BatchAppendReq{
		CorrelationId: &shared.UUID{Value: &shared.UUID_String_{String_: id.String()}},
		Options: &streams.BatchAppendReq_Options{
			StreamIdentifier:       identifier(name),
			ExpectedStreamPosition: &streams.BatchAppendReq_Options_Any{Any: &emptypb.Empty{}},
			DeadlineOption:         &streams.BatchAppendReq_Options_Deadline_21_10_0{Deadline_21_10_0: timestamppb.New(time.Now().Add(time.Minute))},
		},
		IsFinal: true,
	}
	for _, e := range events(count) {
		m.ProposedMessages = append(m.ProposedMessages, &streams.BatchAppendReq_ProposedMessage{
			Id:       &shared.UUID{Value: &shared.UUID_String_{String_: e.EventID.String()}},
			Metadata: map[string]string{"type": e.EventType, "content-type": "application/json"}, Data: e.Data,
		})
	}
	return m
}

// batch sends the messages of one batch and gives its answer.
func (n *node) batch(t *testing.T, msgs ...*streams.BatchAppendReq) *streams.BatchAppendResp {
	t.Helper()
	b, err := n.streams().BatchAppend(n.admin(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range msgs {
		if err := b.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := b.Recv()
	if err != nil || uuidOf(resp.GetCorrelationId()) != msgs[0].GetCorrelationId().GetString_() {
		t.Fatal(resp, err)
	}
	return resp
}

// uuidOf reads an id in either of its forms.
func uuidOf(u *shared.UUID) string {
	s := u.GetStructured()
	if s == nil {
		return u.GetString_()
	}
	var id uuid.UUID
	for i := range 8 {
		id[i] = byte(uint64(s.GetMostSignificantBits()) >> (56 - 8*i))
		id[8+i] = byte(uint64(s.GetLeastSignificantBits()) >> (56 - 8*i))
	}
	return id.String()
}

// unpack takes out the detail of a failed batch, which must be of the kind of m.
func unpack(t *testing.T, resp *streams.BatchAppendResp, m proto.Message) {
	t.Helper()
	details := resp.GetError().GetDetails()
	if len(details) != 1 {
		t.Fatal(resp)
	}
	if err := details[0].UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
}
