package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"tallyard/domain/es"
)

// flow brings one generation up to date and keeps it there. Everything in it
// belongs to the goroutine of run; others hand it functions through do.
type flow struct {
	*core
	gen    generation
	states []*state
	last   solid
	// seen is how far the log was looked at; limit is how far it may be
	// projected, which stops the flow at an exact place.
	seen, limit es.Position
	rest        *batch // behind the limit
	moved       time.Time

	cancel context.CancelFunc
	asked  chan func()
	caught chan struct{} // closed at the first turn to live
	done   chan struct{} // closed when run has returned
	view   atomic.Pointer[view]
	// publish hears every step once the generation is live; nil before.
	publish atomic.Pointer[progress]
}

// view is what others may see of a flow.
type view struct {
	at     map[string]es.Position
	halted map[string]string
	parked map[string]int
	// trouble is why nothing moves now, and since when.
	trouble string
	since   time.Time
}

const noLimit es.Position = math.MaxUint64

func newFlow(c *core, g generation) *flow {
	return &flow{
		core: c, gen: g, limit: noLimit,
		asked: make(chan func()), caught: make(chan struct{}), done: make(chan struct{}),
	}
}

// run follows the log until ctx ends or an error that a fresh start has to mend.
func (f *flow) run(ctx context.Context) error {
	defer close(f.done)
	var err error
	if f.states, f.last, err = f.loadStates(ctx, f.gen); err != nil {
		return fmt.Errorf("load checkpoints: %w", err)
	}
	if err := f.checkLog(ctx, f.last); err != nil {
		return err
	}
	f.seen = noLimit
	for _, st := range f.states {
		f.seen = min(f.seen, st.at)
	}
	f.show()

	ctx, cancel := context.WithCancelCause(ctx)
	batches := make(chan *batch)
	var feeder sync.WaitGroup
	feeder.Go(func() {
		if err := f.feed(ctx, f.seen, batches); err != nil {
			cancel(err)
		}
	})
	defer feeder.Wait()
	defer cancel(nil)
	for {
		if err := f.step(ctx, batches); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		}
	}
}

// step does the next thing there is to do.
func (f *flow) step(ctx context.Context, batches <-chan *batch) error {
	in := batches
	if f.rest != nil {
		if f.rest.items[0].rec.Position <= f.limit {
			b := f.rest
			f.rest = nil
			return f.take(ctx, b)
		}
		in = nil
	}
	var quiet <-chan time.Time
	if f.behind() {
		t := time.NewTimer(f.times.MoveIdle)
		defer t.Stop()
		quiet = t.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case fn := <-f.asked:
		fn()
		return nil
	case b := <-in:
		return f.take(ctx, b)
	case <-quiet:
		return f.move(ctx)
	}
}

// take projects a batch, or the part of it that lies before the limit.
func (f *flow) take(ctx context.Context, b *batch) error {
	if n := len(b.items); n > 0 && b.items[n-1].rec.Position > f.limit {
		cut := 0
		for cut < n && b.items[cut].rec.Position <= f.limit {
			cut++
		}
		f.rest = &batch{items: b.items[cut:], seen: b.seen, caughtUp: b.caughtUp}
		b = &batch{items: b.items[:cut]}
		if cut == 0 {
			return nil
		}
		b.seen = b.items[cut-1].rec.Position
	}
	b.seen = min(b.seen, f.limit)
	if err := f.apply(ctx, b); err != nil {
		return err
	}
	if time.Since(f.moved) >= f.times.MoveBusy && f.behind() {
		if err := f.move(ctx); err != nil {
			return err
		}
	}
	if b.caughtUp {
		select {
		case <-f.caught:
		default:
			close(f.caught)
		}
	}
	return nil
}

// behind tells whether a stored checkpoint is older than it could be.
func (f *flow) behind() bool {
	for _, st := range f.states {
		if st.stored < st.at {
			return true
		}
	}
	return false
}

// move stores the checkpoints of projections that had nothing to do, together.
func (f *flow) move(ctx context.Context) error {
	var states []*state
	for _, st := range f.states {
		if st.stored < st.at {
			states = append(states, st)
		}
	}
	f.moved = time.Now()
	if len(states) == 0 {
		return nil
	}
	return f.insist(ctx, "checkpoints", func(ctx context.Context) error {
		err := f.commit(ctx, states, nil)
		if err != nil {
			return err
		}
		for _, st := range states {
			st.stored = st.at
		}
		f.show()
		return nil
	})
}

// insist repeats what fails because Postgres can't do it now, for ever. Only
// the projector's own transactions go through it; they are safe to repeat.
func (f *flow) insist(ctx context.Context, who string, try func(context.Context) error) error {
	w := wait{f.times.Retry, f.times.RetryMost}
	for {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, f.times.Transaction)
			defer cancel()
			return try(ctx)
		}()
		var failed *transactionError
		if err == nil || !errors.As(err, &failed) || failed.kind != failurePassing {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f.metrics.BatchFailed(who, failed.kind.String())
		f.logger.WarnContext(ctx, "projecting failed, trying again", "generation", f.gen.id, "projection", who, "error", err)
		f.trouble(who + ": " + err.Error())
		if err := w.pause(ctx); err != nil {
			return err
		}
	}
}

// do runs fn between two batches, in the flow's goroutine.
func (f *flow) do(ctx context.Context, fn func()) error {
	ran := make(chan struct{})
	select {
	case f.asked <- func() { fn(); close(ran) }:
	case <-f.done:
		return errors.New("the projector has stopped")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-ran
	return nil
}

// hold stops the flow where it is and tells the place; until release.
func (f *flow) hold(ctx context.Context) (at es.Position, err error) {
	err = f.do(ctx, func() {
		f.limit = f.seen
		at = f.seen
	})
	return at, err
}

// release lets the flow go on.
func (f *flow) release(ctx context.Context) error {
	return f.do(ctx, func() { f.limit = noLimit })
}

// reach waits until the flow has done all that lies up to p. With exact it
// goes no further: it stays held there.
func (f *flow) reach(ctx context.Context, p es.Position, exact bool) error {
	for {
		var at es.Position
		err := f.do(ctx, func() {
			if exact {
				f.limit = p
			}
			at = f.seen
		})
		if err != nil || at >= p {
			return err
		}
		// Nothing may lie between the two: p can be a checkpoint behind the last event.
		between := false
		for rec, err := range f.log.ReadAll(ctx, at, es.Forward, 1) {
			if err != nil {
				return err
			}
			between = rec.Position <= p
		}
		if !between {
			return nil
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// store brings all checkpoints in Postgres to where the projections are.
func (f *flow) store(ctx context.Context) error {
	var err error
	if doErr := f.do(ctx, func() { err = f.move(ctx) }); doErr != nil {
		return doErr
	}
	return err
}
