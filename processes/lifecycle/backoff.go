package lifecycle

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a pause that doubles with every try and is spread at random.
// The zero value goes from 100 ms to 30 s.
type Backoff struct{ Min, Max time.Duration }

// Wait pauses before try number n+1, n counted from 1; it ends early, with the
// context's error, when ctx does.
func (b Backoff) Wait(ctx context.Context, n int) error {
	t := time.NewTimer(b.after(n))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (b Backoff) after(n int) time.Duration {
	shortest, longest := b.Min, b.Max
	if shortest <= 0 {
		shortest = 100 * time.Millisecond
	}
	if longest < shortest {
		longest = max(shortest, 30*time.Second)
	}
	d := min(shortest<<min(n-1, 20), longest)
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreads retries, guards nothing
}
