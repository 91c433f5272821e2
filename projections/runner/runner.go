package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
)

// Runner projects, in the process that leads. It is started and stopped once.
type Runner struct {
	*core
	cfg    Config
	cancel context.CancelFunc
	wg     sync.WaitGroup
	ready  chan struct{}
	term   atomic.Pointer[term]
	gauges atomic.Pointer[[]Gauge]
}

func (cfg Config) core() *core {
	c := &core{
		db: cfg.DB, log: cfg.Log, registry: cfg.Registry, set: cfg.Set, store: cfg.Store,
		logger: cfg.Logger, metrics: cfg.Metrics, times: cfg.Times.filled(),
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	if c.metrics == nil {
		c.metrics = noMetrics{}
	}
	return c
}

// New makes a runner.
func New(cfg Config) (*Runner, error) {
	switch {
	case cfg.DB == nil || cfg.Log == nil || cfg.Registry == nil || cfg.Set == nil || cfg.Lead == nil:
		return nil, errors.New("the projections' runner needs a database, a log, a registry, a set and a leader lock")
	case cfg.Store == uuid.Nil:
		return nil, errors.New("the projections' runner needs the identity of the event store")
	}
	if err := cfg.Set.Check(cfg.Registry); err != nil {
		return nil, err
	}
	return &Runner{core: cfg.core(), cfg: cfg, ready: make(chan struct{})}, nil
}

// Start refuses a store that the read model was not made from, and otherwise
// begins to project when this process becomes the leader.
func (r *Runner) Start(ctx context.Context) error {
	if err := r.checkGenerations(ctx); err != nil {
		return err
	}
	// The loops live until Stop, not until the caller's start is over.
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.wg.Go(func() {
		if err := r.cfg.Lead(ctx, r.lead); err != nil && ctx.Err() == nil {
			r.logger.ErrorContext(ctx, "projecting ended", "error", err)
		}
	})
	r.wg.Go(func() {
		reader := r.cfg.Reader
		if reader == nil {
			reader = NewReader(r.db, r.log, r.set)
		}
		if reader.WaitReady(ctx) == nil {
			close(r.ready)
		}
	})
	return nil
}

// lead is one time as the leader.
func (r *Runner) lead(ctx context.Context) error {
	t := &term{core: r.core, reader: r.cfg.Reader, gauges: &r.gauges, tries: map[uuid.UUID]int{}}
	r.term.Store(t)
	defer r.term.Store(nil)
	return t.run(ctx)
}

// Stop ends projecting. What was begun is finished or given up as a whole.
func (r *Runner) Stop(ctx context.Context) error {
	if r.cancel == nil {
		return nil
	}
	r.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the projector did not stop in time: %w", context.Cause(ctx))
	}
}

// Ready is closed when the first catch-up is done, wherever it is done.
func (r *Runner) Ready() <-chan struct{} { return r.ready }

// Leading tells whether this process is the one that projects.
func (r *Runner) Leading() bool { return r.term.Load() != nil }

// Gauges are the newest measurements, for the metrics; empty in processes
// that do not lead.
func (r *Runner) Gauges() []Gauge {
	if !r.Leading() {
		return nil
	}
	if g := r.gauges.Load(); g != nil {
		return *g
	}
	return nil
}
