package embedded

import (
	"context"
	"errors"
	"io"
	"math"
	"unicode/utf8"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// streamsService implements the protocol's streams.
type streamsService struct {
	streams.UnimplementedStreamsServer
	server *Server
	store  *store
}

// Append takes the options and the events of one append and commits them.
func (svc *streamsService) Append(stream streams.Streams_AppendServer) error {
	set := streamTrailer(stream)
	r, invalidErr, err := receiveAppend(stream)
	if err != nil {
		return err
	}
	if invalidErr != nil {
		if errors.Is(invalidErr, errTooLarge) {
			return appendTooLarge(set)
		}
		return invalidErr
	}
	if err := svc.store.authorize(stream.Context(), set, r.stream, accessWrite); err != nil {
		return err
	}
	res, err := svc.store.append(stream.Context(), r)
	if err != nil {
		return toStatus(set, r.stream, err)
	}
	if res.wrong {
		return stream.SendAndClose(wrongVersionMessage(r.expected, res.current))
	}
	return stream.SendAndClose(appendedMessage(res))
}

var errTooLarge = errors.New("append too large")

// perEvent counts for the keys and numbers that every event costs, so that an
// append of very many empty events is too large as well.
const perEvent = 32

// receiveAppend reads an append to its end. What is wrong with it comes back as
// bad only then: a client that is answered while it still sends sees its own
// send fail and never the answer.
func receiveAppend(stream streams.Streams_AppendServer) (r *appendRequest, bad, err error) {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if r == nil && bad == nil {
				bad = invalid("the append has no options")
			}
			return r, bad, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if bad != nil {
			continue
		}
		switch c := m.GetContent().(type) {
		case *streams.AppendReq_Options_:
			if r != nil {
				bad = invalid("the append has options twice")
				continue
			}
			r, bad = appendOptions(c.Options)
		case *streams.AppendReq_ProposedMessage_:
			if r == nil {
				bad = invalid("the append's options must come first")
				continue
			}
			bad = r.propose(c.ProposedMessage)
		default:
			bad = invalid("the append has an unknown part")
		}
	}
}

func appendOptions(o *streams.AppendReq_Options) (*appendRequest, error) {
	name, err := writableName(o.GetStreamIdentifier())
	if err != nil {
		return nil, err
	}
	r := &appendRequest{stream: name}
	switch x := o.GetExpectedStreamRevision().(type) {
	case *streams.AppendReq_Options_Revision:
		r.expected, err = expectAt(x.Revision)
	case *streams.AppendReq_Options_NoStream:
		r.expected.kind = expectNoStream
	case *streams.AppendReq_Options_StreamExists:
		r.expected.kind = expectExists
	case *streams.AppendReq_Options_Any:
		r.expected.kind = expectAny
	default:
		err = invalid("the append names no expected revision")
	}
	return r, err
}

func expectAt(revision uint64) (expectation, error) {
	if revision >= math.MaxInt64 {
		return expectation{}, invalid("the expected revision is out of range")
	}
	return expectation{kind: expectRevision, revision: int64(revision)}, nil
}

// proposedMessageOf is what the messages of both kinds of append have in common.
type proposedMessageOf interface {
	GetId() *shared.UUID
	GetMetadata() map[string]string
	GetCustomMetadata() []byte
	GetData() []byte
}

// propose adds one event to the append.
func (r *appendRequest) propose(m proposedMessageOf) error {
	id, err := eventID(m.GetId())
	if err != nil {
		return invalid(err.Error())
	}
	kind, ok := m.GetMetadata()[wireType]
	if !ok || kind == "" || !utf8.ValidString(kind) {
		return invalid("the event has no type")
	}
	contentType, ok := m.GetMetadata()[wireContentType]
	if !ok || contentType == "" {
		return invalid("the event has no content type")
	}
	r.size += perEvent + len(m.GetData()) + len(m.GetCustomMetadata()) + len(kind) + len(contentType)
	if r.size > maxAppend {
		r.events = nil // it won't be written, so it needn't be kept
		return errTooLarge
	}
	r.events = append(r.events, proposed{
		id: id, kind: kind, contentType: contentType, metadata: m.GetCustomMetadata(), data: m.GetData(),
	})
	return nil
}

// appendedMessage is the answer to an append that succeeded. A stream that has
// no events after it, since none were given, has neither revision nor position.
func appendedMessage(res appendResult) *streams.AppendResp {
	success := &streams.AppendResp_Success{
		CurrentRevisionOption: &streams.AppendResp_Success_NoStream{NoStream: &shared.Empty{}},
		PositionOption:        &streams.AppendResp_Success_NoPosition{NoPosition: &shared.Empty{}},
	}
	if res.current != noRevision {
		success.CurrentRevisionOption = &streams.AppendResp_Success_CurrentRevision{CurrentRevision: uint64(res.current)}
		success.PositionOption = &streams.AppendResp_Success_Position{Position: &streams.AppendResp_Position{
			CommitPosition: res.position, PreparePosition: res.position,
		}}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_Success_{Success: success}}
}

