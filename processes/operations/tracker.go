package operations

import (
	"context"
	"sync"
	"time"

	"tallyard/domain/operation"
)

// tracker takes the reports of the work, writes a sample now and then, and
// ends work that makes no progress.
type tracker struct {
	j    *job
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	now   Progress
	moved time.Time // when it last changed
}

func newTracker(j *job) *tracker {
	t := &tracker{j: j, stop: make(chan struct{}), done: make(chan struct{}), moved: time.Now()}
	go t.sample()
	return t
}

// report takes how far the work is; it is called often and returns at once.
func (t *tracker) report(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p != t.now {
		t.now, t.moved = p, time.Now()
	}
}

func (t *tracker) look() (Progress, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now, t.moved
}

// end ends the sampling and gives how far the work came. The last sample is
// written, so that who looks before the end is projected sees all of it.
func (t *tracker) end(ctx context.Context) operation.Amount {
	close(t.stop)
	<-t.done
	p, _ := t.look()
	t.write(ctx, p)
	return operation.Amount{DoneBytes: p.DoneBytes, TotalBytes: p.TotalBytes}
}

func (t *tracker) sample() {
	defer close(t.done)
	tick := time.NewTicker(t.j.w.Sample)
	defer tick.Stop()
	var written Progress
	for {
		select {
		case <-t.stop:
			return
		case <-tick.C:
			p, moved := t.look()
			if time.Since(moved) > t.j.w.Stall {
				t.j.cancel(errStalled)
			}
			if p != written {
				t.write(context.Background(), p)
				written = p
			}
		}
	}
}

// write keeps a sample; one that is lost is replaced by the next.
func (t *tracker) write(ctx context.Context, p Progress) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := t.j.w.Samples.Record(ctx, t.j.ref, p); err != nil && ctx.Err() == nil {
		t.j.logger.WarnContext(ctx, "progress not written", "error", err)
	}
}
