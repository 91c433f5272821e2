package es

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Snapshots keeps throw-away copies of folded states, so that long streams
// load fast. Losing one costs time only.
type Snapshots interface {
	// Load gives the newest snapshot of a stream made by the same fold.
	Load(ctx context.Context, stream string, fold int) (Revision, []byte, bool, error)
	// Save keeps a snapshot.
	Save(ctx context.Context, stream string, revision Revision, fold int, state []byte) error
}

// SnapshotEvery is how many events lie between two snapshots of a stream.
const SnapshotEvery = 200

// Runtime is what commands run on.
type Runtime struct {
	Log       Log
	Registry  *Registry
	Clock     Clock
	IDs       IDs
	Snapshots Snapshots // may be nil
	// NameKey is the secret of the names' streams, so that a stream's name does
	// not tell what it reserves.
	NameKey  []byte
	Logger   *slog.Logger
	Refusals *Refusals // may be nil: nothing is recorded

	locks keyedLocks
	cache stateCache
}

// Now is the time in the precision that events carry.
func (rt *Runtime) Now() time.Time { return rt.Clock.Now().UTC().Truncate(time.Microsecond) }

// jitter waits a random time that grows with the attempt, at most 50 ms.
func jitter(ctx context.Context, attempt int) error {
	limit := min(time.Duration(1<<attempt)*time.Millisecond, 50*time.Millisecond)
	t := time.NewTimer(rand.N(limit) + time.Millisecond) //nolint:gosec // spreads retries, guards nothing
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
