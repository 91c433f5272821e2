package embedded

import "sync"

// broadcast wakes everybody who waits for something new, any number of them,
// without knowing who they are and without ever blocking the one that wakes.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

func newBroadcast() *broadcast { return &broadcast{ch: make(chan struct{})} }

// next is closed by the next wake. Take it before looking whether there is
// something new, so that no wake is missed in between.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
}

// wake closes the channels that next gave out.
func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ch)
	b.ch = make(chan struct{})
}
