package events

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// ceiling is a server without a store: it acknowledges appends that it forgets,
// and answers reads of the whole log with messages that were made beforehand, in
// turn.
// What the client reaches against it, it can reach at all.
type ceiling struct {
	streams.UnimplementedStreamsServer
	serverfeatures.UnimplementedServerFeaturesServer
	messages []any
	count    int // of messages that a subscription gets
}

// made is how many different messages a ceiling has: few, so that they don't
// cost the garbage collector what they would not cost a real server.
const made = 1000

// encoded is a message as it goes over the wire.
type encoded []byte

// encodedCodec sends encoded messages as they are, and others as gRPC does.
type encodedCodec struct{ encoding.CodecV2 }

func (c encodedCodec) Marshal(v any) (mem.BufferSlice, error) {
	if e, ok := v.(encoded); ok {
		return mem.BufferSlice{mem.SliceBuffer(e)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// serveCeiling serves a ceiling with so many messages on a unix socket. They are
// encoded when they are sent, or else beforehand, as no real server could.
func serveCeiling(b *testing.B, messages int, beforehand bool) (address string) {
	b.Helper()
	path := filepath.Join(place(b), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	c := &ceiling{count: messages}
	for i := range made {
		m := madeMessage(i)
		raw, err := proto.Marshal(m)
		if err != nil {
			b.Fatal(err)
		}
		if beforehand {
			c.messages = append(c.messages, encoded(raw))
		} else {
			c.messages = append(c.messages, m)
		}
	}
	s := grpc.NewServer(grpc.MaxRecvMsgSize(17<<20),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.ForceServerCodecV2(encodedCodec{encoding.GetCodecV2("proto")}))
	streams.RegisterStreamsServer(s, c)
	serverfeatures.RegisterServerFeaturesServer(s, c)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	b.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	return "unix:" + path
}

// GetSupportedMethods tells clients that appends and reads are there.
func (*ceiling) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	return &serverfeatures.SupportedMethods{EventStoreServerVersion: "24.10.0", Methods: []*serverfeatures.SupportedMethod{
		{ServiceName: "event_store.client.streams.streams", MethodName: "append"},
		{ServiceName: "event_store.client.streams.streams", MethodName: "read"},
	}}, nil
}

// Append takes an append and acknowledges it at the revision behind the expected one.
func (*ceiling) Append(in streams.Streams_AppendServer) error {
	next := uint64(0)
	for {
		m, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if r, ok := m.GetOptions().GetExpectedStreamRevision().(*streams.AppendReq_Options_Revision); ok {
			next = r.Revision + 1
		}
	}
	return in.SendAndClose(&streams.AppendResp{Result: &streams.AppendResp_Success_{Success: &streams.AppendResp_Success{
		CurrentRevisionOption: &streams.AppendResp_Success_CurrentRevision{CurrentRevision: next},
		PositionOption: &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{
			CommitPosition: 64 + next, PreparePosition: 64 + next,
		}},
	}}})
}

// Read answers with the messages, as a subscription or as a read.
func (c *ceiling) Read(req *streams.ReadReq, out streams.Streams_ReadServer) error {
	subscription := req.GetOptions().GetSubscription() != nil
	count := uint64(math.MaxUint64)
	if subscription {
		if err := out.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{
			Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()},
		}}); err != nil {
			return err
		}
	} else {
		count = req.GetOptions().GetCount()
	}
	for i := range min(uint64(c.count), count) {
		if err := out.SendMsg(c.messages[i%made]); err != nil {
			return err
		}
	}
	if !subscription {
		return nil
	}
	if err := out.Send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: &streams.ReadResp_CaughtUp{}}}); err != nil {
		return err
	}
	<-out.Context().Done()
	return out.Context().Err()
}

// madeMessage is the message of an event such as seed appends.
func madeMessage(i int) *streams.ReadResp {
	id, position := uuid.New(), uint64(64+500*i)
	return &streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: &streams.ReadResp_ReadEvent_RecordedEvent{
			Id: &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
				MostSignificantBits:  int64(binary.BigEndian.Uint64(id[:8])),
				LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
			}}},
			StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(seedStream(i / perStream))},
			StreamRevision:   uint64(i % perStream),
			CommitPosition:   position, PreparePosition: position,
			Metadata:       map[string]string{"type": eventType, "content-type": "application/json", "created": strconv.FormatInt(17_000_000_000_000_000+int64(i), 10)},
			CustomMetadata: []byte(`{}`),
			Data:           newBody(),
		},
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: position},
	}}}
}
