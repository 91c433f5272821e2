package files

import (
	"context"
	"sync"
	"time"
)

// MinCopyRate is the lowest limit of copies, in bytes a second: below it a copy
// would look as if it stood still.
const MinCopyRate = 1 << 10

// rate limits how many bytes a second all copies of a store read together. The
// nil rate does not limit.
type rate struct {
	perSecond int64

	mu   sync.Mutex
	free time.Time // when everything that was read until now is paid for
}

func newRate(perSecond int64) *rate {
	if perSecond == 0 {
		return nil
	}
	return &rate{perSecond: perSecond}
}

// block is how much a copy reads at once: a quarter of a second's share, so
// that a slow copy still tells how far it is and ends soon when it is cancelled.
func (r *rate) block() int64 {
	if r == nil {
		return copyBuffer
	}
	return min(copyBuffer, r.perSecond/4)
}

// pay waits until n bytes more may have been read.
func (r *rate) pay(ctx context.Context, n int) error {
	if r == nil {
		return nil
	}
	wait := time.NewTimer(r.owe(n, time.Now()))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// owe notes n bytes and tells how long it is until they are paid for. Time that
// nobody used is not saved up.
func (r *rate) owe(n int, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.free.Before(now) {
		r.free = now
	}
	r.free = r.free.Add(time.Duration(float64(n) / float64(r.perSecond) * float64(time.Second)))
	return r.free.Sub(now)
}
