package eventstore

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"tallyard/domain/es"
)

// attemptTimeout is the most that one attempt of a call may take. It is shorter
// than a whole call, so that a connection that went silent leaves time for an
// attempt over another.
const attemptTimeout = 4 * time.Second

// guard runs a piece of client code and turns its panic into an error: the
// client panics on answers that it doesn't know.
func guard[T any](l *Log, f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.logger.Error("the event store's client panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	return f()
}

// pending is a call on its way, between the goroutine that makes it and the
// caller, who may stop waiting.
type pending[T any] struct {
	mu        sync.Mutex
	finished  bool
	abandoned bool
	stuck     *time.Timer
	done      chan struct{} // closed when finished
	value     T
	err       error
}

// use calls the client of a session in a goroutine of its own, under ctx, and
// stops waiting when wait ends, even if the client doesn't come back. The
// session is left when the call is over, but if keep is set and the call
// succeeded: then the caller goes on using it and must leave it.
func use[T any](wait, ctx context.Context, s *session, keep bool, f func(context.Context, *esdb.Client) (T, error)) (T, error) {
	var zero T
	entered, pass, ok := s.enter(ctx)
	if !ok {
		return zero, fmt.Errorf("%w: the connection is being replaced", es.ErrUnavailable)
	}
	p := &pending[T]{done: make(chan struct{})}
	// The goroutine ends with the call; closing the log waits for it, since it
	// holds the session.
	go func() {
		v, err := guard(s.log, func() (T, error) { return f(entered, s.client) })
		pass()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.abandoned {
			p.stuck.Stop()
		}
		if p.abandoned || !keep || err != nil {
			s.leave()
		}
		p.finished, p.value, p.err = true, v, err
		close(p.done)
	}()
	select {
	case <-p.done:
		return p.value, p.err
	case <-wait.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished { // in this very moment
		return p.value, p.err
	}
	p.abandoned = true
	p.stuck = time.AfterFunc(stuckAfter, func() { s.retire("a call ignores the end of its time") })
	return zero, wait.Err()
}

// call makes a call until it succeeds, fails for good, or its time is over.
// attempt counts from 0.
func call[T any](ctx context.Context, l *Log, f func(ctx context.Context, c *esdb.Client, attempt int) (T, error)) (T, error) {
	var zero T
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	wait := newBackoff(20*time.Millisecond, 500*time.Millisecond)
	var last error
	for attempt := 0; ; attempt++ {
		v, c, err := once(ctx, l, func(ctx context.Context, c *esdb.Client) (T, error) { return f(ctx, c, attempt) })
		if err == nil {
			return v, nil
		}
		if c == final {
			return zero, err
		}
		if l.base.Err() != nil {
			return zero, errClosed
		}
		if last == nil || ctx.Err() == nil {
			last = err // the end of the context says less than what came before it
		}
		if !wait.sleep(ctx) {
			return zero, outOfTime(ctx, last)
		}
	}
}

// once makes one attempt of a call and retires the session if it was to blame.
func once[T any](ctx context.Context, l *Log, f func(context.Context, *esdb.Client) (T, error)) (T, class, error) {
	var zero T
	s, err := l.session(ctx)
	if err != nil {
		return zero, again, err
	}
	actx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	v, err := use(actx, actx, s, false, f)
	if err == nil {
		return v, final, nil
	}
	c, err := classify(err)
	if c == again && actx.Err() != nil && ctx.Err() == nil {
		c = renew // the server did not answer in time, though the caller still waits
	}
	if c == renew && ctx.Err() == nil {
		s.retire(err.Error())
	}
	return zero, c, err
}

// outOfTime is the error of a call whose time was over before it succeeded.
func outOfTime(ctx context.Context, last error) error {
	err := context.Cause(ctx)
	if err == nil {
		err = context.DeadlineExceeded
	}
	if last == nil || errors.Is(last, err) {
		return fmt.Errorf("%w: %w", es.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w; last attempt: %w", es.ErrUnavailable, err, last)
}
