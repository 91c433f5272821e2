package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// term is one time as the leader: it keeps the live generation up to date and
// carries out what is asked for, one thing after the other.
type term struct {
	*core
	reader *Reader // may be nil
	end    context.CancelCauseFunc
	flows  sync.WaitGroup
	live   atomic.Pointer[flow]
	// beside is the generation that is built beside the live one, for those who watch.
	beside atomic.Pointer[flow]
	gauges *atomic.Pointer[[]Gauge]
	// tries counts failed attempts at requests.
	tries map[uuid.UUID]int
}

// run leads until ctx ends or a flow needs a fresh start.
func (t *term) run(ctx context.Context) error {
	ctx, t.end = context.WithCancelCause(ctx)
	defer func() {
		t.end(nil)
		t.flows.Wait()
		if t.reader != nil {
			t.reader.progress.indirect()
		}
	}()
	t.flows.Go(func() { t.watch(ctx) })
	err := t.work(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return err
}

func (t *term) work(ctx context.Context) error {
	list, err := t.generations(ctx)
	if err != nil {
		return err
	}
	if err := t.checkStore(list); err != nil {
		return err
	}
	t.tidy(ctx, list, true)
	if err := t.forget(ctx); err != nil {
		return err
	}
	var started *generation
	for _, g := range list {
		if g.digest != t.set.digest {
			continue
		}
		switch g.state {
		case live:
			t.adopt(t.start(ctx, g))
		case building:
			started = &g
		}
	}
	if started != nil || t.live.Load() == nil {
		// Without a generation of our tables nothing can be read: first things first.
		if err := t.build(ctx, started); err != nil {
			return err
		}
	}
	for {
		if err := t.serve(ctx); err != nil {
			return err
		}
		if err := sleep(ctx, t.times.Look); err != nil {
			return err
		}
		if list, err := t.generations(ctx); err == nil {
			t.tidy(ctx, list, false)
		}
	}
}

// start follows the log into a generation until the term ends.
func (t *term) start(ctx context.Context, g generation) *flow {
	f := newFlow(t.core, g)
	ctx, f.cancel = context.WithCancel(ctx)
	t.flows.Go(func() {
		if err := f.run(ctx); err != nil && ctx.Err() == nil {
			t.logger.WarnContext(ctx, "projecting starts afresh", "generation", g.id, "error", err)
			t.end(err)
		}
	})
	return f
}

// stop ends a flow.
func (t *term) stop(f *flow) {
	f.publish.Store(nil)
	f.cancel()
	<-f.done
}

// adopt makes a flow the one whose progress is told.
func (t *term) adopt(f *flow) {
	t.live.Store(f)
	if t.reader != nil {
		f.publish.Store(t.reader.progress)
	}
}

// build makes a generation, or goes on with one that was begun, and makes it live.
func (t *term) build(ctx context.Context, g *generation) error {
	if g == nil {
		created, err := t.create(ctx, building)
		if err != nil {
			return err
		}
		g = &created
	}
	f := t.start(ctx, *g)
	t.beside.Store(f)
	defer t.beside.Store(nil)
	err := t.flip(ctx, f)
	if err != nil {
		// What was built stays: the next attempt goes on with it.
		t.stop(f)
	}
	return err
}

// flip waits until a generation has caught up and moves the pointer to it. The
// live one stands still for that moment, so that no reader sees time go back.
func (t *term) flip(ctx context.Context, f *flow) error {
	select {
	case <-f.caught:
	case <-f.done:
		return errors.New("building ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := t.index(ctx, f); err != nil {
		return err
	}
	if err := t.analyze(ctx, f.gen); err != nil {
		return err
	}
	old := t.live.Load()
	if old != nil {
		// As near as it gets while both run, so that the pause is short.
		if err := f.reach(ctx, old.slowest(), false); err != nil {
			return err
		}
		at, err := old.hold(ctx)
		if err != nil {
			return err
		}
		err = f.reach(ctx, at, false)
		if err == nil {
			err = notBehind(f.view.Load(), old.view.Load())
		}
		if err != nil {
			return errors.Join(err, old.release(ctx))
		}
	}
	if err := f.store(ctx); err != nil {
		if old != nil {
			err = errors.Join(err, old.release(ctx))
		}
		return err
	}
	if err := t.makeLive(ctx, f.gen); err != nil {
		// It may have happened all the same: only a new term knows.
		t.end(err)
		return err
	}
	if old != nil {
		t.stop(old)
	}
	t.adopt(f)
	_ = f.do(ctx, f.show) // it fails only when the term ends
	return nil
}

// notBehind refuses a generation in which a projection halted before the point
// that the live one has reached.
func notBehind(fresh, current *view) error {
	for name, reason := range fresh.halted {
		if fresh.at[name] < current.at[name] {
			return final{fmt.Errorf("projection %s halted before it was where the live one is: %s", name, reason)}
		}
	}
	return nil
}

// analyze tells the planner about the new tables before they are read.
func (t *term) analyze(ctx context.Context, g generation) error {
	tables, err := t.tables(ctx, g.schema())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for _, table := range tables {
		if _, err := t.db.Exec(ctx, "ANALYZE "+g.schema()+"."+quote(table)); err != nil {
			return fmt.Errorf("analyze %s: %w", table, err)
		}
	}
	return nil
}
