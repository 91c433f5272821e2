package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// errDenied tells that the list of the stream does not let the writer in.
var errDenied = errors.New("access denied")

// answer is the response to a batch: what came of it, or what went wrong. The
// error comes back where it is none of this batch alone, so that the whole call
// ends with it and the client goes to look for another server.
func (b *batch) answer(res appendResult, err error) (*streams.BatchAppendResp, error) {
	m := &streams.BatchAppendResp{CorrelationId: b.correlation}
	m.StreamIdentifier = b.options.GetStreamIdentifier()
	if m.StreamIdentifier == nil {
		m.StreamIdentifier = &shared.StreamIdentifier{} // clients don't expect it to be missing
	}
	switch x := b.options.GetExpectedStreamPosition().(type) {
	case *streams.BatchAppendReq_Options_StreamPosition:
		m.ExpectedStreamPosition = &streams.BatchAppendResp_StreamPosition{StreamPosition: x.StreamPosition}
	case *streams.BatchAppendReq_Options_NoStream:
		m.ExpectedStreamPosition = &streams.BatchAppendResp_NoStream{NoStream: &emptypb.Empty{}}
	case *streams.BatchAppendReq_Options_Any:
		m.ExpectedStreamPosition = &streams.BatchAppendResp_Any{Any: &emptypb.Empty{}}
	case *streams.BatchAppendReq_Options_StreamExists:
		m.ExpectedStreamPosition = &streams.BatchAppendResp_StreamExists{StreamExists: &emptypb.Empty{}}
	}
	if err == nil && !res.wrong {
		m.Result = &streams.BatchAppendResp_Success_{Success: batchSuccess(res)}
		return m, nil
	}
	failed, err := b.failure(res, err)
	if err != nil {
		return nil, err
	}
	m.Result = &streams.BatchAppendResp_Error{Error: failed}
	return m, nil
}

func batchSuccess(res appendResult) *streams.BatchAppendResp_Success {
	if res.current == noRevision {
		return &streams.BatchAppendResp_Success{
			CurrentRevisionOption: &streams.BatchAppendResp_Success_NoStream{NoStream: &emptypb.Empty{}},
			PositionOption:        &streams.BatchAppendResp_Success_NoPosition{NoPosition: &emptypb.Empty{}},
		}
	}
	return &streams.BatchAppendResp_Success{
		CurrentRevisionOption: &streams.BatchAppendResp_Success_CurrentRevision{CurrentRevision: uint64(res.current)},
		PositionOption: &streams.BatchAppendResp_Success_Position{Position: &shared.AllStreamPosition{
			CommitPosition: res.position, PreparePosition: res.position,
		}},
	}
}

// failure tells what went wrong with a batch. Clients look at the type of the
// detail, and take it for granted that there is one.
func (b *batch) failure(res appendResult, err error) (*rpcstatus.Status, error) {
	switch {
	case err == nil:
		return batchError(codes.FailedPrecondition, fmt.Sprintf("Append failed due to WrongExpectedVersion. Stream: %s, Expected version: %d, Actual version: %d",
			b.request.stream, b.request.expected.wire(), res.current), wrongVersionDetail(b.request.expected, res.current))
	case errors.Is(err, errTooLarge):
		return batchError(codes.InvalidArgument, fmt.Sprintf("Maximum Append Size of %d Exceeded.", maxAppend),
			&shared.MaximumAppendSizeExceeded{MaxAppendSize: maxAppend})
	case errors.Is(err, errStreamDeleted):
		return batchError(codes.FailedPrecondition, fmt.Sprintf("Event stream '%s' is deleted.", b.request.stream),
			&shared.StreamDeleted{StreamIdentifier: b.options.GetStreamIdentifier()})
	case errors.Is(err, errDenied):
		return batchError(codes.PermissionDenied, "Access Denied.", &shared.AccessDenied{})
	case errors.Is(err, context.DeadlineExceeded):
		return batchError(codes.DeadlineExceeded, "The batch's deadline has passed.", &shared.Timeout{})
	}
	err = toStatus(func(metadata.MD) {}, "", err)
	switch s := status.Convert(err); s.Code() {
	case codes.Unavailable, codes.Canceled:
		return nil, err
	case codes.InvalidArgument:
		return batchError(codes.InvalidArgument, s.Message(), &shared.BadRequest{Message: s.Message()})
	default:
		return batchError(s.Code(), s.Message(), &shared.Unknown{})
	}
}

// batchError makes the status of a failed batch. The generated code of the
// client's protocol takes google.rpc.Status from where gRPC has it too: the
// client's own copy must never be linked, it would be registered twice.
func batchError(code codes.Code, text string, detail proto.Message) (*rpcstatus.Status, error) {
	packed, err := anypb.New(detail)
	if err != nil {
		return nil, status.Error(codes.Internal, "internal error of the event store")
	}
	return &rpcstatus.Status{Code: int32(code), Message: text, Details: []*anypb.Any{packed}}, nil
}

func wrongVersionDetail(x expectation, current int64) *shared.WrongExpectedVersion {
	w := &shared.WrongExpectedVersion{}
	if current == noRevision {
		w.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &emptypb.Empty{}}
	} else {
		w.CurrentStreamRevisionOption = &shared.WrongExpectedVersion_CurrentStreamRevision{CurrentStreamRevision: uint64(current)}
	}
	switch x.kind {
	case expectAny:
		w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedAny{ExpectedAny: &emptypb.Empty{}}
	case expectExists:
		w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &emptypb.Empty{}}
	case expectNoStream:
		w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &emptypb.Empty{}}
	default:
		w.ExpectedStreamPositionOption = &shared.WrongExpectedVersion_ExpectedStreamPosition{ExpectedStreamPosition: uint64(x.revision)}
	}
	return w
}
