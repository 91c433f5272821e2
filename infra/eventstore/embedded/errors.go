package embedded

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Values of the trailer "exception", by which clients tell errors apart that
// share a gRPC status.
const (
	exceptionStreamDeleted  = "stream-deleted"
	exceptionWrongVersion   = "wrong-expected-version"
	exceptionAppendTooLarge = "maximum-append-size-exceeded"
	exceptionNotLeader      = "not-leader"
	exceptionAccessDenied   = "access-denied"
)

// trailerSetter is what a unary call and a stream have in common here.
type trailerSetter func(metadata.MD)

// streamTrailer sets trailers of a streaming call.
func streamTrailer(s grpc.ServerStream) trailerSetter { return s.SetTrailer }

// unaryTrailer sets trailers of a unary call.
func unaryTrailer(ctx context.Context) trailerSetter {
	return func(md metadata.MD) {
		// It fails only outside of a call, where nobody waits for trailers.
		_ = grpc.SetTrailer(ctx, md)
	}
}

// streamDeleted is the answer about a tombstoned stream.
func streamDeleted(set trailerSetter, stream string) error {
	set(metadata.Pairs("exception", exceptionStreamDeleted, "stream-name", stream))
	return status.Errorf(codes.FailedPrecondition, "Event stream '%s' is deleted.", stream)
}

// wrongVersion is the answer to a delete whose expectation did not hold. An
// append answers with a message instead.
func wrongVersion(set trailerSetter, stream string, expected expectation, actual int64) error {
	set(metadata.Pairs("exception", exceptionWrongVersion, "stream-name", stream,
		"expected-version", strconv.FormatInt(expected.wire(), 10),
		"actual-version", strconv.FormatInt(actual, 10)))
	return status.Errorf(codes.FailedPrecondition,
		"Append failed due to WrongExpectedVersion. Stream: %s, Expected version: %d, Actual version: %d",
		stream, expected.wire(), actual)
}

// wire is the number that stands for an expectation in trailers.
func (x expectation) wire() int64 {
	switch x.kind {
	case expectAny:
		return -2
	case expectExists:
		return -4
	default:
		return x.expected()
	}
}

// appendTooLarge is the answer to an append over the size limit.
func appendTooLarge(set trailerSetter) error {
	set(metadata.Pairs("exception", exceptionAppendTooLarge, "maximum-append-size", strconv.Itoa(maxAppend)))
	return status.Errorf(codes.InvalidArgument, "Maximum Append Size of %d Exceeded.", maxAppend)
}

// toStatus gives an error of the store the status that the contract asks for.
func toStatus(set trailerSetter, stream string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errStreamDeleted):
		return streamDeleted(set, stream)
	case errors.Is(err, errStopping), errors.Is(err, errFailed):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, errNoRoom):
		// Unlike Unavailable it leaves the client its connection, on which others
		// read and subscribe.
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.Is(err, errTornRecord), errors.Is(err, errTornHead):
		return status.Error(codes.DataLoss, err.Error())
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Internal, err.Error())
}
