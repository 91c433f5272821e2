package eventstore

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff spaces attempts: each pause is longer, up to a limit, with jitter so
// that many clients of a restarted server don't come all at once.
type backoff struct {
	first, limit time.Duration
	next         time.Duration
	announced    time.Time
}

// announceEvery is how often a failure that goes on is logged.
const announceEvery = 30 * time.Second

func newBackoff(first, limit time.Duration) *backoff {
	return &backoff{first: first, limit: limit, next: first}
}

// sleep pauses and tells whether the context still lasts.
func (b *backoff) sleep(ctx context.Context) bool {
	d := b.next/2 + rand.N(b.next/2+1) //nolint:gosec // G404: jitter guards nothing
	b.next = min(b.next*2, b.limit)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *backoff) reset() {
	b.next = b.first
	b.announced = time.Time{}
}

// announce tells whether it is time to log that it still doesn't work.
func (b *backoff) announce() bool {
	if now := time.Now(); now.Sub(b.announced) >= announceEvery {
		b.announced = now
		return true
	}
	return false
}
