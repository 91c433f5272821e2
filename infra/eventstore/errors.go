package eventstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tallyard/domain/es"
)

// class tells what to do about an error of the client.
type class int

const (
	// final: no other attempt will end differently.
	final class = iota
	// again: the call may be repeated; whether it took effect is unknown.
	again
	// renew: as again, and the client is of no more use.
	renew
)

// errPanicked is a panic of the client, caught.
var errPanicked = errors.New("the event store's client panicked")

// errSplitPosition is about a server whose positions don't fit into one number.
var errSplitPosition = errors.New("the event store gives commit and prepare positions that differ; such a server can't be used")

// noRoom stands in the message by which the embedded server says that it is full;
// gRPC itself gives the same status to what is too large for it.
const noRoom = "no room for more events"

// classify gives a client's error the meaning that callers ask for.
func classify(err error) (class, error) {
	var e *esdb.Error
	if !errors.As(err, &e) {
		return classifyStatus(err)
	}
	switch e.Code() {
	case esdb.ErrorCodeWrongExpectedVersion:
		return final, wrapped(es.ErrWrongRevision, e.Err())
	case esdb.ErrorCodeStreamDeleted:
		return final, wrapped(es.ErrStreamDeleted, e.Err())
	case esdb.ErrorCodeResourceNotFound:
		return final, wrapped(es.ErrStreamNotFound, e.Err())
	case esdb.ErrorUnavailable, esdb.ErrorCodeNotLeader, esdb.ErrorCodeConnectionClosed:
		return renew, wrapped(es.ErrUnavailable, err)
	case esdb.ErrorAborted, esdb.ErrorCodeDeadlineExceeded:
		return again, wrapped(es.ErrUnavailable, err)
	case esdb.ErrorCodeUnknown:
		return classifyStatus(e.Err())
	default:
		return final, err
	}
}

// classifyStatus is for errors that the client passes on as they came.
func classifyStatus(err error) (class, error) {
	switch {
	case errors.Is(err, errPanicked):
		return renew, wrapped(es.ErrUnavailable, err)
	case errors.Is(err, es.ErrUnavailable):
		return again, err // no client was called
	case errors.Is(err, io.EOF):
		// The server ended the call while the client was still sending.
		return again, wrapped(es.ErrUnavailable, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return again, wrapped(es.ErrUnavailable, err)
	}
	s, ok := status.FromError(err)
	if !ok {
		return final, err
	}
	switch s.Code() {
	case codes.Unavailable, codes.Canceled:
		return renew, wrapped(es.ErrUnavailable, err)
	case codes.Aborted, codes.DeadlineExceeded:
		return again, wrapped(es.ErrUnavailable, err)
	case codes.FailedPrecondition:
		// Of the two kinds the client recognises the deleted stream itself.
		return final, wrapped(es.ErrWrongRevision, err)
	case codes.ResourceExhausted:
		if strings.Contains(s.Message(), noRoom) {
			return final, wrapped(es.ErrNoRoom, err)
		}
		return final, wrapped(es.ErrTooLarge, err)
	case codes.InvalidArgument:
		if strings.Contains(strings.ToLower(s.Message()), "maximum append size") {
			return final, wrapped(es.ErrTooLarge, err)
		}
	}
	return final, err
}

// lasting tells whether an error ends a subscription for good. A call with an
// error that nobody expected is better given up; a subscription is better tried
// again, for it has nobody who would try.
func lasting(err error) bool {
	if errors.Is(err, errSplitPosition) {
		return true
	}
	var e *esdb.Error
	if errors.As(err, &e) {
		switch e.Code() {
		case esdb.ErrorCodeAccessDenied, esdb.ErrorCodeUnauthenticated, esdb.ErrorCodeUnsupportedFeature:
			return true
		}
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented, codes.FailedPrecondition, codes.DataLoss:
		return true
	}
	return false
}

// wrapped joins the error that callers ask for with its cause.
func wrapped(kind, cause error) error {
	if cause == nil || errors.Is(cause, kind) {
		if cause != nil {
			return cause
		}
		return kind
	}
	return fmt.Errorf("%w: %w", kind, cause)
}
