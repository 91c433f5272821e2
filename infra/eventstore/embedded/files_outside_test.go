package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// badTarget breaks everything behind so many operations on a directory.
type badTarget struct {
	dir   string
	err   error
	after atomic.Int64
	met   atomic.Int64
}

func (b *badTarget) MaybeError(op errorfs.Op) error {
	if !strings.HasPrefix(op.Path, b.dir) || op.Kind == errorfs.OpRemoveAll || op.Kind == errorfs.OpStat {
		return nil
	}
	if b.after.Add(-1) >= 0 {
		return nil
	}
	b.met.Add(1)
	return b.err
}

func (b *badTarget) String() string { return "bad target" }

// Whatever goes wrong where a backup is written ends the backup and nothing
// else: the store neither waits for room over there nor fails.
func TestBadBackupTargetLeavesTheStoreAlone(t *testing.T) {
	for name, kind := range map[string]error{"full": errNoSpace, "broken": fmt.Errorf("write: %w", syscall.EIO)} {
		t.Run(name, func(t *testing.T) {
			target := &badTarget{dir: "/target", err: kind}
			s := newTestStore(t, memOptions(errorfs.Wrap(newMemFS(t), target)))
			defer abandon(t, s)
			fillSample(t, s)
			for n := int64(0); ; n++ {
				if n > 500 {
					t.Fatal("the backup never succeeds")
				}
				target.after.Store(n)
				before := target.met.Load()
				done := make(chan error, 1)
				go func() { done <- s.checkpoint(context.Background(), "/target/backup") }()
				var err error
				select {
				case err = <-done:
				case <-time.After(5 * time.Second):
					t.Fatalf("operation %d: the backup hangs", n)
				}
				put(t, s, "meanwhile", expectation{}, 1)
				if s.failure() != nil || s.files.waiting.Load() > 0 {
					t.Fatalf("operation %d: the store failed with the backup: %v", n, s.failure())
				}
				if target.met.Load() == before {
					// The memory file system knows no mode to set.
					if err != nil && !errors.Is(err, os.ErrNotExist) {
						t.Fatal(err)
					}
					return
				}
				if err == nil {
					t.Fatalf("operation %d failed and the backup did not", n)
				}
			}
		})
	}
}

// slowTarget holds the first write to a directory until it is let go.
type slowTarget struct {
	dir     string
	reached chan struct{}
	release chan struct{}
	held    atomic.Bool
}

func (b *slowTarget) MaybeError(op errorfs.Op) error {
	if op.Kind == errorfs.OpFileWrite && strings.HasPrefix(op.Path, b.dir) && b.held.CompareAndSwap(false, true) {
		close(b.reached)
		<-b.release
	}
	return nil
}

func (b *slowTarget) String() string { return "slow target" }

// A backup that nobody wants any more ends between two writes.
func TestCancelledBackupEnds(t *testing.T) {
	target := &slowTarget{dir: "/target", reached: make(chan struct{}), release: make(chan struct{})}
	s := newTestStore(t, memOptions(errorfs.Wrap(newMemFS(t), target)))
	defer abandon(t, s)
	fillSample(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.checkpoint(ctx, "/target/backup") }()
	<-target.reached
	cancel()
	close(target.release)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("the backup: %v", err)
	}
	if _, err := s.opt.fs.Stat("/target/backup"); err == nil {
		t.Error("what was begun is still there")
	}
	put(t, s, "after", expectation{}, 1)
}
