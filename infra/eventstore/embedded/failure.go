package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// fatalTrap is the logger that Pebble gets. Pebble calls Fatalf when it can't
// go on, for one when a sync of the write-ahead log fails, and counts on it not
// to return: if it did, the write would be acknowledged although it may not be
// on disk. Ending the process is not ours to decide, so the trap keeps the
// cause, tells everybody, and holds the calling goroutine for ever.
type fatalTrap struct {
	logger *slog.Logger
	sprung chan struct{}
	once   sync.Once
	mu     sync.Mutex
	err    error
	// held is closed when a goroutine will never come back from Pebble, and may
	// have taken its locks along.
	held     chan struct{}
	heldOnce sync.Once
}

func newFatalTrap(logger *slog.Logger) *fatalTrap {
	return &fatalTrap{logger: logger, sprung: make(chan struct{}), held: make(chan struct{})}
}

// Infof drops Pebble's chatter about flushes and compactions below debug level.
func (t *fatalTrap) Infof(format string, args ...any) {
	if t.logger.Enabled(context.Background(), slog.LevelDebug) {
		t.logger.Debug("event store files", "message", fmt.Sprintf(format, args...))
	}
}

// Errorf logs what Pebble found wrong but can live with.
func (t *fatalTrap) Errorf(format string, args ...any) {
	t.logger.Error("event store files", "message", fmt.Sprintf(format, args...))
}

// Fatalf marks the store failed. It never returns.
func (t *fatalTrap) Fatalf(format string, args ...any) {
	t.hold(fmt.Errorf(format, args...))
	select {}
}

// hold is spring where a goroutine will never come back from Pebble.
func (t *fatalTrap) hold(err error) {
	t.spring(err)
	t.heldOnce.Do(func() { close(t.held) })
}

// holds tells whether a goroutine is held inside Pebble.
func (t *fatalTrap) holds() bool {
	select {
	case <-t.held:
		return true
	default:
		return false
	}
}

// spring marks the store failed; the first cause counts.
func (t *fatalTrap) spring(err error) {
	t.once.Do(func() {
		t.mu.Lock()
		t.err = err
		t.mu.Unlock()
		t.logger.Error("the event store has failed: no more writes until the program is restarted", "error", err)
		close(t.sprung)
	})
}

// guardGrace is how long a failed call into Pebble may take to come back.
const guardGrace = 100 * time.Millisecond

// guard calls into Pebble where that may end in Fatalf, which holds the calling
// goroutine for ever, or in a panic, which some errors of the file system are
// to Pebble. Both come back as an error here, and the store has failed.
func (t *fatalTrap) guard(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				t.hold(fmt.Errorf("the event store's files: %v", p))
				done <- t.cause()
			}
		}()
		done <- f()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.held:
	}
	// It may come back with an error that says more.
	grace := time.NewTimer(guardGrace)
	defer grace.Stop()
	select {
	case err := <-done:
		if err != nil && !errors.Is(err, t.cause()) {
			return errors.Join(t.cause(), err)
		}
		return t.cause()
	case <-grace.C:
		return t.cause()
	}
}

func (t *fatalTrap) cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
