package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Loop makes a Service of a Runner. A Runner that returns by itself, which it
// should not, is started again after a pause that grows.
type Loop struct {
	runner Runner
	logger *slog.Logger
	pause  Backoff

	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}
}

// NewLoop makes a service of a runner.
func NewLoop(runner Runner, logger *slog.Logger) *Loop {
	return &Loop{runner: runner, logger: logger.With("loop", runner.Name())}
}

// Name implements Service.
func (l *Loop) Name() string { return l.runner.Name() }

// Status is the runner's.
func (l *Loop) Status() Status { return l.runner.Status() }

// Start implements Service. It does not wait for readiness: Status tells that.
func (l *Loop) Start(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		return errors.New("started twice")
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel, l.done = cancel, make(chan struct{})
	go l.keepRunning(ctx, l.done)
	return nil
}

// Stop implements Service.
func (l *Loop) Stop(ctx context.Context) error {
	l.mu.Lock()
	cancel, done := l.cancel, l.done
	l.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("still running: %w", context.Cause(ctx))
	}
}

func (l *Loop) keepRunning(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	for tries := 1; ; tries++ {
		began := time.Now()
		err := guarded(ctx, l.runner)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			tries = 1
		}
		l.logger.Error("loop ended by itself; starting it again", "error", err)
		if l.pause.Wait(ctx, tries) != nil {
			return
		}
	}
}

// guarded turns a panic of a loop into its error: one faulty loop must not end
// the program that serves everybody else.
func guarded(ctx context.Context, r Runner) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in %s: %v\n%s", r.Name(), p, debug.Stack())
		}
	}()
	return r.Run(ctx)
}
