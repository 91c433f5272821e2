package embedded

import (
	"context"
	"fmt"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

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

// guardUnary refuses calls while the server stops, and turns a panic into an
// error: one broken call must not take the whole program down.
func (s *Server) guardUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (resp any, err error) {
	if s.isStopping() {
		return nil, s.stopped()
	}
	defer s.recoverInto(info.FullMethod, &err)
	return handle(ctx, req)
}

// guardStream is guardUnary for streaming calls.
func (s *Server) guardStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	if s.isStopping() {
		return s.stopped()
	}
	defer s.recoverInto(info.FullMethod, &err)
	return handle(srv, stream)
}

func (s *Server) recoverInto(method string, err *error) {
	if p := recover(); p != nil {
		s.logger.Error("a call to the event store panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "internal error of the event store")
	}
}