// wrongVersionMessage is the answer to an append whose expectation did not
// hold. It fills the old fields as well, which older clients read.
func wrongVersionMessage(x expectation, current int64) *streams.AppendResp {
	w := &streams.AppendResp_WrongExpectedVersion{}
	if current == noRevision {
		w.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentNoStream{CurrentNoStream: &shared.Empty{}}
		w.CurrentRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_NoStream_20_6_0{NoStream_20_6_0: &shared.Empty{}}
	} else {
		w.CurrentRevisionOption = &streams.AppendResp_WrongExpectedVersion_CurrentRevision{CurrentRevision: uint64(current)}
		w.CurrentRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_CurrentRevision_20_6_0{CurrentRevision_20_6_0: uint64(current)}
	}
	switch x.kind {
	case expectAny:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedAny{ExpectedAny: &shared.Empty{}}
		w.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_Any_20_6_0{Any_20_6_0: &shared.Empty{}}
	case expectExists:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedStreamExists{ExpectedStreamExists: &shared.Empty{}}
		w.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_StreamExists_20_6_0{StreamExists_20_6_0: &shared.Empty{}}
	case expectNoStream:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedNoStream{ExpectedNoStream: &shared.Empty{}}
	default:
		w.ExpectedRevisionOption = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision{ExpectedRevision: uint64(x.revision)}
		w.ExpectedRevisionOption_20_6_0 = &streams.AppendResp_WrongExpectedVersion_ExpectedRevision_20_6_0{ExpectedRevision_20_6_0: uint64(x.revision)}
	}
	return &streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{WrongExpectedVersion: w}}
}

// Delete ends a stream softly.
func (svc *streamsService) Delete(ctx context.Context, req *streams.DeleteReq) (*streams.DeleteResp, error) {
	r := &appendRequest{kind: requestDelete}
	var err error
	switch x := req.GetOptions().GetExpectedStreamRevision().(type) {
	case *streams.DeleteReq_Options_Revision:
		r.expected, err = expectAt(x.Revision)
	case *streams.DeleteReq_Options_NoStream:
		r.expected.kind = expectNoStream
	case *streams.DeleteReq_Options_StreamExists:
		r.expected.kind = expectExists
	case *streams.DeleteReq_Options_Any:
		r.expected.kind = expectAny
	default:
		err = invalid("the delete names no expected revision")
	}
	if err != nil {
		return nil, err
	}
	position, err := svc.end(ctx, r, req.GetOptions().GetStreamIdentifier())
	if err != nil {
		return nil, err
	}
	return &streams.DeleteResp{PositionOption: &streams.DeleteResp_Position_{Position: &streams.DeleteResp_Position{
		CommitPosition: position, PreparePosition: position,
	}}}, nil
}

// Tombstone ends a stream for ever.
func (svc *streamsService) Tombstone(ctx context.Context, req *streams.TombstoneReq) (*streams.TombstoneResp, error) {
	r := &appendRequest{kind: requestTombstone}
	var err error
	switch x := req.GetOptions().GetExpectedStreamRevision().(type) {
	case *streams.TombstoneReq_Options_Revision:
		r.expected, err = expectAt(x.Revision)
	case *streams.TombstoneReq_Options_NoStream:
		r.expected.kind = expectNoStream
	case *streams.TombstoneReq_Options_StreamExists:
		r.expected.kind = expectExists
	case *streams.TombstoneReq_Options_Any:
		r.expected.kind = expectAny
	default:
		err = invalid("the tombstone names no expected revision")
	}
	if err != nil {
		return nil, err
	}
	position, err := svc.end(ctx, r, req.GetOptions().GetStreamIdentifier())
	if err != nil {
		return nil, err
	}
	return &streams.TombstoneResp{PositionOption: &streams.TombstoneResp_Position_{Position: &streams.TombstoneResp_Position{
		CommitPosition: position, PreparePosition: position,
	}}}, nil
}

// end commits a delete or a tombstone.
func (svc *streamsService) end(ctx context.Context, r *appendRequest, id *shared.StreamIdentifier) (position uint64, err error) {
	set := unaryTrailer(ctx)
	if r.stream, err = writableName(id); err != nil {
		return 0, err
	}
	if _, isMeta := metadataOf(r.stream); isMeta {
		return 0, invalid("a metadata stream can't be deleted")
	}
	if err := svc.store.authorize(ctx, set, r.stream, accessDelete); err != nil {
		return 0, err
	}
	res, err := svc.store.append(ctx, r)
	if err != nil {
		return 0, toStatus(set, r.stream, err)
	}
	if res.wrong {
		return 0, wrongVersion(set, r.stream, r.expected, res.current)
	}
	return res.position, nil
}
