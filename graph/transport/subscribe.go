package transport

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tallyard/domain/fault"
)

// socketOperation is one operation of a socket.
type socketOperation struct {
	id     string
	ctx    context.Context // ends when nobody listens any more
	cancel context.CancelFunc
	info   RequestInfo
}

// subscribe starts an operation of any kind.
func (s *socket) subscribe(id string, payload json.RawMessage) *CloseError {
	s.mu.Lock()
	actor, count := s.actor, s.running
	_, running := s.ops[id]
	s.mu.Unlock()
	switch {
	case actor == nil:
		return &CloseError{CloseUnauthorized, reasonSubscribeTooSoon}
	case running:
		return &CloseError{CloseSubscriberExists, "Subscriber for " + shorten(id, 60) + " already exists"}
	}
	info := s.info
	info.RequestID = NewRequestID()
	ctx := WithRequestInfo(actor, info)
	if count >= s.h.cfg.Limits.SocketOperations {
		s.refuse(ctx, id, refuse(reasonLimit, fault.CodeLimitExceeded, "Too many operations on this socket at once."))
		return nil
	}
	if len(payload) == 0 {
		return badMessage("subscribe has no payload")
	}
	p, refused := decodeParams(payload, s.h.cfg.Limits.Document)
	if refused != nil && refused.reason == reasonMalformed {
		return badMessage(refused.errors[0].Message)
	}
	var prep *prepared
	if refused == nil {
		prep, refused = s.h.prepare(p)
	}
	if refused != nil {
		s.refuse(ctx, id, refused)
		return nil
	}
	op := &socketOperation{id: id, info: info}
	op.ctx, op.cancel = context.WithCancel(ctx)
	s.mu.Lock()
	s.ops[id] = op // only this goroutine adds
	s.running++
	s.mu.Unlock()
	s.h.work.Go(func() { s.runOperation(op, prep) })
	return nil
}

// refuse answers an operation that does not start.
func (s *socket) refuse(ctx context.Context, id string, r *refusal) {
	s.h.metrics.refused.Add(1)
	s.out.put(s.ctx, s, errorFrame(id, s.h.finishAll(ctx, r.errors)))
}

// complete is the client's: it does not listen to the operation any more.
func (s *socket) complete(id string) {
	s.mu.Lock()
	op := s.ops[id]
	delete(s.ops, id)
	s.mu.Unlock()
	if op != nil {
		op.cancel()
	}
}

// finish sends an operation's last message. The id is free before the client
// can know that it is.
func (s *socket) finish(op *socketOperation, frame []byte) {
	s.forget(op)
	s.out.put(op.ctx, s, frame)
}

func (s *socket) forget(op *socketOperation) {
	s.mu.Lock()
	if s.ops[op.id] == op {
		delete(s.ops, op.id)
	}
	s.mu.Unlock()
}

// ended lets go of an operation that runs no more.
func (s *socket) ended(op *socketOperation) {
	op.cancel()
	s.forget(op)
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
}

// runOperation runs an operation to its end.
func (s *socket) runOperation(op *socketOperation, p *prepared) {
	defer s.ended(op)
	ctx, cancel := s.operationTime(op, p)
	defer cancel()
	running := &operation{cancel: cancel, close: s.shut}
	ctx = withOperation(ctx, running)
	defer func() {
		if v := recover(); v != nil {
			s.finish(op, errorFrame(op.id, gqlerror.List{s.h.present(ctx, s.h.panicked(ctx, v))}))
		}
	}()
	opCtx, refused := s.h.operationContext(ctx, p)
	if refused != nil {
		s.h.metrics.refused.Add(1)
		s.finish(op, errorFrame(op.id, s.h.finishAll(ctx, refused.errors)))
		return
	}
	defer s.h.count(p.op.Operation)()
	if p.op.Operation != ast.Subscription {
		s.sendOnly(op, s.h.dispatch(ctx, opCtx))
		return
	}
	s.stream(ctx, op, running, opCtx)
}

// operationTime gives an operation its context: a subscription lives as long
// as somebody listens, a query at most until its deadline, a mutation until
// its end or its deadline.
func (s *socket) operationTime(op *socketOperation, p *prepared) (context.Context, context.CancelFunc) {
	switch p.op.Operation {
	case ast.Subscription:
		return context.WithCancel(op.ctx)
	case ast.Mutation:
		return context.WithTimeout(context.WithoutCancel(op.ctx), s.h.cfg.Limits.OperationTimeout)
	default:
		return context.WithTimeout(op.ctx, s.h.cfg.Limits.OperationTimeout)
	}
}

// sendOnly sends the answer of a query or a mutation.
func (s *socket) sendOnly(op *socketOperation, response *graphql.Response) {
	if response.Data == nil && len(response.Errors) > 0 {
		s.finish(op, errorFrame(op.id, s.h.firstErrors(response.Errors)))
		return
	}
	if s.out.put(op.ctx, s, s.h.nextFrame(op.id, response)) {
		s.finish(op, opFrame(op.id, "complete", nil))
	}
}

// stream sends what a subscription yields, one after the other: the next is
// asked for when there is room for it.
func (s *socket) stream(ctx context.Context, op *socketOperation, running *operation, opCtx *graphql.OperationContext) {
	responses, inner := s.h.exec.DispatchOperation(ctx, opCtx)
	for {
		response := responses(inner)
		if response == nil {
			break
		}
		if response.Data == nil && len(response.Errors) > 0 {
			// It did not start. An error message is the last one.
			s.finish(op, errorFrame(op.id, s.h.firstErrors(response.Errors)))
			return
		}
		if !s.out.put(op.ctx, s, s.h.nextFrame(op.id, response)) {
			return
		}
	}
	err := running.ended()
	var end *CloseError
	switch {
	case errors.As(err, &end):
		s.shut(end)
	case err != nil:
		s.finish(op, errorFrame(op.id, gqlerror.List{s.h.present(ctx, err)}))
	default:
		s.finish(op, opFrame(op.id, "complete", nil))
	}
}

// watch ends the socket when the actor's context ends before it: the token
// has expired, or was revoked.
func watch(actor context.Context, s *socket) (stop func() bool) {
	return context.AfterFunc(actor, func() {
		if s.ctx.Err() != nil {
			return // the socket ended, and the actor's context with it
		}
		var end *CloseError
		if !errors.As(context.Cause(actor), &end) {
			end = &CloseError{CloseForbidden, reasonTokenEnded}
		}
		s.shut(end)
	})
}

func (h *Handler) firstErrors(list gqlerror.List) gqlerror.List {
	return list[:min(len(list), h.cfg.Limits.Errors)]
}
