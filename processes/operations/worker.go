package operations

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/operation"
	"tallyard/processes/lifecycle"
)

// Name is the worker's name; it is the actor of what it appends.
const Name = "operations"

// hintsKept bounds the hints that wait; losing one costs a poll's time.
const hintsKept = 64

// soonFor is how long after a hint the worker looks often: the read model that
// it asks is a moment behind the event that the hint came from.
const soonFor = 2 * time.Second

// Worker carries out operations. Only the goroutine of Run touches running.
type Worker struct {
	Config
	rt     *es.Runtime
	hints  chan Ref
	ended  chan Ref
	logger *slog.Logger

	running map[Ref]*job
	// specs remembers owner and work of pending operations, which never change.
	specs map[Ref]operation.Spec

	mu     sync.Mutex
	status lifecycle.Status
}

// New makes a worker.
func New(c Config) *Worker {
	c = c.filled()
	return &Worker{
		Config: c, rt: c.Operations.Runtime, logger: c.Logger.With("process", Name),
		hints: make(chan Ref, hintsKept), ended: make(chan Ref),
		status: lifecycle.Status{Name: Name, Condition: lifecycle.Waiting},
	}
}

// Name implements lifecycle.Runner.
func (w *Worker) Name() string { return Name }

// Status implements lifecycle.Runner.
func (w *Worker) Status() lifecycle.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// Run implements lifecycle.Runner. When ctx ends, running work is interrupted
// and left as RUNNING in the log: the next worker goes on with it.
func (w *Worker) Run(ctx context.Context) error {
	w.running, w.specs = map[Ref]*job{}, map[Ref]operation.Spec{}
	w.is(lifecycle.Starting, "")
	defer w.is(lifecycle.Waiting, "")
	defer w.waitForAll()
	var following sync.WaitGroup
	following.Go(func() { w.follow(ctx) })
	defer following.Wait()

	timer := time.NewTimer(0)
	defer timer.Stop()
	var soonUntil time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case ref := <-w.ended:
			w.forget(ref)
			timer.Reset(0)
		case ref := <-w.hints:
			soonUntil = time.Now().Add(soonFor)
			w.look(ctx, ref)
			timer.Reset(0)
		case <-timer.C:
			w.round(ctx)
			if time.Now().Before(soonUntil) {
				timer.Reset(w.Soon)
			} else {
				timer.Reset(w.Poll)
			}
		}
	}
}

// round looks at what is to be done and at what runs.
func (w *Worker) round(ctx context.Context) {
	for ref := range w.running {
		w.look(ctx, ref)
	}
	pending, err := w.Pending(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.failed(ctx, "ask what is to be done", err)
		}
		return
	}
	if err := w.startDue(ctx, pending); err != nil {
		if ctx.Err() == nil {
			w.failed(ctx, "start operations", err)
		}
		return
	}
	w.is(lifecycle.Ready, "")
}

// look cancels a running operation when its owner asked for that.
func (w *Worker) look(ctx context.Context, ref Ref) {
	j, ok := w.running[ref]
	if !ok {
		return
	}
	s, err := w.Operations.Load(ctx, ref.Tenant, ref.ID)
	if err != nil {
		return // the next round looks again
	}
	if s.CancelRequested {
		j.cancel(errCancelled)
	}
}

// startDue starts what may run now, in order.
func (w *Worker) startDue(ctx context.Context, pending []Ref) error {
	busy := map[owner]bool{}
	for ref := range w.running {
		if s := w.specs[ref]; s.Work.Kind.Ordered() {
			busy[owner{ref.Tenant, s.Owner}] = true
		}
	}
	for _, ref := range pending {
		if len(w.running) >= w.Most {
			return nil
		}
		if _, runs := w.running[ref]; runs {
			continue
		}
		spec, known := w.specs[ref]
		if known && spec.Work.Kind.Ordered() && busy[owner{ref.Tenant, spec.Owner}] {
			continue
		}
		s, err := w.Operations.Load(ctx, ref.Tenant, ref.ID)
		if err != nil {
			return err
		}
		if s.Status != operation.Queued && s.Status != operation.Running {
			continue // the read model is behind
		}
		w.specs[ref] = s.Spec()
		who := owner{ref.Tenant, s.Owner}
		if s.Work.Kind.Ordered() {
			if busy[who] {
				continue
			}
			busy[who] = true
		}
		w.start(ctx, ref)
	}
	w.trim(pending)
	return nil
}

type owner struct{ tenant, user uuid.UUID }

// trim forgets the specs of what is pending no more.
func (w *Worker) trim(pending []Ref) {
	if len(w.specs) < 2*len(pending)+100 {
		return
	}
	keep := make(map[Ref]operation.Spec, len(pending))
	for _, ref := range pending {
		if s, ok := w.specs[ref]; ok {
			keep[ref] = s
		}
	}
	for ref := range w.running {
		keep[ref] = w.specs[ref]
	}
	w.specs = keep
}

// start gives an operation its goroutine; the worker waits for it in forget or
// waitForAll.
func (w *Worker) start(ctx context.Context, ref Ref) {
	work, cancel := context.WithCancelCause(ctx)
	j := &job{w: w, ref: ref, cancel: cancel, logger: w.logger.With("operation", ref.ID)}
	w.running[ref] = j
	go func() {
		defer func() { w.ended <- ref }()
		defer cancel(nil)
		defer func() {
			// A mistake in one job must not end the program that serves everybody
			// else. The operation is taken up again, after a pause.
			if p := recover(); p != nil {
				w.failed(ctx, "operation "+ref.ID.String(), fmt.Errorf("panic: %v", p))
				_ = w.Pause.Wait(ctx, 8) // it ends early with ctx, as it should
			}
		}()
		j.run(ctx, work)
	}()
}

func (w *Worker) forget(ref Ref) {
	delete(w.running, ref)
	w.mu.Lock()
	w.status.Handled++
	w.mu.Unlock()
}

// waitForAll is the end: contexts are over, what runs returns soon.
func (w *Worker) waitForAll() {
	for len(w.running) > 0 {
		w.forget(<-w.ended)
	}
}

func (w *Worker) is(c lifecycle.Condition, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status.Condition != c {
		w.status.Since = w.rt.Now()
	}
	w.status.Condition, w.status.Detail = c, detail
}

func (w *Worker) failed(ctx context.Context, what string, err error) {
	w.is(lifecycle.Retrying, what+": "+err.Error())
	w.mu.Lock()
	w.status.Retries++
	w.mu.Unlock()
	w.logger.ErrorContext(ctx, "a step failed and is tried again", "step", what, "error", err)
}
