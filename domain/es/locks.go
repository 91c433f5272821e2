package es

import (
	"context"
	"sync"
)

// keyedLocks lets one command at a time work on a stream inside this process,
// so that a rush on one aggregate queues here instead of burning its retries
// on conflicts with itself. Between processes the expected revision decides.
type keyedLocks struct {
	mu   sync.Mutex
	held map[string]*keyedLock
}

type keyedLock struct {
	slot    chan struct{}
	waiters int
}

// lock waits for the key and returns its release.
func (l *keyedLocks) lock(ctx context.Context, key string) (func(), error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*keyedLock{}
	}
	k := l.held[key]
	if k == nil {
		k = &keyedLock{slot: make(chan struct{}, 1)}
		l.held[key] = k
	}
	k.waiters++
	l.mu.Unlock()

	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.waiters--; k.waiters == 0 {
			delete(l.held, key)
		}
	}
	select {
	case k.slot <- struct{}{}:
		return func() { <-k.slot; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
