package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"tallyard/domain/fault"
)

// Close codes of graphql-transport-ws, and ours.
const (
	CloseNormal            = 1000
	CloseGoingAway         = 1001
	CloseTryAgainLater     = 1013
	CloseBadRequest        = 4400                                   // a message that is none of the protocol
	CloseUnauthorized      = 4401                                   // subscribe before the acknowledgement
	CloseForbidden         = 4403                                   // the token was refused, has expired or was revoked
	CloseSubprotocol       = 4406                                   // the client does not speak graphql-transport-ws
	CloseTimeout           = 4408                                   // no connection_init in time, or no pong
	CloseSubscriberExists  = 4409                                   // an operation with this id is still running
	CloseTooManyInits      = 4429                                   // a second connection_init
	CloseTooSlow           = 4499                                   // the client cannot follow; the reason is its cursor
	CloseInternal          = 4500                                   // the other side failed
	maxCloseReason         = 123                                    // bytes, by RFC 6455
	reasonTokenEnded       = "The token has expired or was revoked" //nolint:gosec // G101: words for people
	reasonGoingAway        = "The server is stopping"
	reasonInternal         = "Internal error"
	reasonInitTimeout      = "Connection initialisation timeout"
	reasonPongTimeout      = "Pong timeout"
	reasonTooManyInits     = "Too many initialisation requests"
	reasonSubscribeTooSoon = "Unauthorized"
	reasonSubprotocol      = "Subprotocol not acceptable"
)

// CloseError ends the socket that an operation runs on. A resolver returns it,
// or hands it to [End]; an [Authenticator] cancels its context with it. Over
// plain HTTP it is an ordinary error.
type CloseError struct {
	// Code is a WebSocket close code, such as [CloseForbidden].
	Code int
	// Reason is told to the client; at most 123 bytes arrive.
	Reason string
}

// fitting is the reason as far as a close frame can hold it. Part of a cursor
// would be a wrong one, so that goes as a whole or not at all.
func (e *CloseError) fitting() string {
	switch {
	case len(e.Reason) <= maxCloseReason:
		return e.Reason
	case e.Code == CloseTooSlow:
		return ""
	default:
		return shorten(e.Reason, maxCloseReason-len("…"))
	}
}

// Error implements error.
func (e *CloseError) Error() string {
	return fmt.Sprintf("close %d: %s", e.Code, e.Reason)
}

func (e *CloseError) asFault() *fault.Fault {
	switch e.Code {
	case CloseUnauthorized, CloseForbidden:
		return fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, reasonTokenEnded+".")
	case CloseBadRequest:
		return fault.New(fault.Invalid, fault.CodeBadRequest, "The operation is not acceptable.")
	default:
		return fault.New(fault.Unavailable, fault.CodeUnavailable, "The operation was ended; try again.")
	}
}

// operation is one running operation, as its resolvers can reach it.
type operation struct {
	mu     sync.Mutex
	err    error
	cancel context.CancelFunc
	close  func(*CloseError) // closes the socket; nil over HTTP
}

type operationKey struct{}

func withOperation(ctx context.Context, op *operation) context.Context {
	return context.WithValue(ctx, operationKey{}, op)
}

func operationFrom(ctx context.Context) *operation {
	op, _ := ctx.Value(operationKey{}).(*operation)
	return op
}

// End ends the operation that ctx belongs to, with an error. It is how a
// subscription ends otherwise than by closing its channel: with a [CloseError]
// the whole socket is closed, after what is on its way was written; with any
// other error the client gets an error message for this operation. The first
// call counts. With [CloseTooSlow] the socket stays open until the channel is
// closed: what was taken from it lies before the cursor, so it is written first.
func End(ctx context.Context, err error) {
	if op := operationFrom(ctx); op != nil && err != nil {
		op.end(err)
	}
}

func (o *operation) end(err error) {
	o.mu.Lock()
	first := o.err == nil
	if first {
		o.err = err
	}
	o.mu.Unlock()
	if !first {
		return
	}
	if o.close == nil {
		return // over HTTP the answer is still to be written
	}
	var end *CloseError
	switch {
	case !errors.As(err, &end):
		o.cancel()
	case end.Code != CloseTooSlow:
		o.close(end)
	}
}

func (o *operation) ended() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
