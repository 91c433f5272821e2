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
// and answers reads of the whole log with messages that were made and encoded
// beforehand.
// What the client reaches against it, it can reach at all.
type ceiling struct {
	streams.UnimplementedStreamsServer
	serverfeatures.UnimplementedServerFeaturesServer
	messages []encoded
}

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

// serveCeiling serves a ceiling with so many messages on a unix socket.
func serveCeiling(b *testing.B, messages int) (address string) {
	b.Helper()
	path := filepath.Join(place(b), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	c := &ceiling{}
	for i := range messages {
		m, err := proto.Marshal(madeMessage(i))
		if err != nil {
			b.Fatal(err)
		}
		c.messages = append(c.messages, m)
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
	for i := range min(uint64(len(c.messages)), count) {
		if err := out.SendMsg(c.messages[i]); err != nil {
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
