package embedded

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Names of services in the methods of calls.
const servicePersistent = "event_store.client.persistent_subscriptions.PersistentSubscriptions"

// serviceOf names the service of a full method, /service/method.
func serviceOf(method string) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service
}

// stopped is the answer to a call that comes or is still open when the server stops.
func (s *Server) stopped() error {
	return status.Error(codes.Unavailable, errStopping.Error())
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// admit decides whether a call may begin, and tells its handler who makes it.
func (f *front) admit(ctx context.Context, set trailerSetter, method string) (context.Context, error) {
	if f.server.isStopping() {
		return nil, f.server.stopped()
	}
	who := owner
	if f.users != nil {
		var err error
		if who, err = f.users.authenticate(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.checkLeader(ctx, set, method); err != nil {
		return nil, err
	}
	if err := checkOperation(set, who, method); err != nil {
		return nil, err
	}
	return withPrincipal(ctx, who), nil
}

// guardUnary admits a call, and turns a panic into an error: one broken call
// must not take the whole program down.
func (f *front) guardUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (resp any, err error) {
	ctx, err = f.admit(ctx, unaryTrailer(ctx), info.FullMethod)
	if err != nil {
		return nil, err
	}
	defer f.server.recoverInto(info.FullMethod, &err)
	return handle(ctx, req)
}

// guardStream is guardUnary for streaming calls.
func (f *front) guardStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	ctx, err := f.admit(stream.Context(), streamTrailer(stream), info.FullMethod)
	if err != nil {
		if info.IsClientStream {
			f.drain(stream, info.IsServerStream)
		}
		return err
	}
	defer f.server.recoverInto(info.FullMethod, &err)
	return handle(srv, &admitted{ServerStream: stream, ctx: ctx})
}

// admitted is a streaming call of which it is known who makes it.
type admitted struct {
	grpc.ServerStream
	ctx context.Context
}

// Context tells who makes the call, too.
func (a *admitted) Context() context.Context { return a.ctx }

// drainTime bounds how long a client may take to send what is refused anyway.
const drainTime = 10 * time.Second

// drain reads a refused request before the answer is given: a client that is
// answered while it still sends sees its own send fail and never the answer. It
// reads to the end, or where messages go both ways the first one alone, since
// behind that a client may wait for an answer.
func (f *front) drain(stream grpc.ServerStream, first bool) {
	drained := make(chan struct{})
	go func() { // ends with the call, if not before
		defer close(drained)
		for stream.RecvMsg(&emptypb.Empty{}) == nil && !first {
		}
	}()
	late := time.NewTimer(drainTime)
	defer late.Stop()
	select {
	case <-drained:
	case <-late.C:
	case <-f.server.stopping:
	}
}

func (s *Server) recoverInto(method string, err *error) {
	if p := recover(); p != nil {
		s.logger.Error("a call to the event store panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "internal error of the event store")
	}
}
