// Package proctest gives the tests of loops a runtime on the store that they
// open, and a clock that they move.
package proctest

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"tallyard/domain/es"
)

// Clock shows the time that the test sets.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock begins at a fixed moment.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

// Now implements es.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Move puts the clock forward.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Runtime is a runtime on a log.
func Runtime(t testing.TB, log es.Log, clock es.Clock, lists ...[]es.TypeDef) *es.Runtime {
	t.Helper()
	registry, err := es.NewRegistry(append([][]es.TypeDef{es.Types}, lists...)...)
	if err != nil {
		t.Fatal(err)
	}
	return &es.Runtime{
		Log: log, Registry: registry, Clock: clock, IDs: es.RandomIDs{},
		NameKey: []byte("a key for tests"), Refusals: es.NewRefusals(),
		Logger: slog.New(slog.DiscardHandler),
	}
}

// Eventually waits until a condition holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("did not come about: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
