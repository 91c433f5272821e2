package embedded

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// maxBackgroundFailures is how often in a row Pebble may fail to write its
	// tables, which it tries again at once, before the store gives up. With the
	// waits in between these are some fifteen seconds.
	maxBackgroundFailures = 12
	firstBackoff          = 50 * time.Millisecond
	maxBackoff            = 40 * firstBackoff
)

// background watches what Pebble does by itself: it writes what it has
// collected in memory into tables and merges those. Where that fails it tries
// again for ever, without a pause and a line in the log for each time, and once
// its memory is full no append returns any more.
type background struct {
	trap  *fatalTrap
	first time.Duration // the wait after the first failure

	mu       sync.Mutex
	ended    error // what the last flush or compaction that failed came to
	failures int   // in a row
	logged   time.Time
}

// listen tells Pebble to report. It calls these functions with its locks held.
func (b *background) listen(l *pebble.EventListener) {
	l.FlushEnd = func(i pebble.FlushInfo) { b.end(i.Err) }
	l.CompactionEnd = func(i pebble.CompactionInfo) { b.end(i.Err) }
	l.BackgroundError = b.failed
}

func (b *background) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended = err; err == nil {
		b.failures = 0
	}
}

// failed takes every error of the background. Writes of flushes and compactions
// count, others are only logged; the store has failed already when they met damage.
func (b *background) failed(err error) {
	b.mu.Lock()
	work := b.ended != nil && errors.Is(err, b.ended) && !pebble.IsCorruptionError(err)
	if work {
		b.failures++
	}
	failures := b.failures
	quiet := time.Since(b.logged) < time.Second
	if !quiet {
		b.logged = time.Now()
	}
	b.mu.Unlock()
	if !quiet {
		b.trap.logger.Error("the event store's files can't be written; trying again", "failures", failures, "error", err)
	}
	if work && failures >= maxBackgroundFailures {
		// An append may be held in Pebble until there is room in memory.
		b.trap.hold(fmt.Errorf("the event store's files can't be written: %w", err))
	}
}

// backoff is how long to wait before the next try.
func (b *background) backoff() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		return 0
	}
	return min(b.first<<(b.failures-1), maxBackoff)
}
