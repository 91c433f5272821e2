package runner

import (
	"context"
	"sync"
	"time"

	"tallyard/domain/es"
)

// progress is how far the live generation is, as this process knows it. The
// projecting process tells it directly; in others those who wait look into
// Postgres, one for all of them.
type progress struct {
	mu      sync.Mutex
	gen     int32
	at      map[string]es.Position
	direct  bool
	looked  time.Time
	changed chan struct{}

	looking sync.Mutex
}

func newProgress() *progress {
	return &progress{at: map[string]es.Position{}, changed: make(chan struct{})}
}

// set takes over a newer state and wakes those who wait. at is not changed afterwards.
func (p *progress) set(gen int32, at map[string]es.Position, direct bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !direct {
		if p.direct {
			return // what was read is older than what was told
		}
		p.looked = time.Now()
	}
	p.direct = direct
	moved := gen != p.gen
	for name, pos := range at {
		moved = moved || pos != p.at[name]
	}
	p.gen, p.at = gen, at
	if moved {
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// indirect says that this process projects no longer.
func (p *progress) indirect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.direct = false
}

func (p *progress) get() (at map[string]es.Position, direct bool, looked time.Time, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at, p.direct, p.looked, p.changed
}

// wait returns when ok says so of the positions, looking at least every so
// often in processes that are not told.
func (p *progress) wait(ctx context.Context, every time.Duration, look func(context.Context) error, ok func(map[string]es.Position) bool) error {
	for {
		at, direct, looked, changed := p.get()
		if ok(at) {
			return nil
		}
		if !direct && time.Since(looked) >= every && p.looking.TryLock() {
			err := look(ctx)
			p.looking.Unlock()
			if err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				// Postgres or the generation is not there now; it comes back.
				if err := sleep(ctx, 10*every); err != nil {
					return err
				}
			}
			continue
		}
		// Also when told: the one who tells may cease to.
		pause := every
		if direct {
			pause = time.Second
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-changed:
		case <-t.C:
		}
		t.Stop()
	}
}
