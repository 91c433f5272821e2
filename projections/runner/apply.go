package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
)

// parallel is how many projections of a batch are written at once.
const parallel = 4

// transactionError is a failed transaction with what its failure is about.
type transactionError struct {
	kind failure
	err  error
}

func (e *transactionError) Error() string { return e.err.Error() }
func (e *transactionError) Unwrap() error { return e.err }

// apply brings every projection behind a batch, each in a transaction of its own.
func (f *flow) apply(ctx context.Context, b *batch) error {
	for i := range b.items {
		f.last.see(&b.items[i].rec)
	}
	var (
		wg    sync.WaitGroup
		slots = make(chan struct{}, parallel)
		errs  = make([]error, len(f.states))
	)
	for i, st := range f.states {
		if st.halted != "" || st.at >= b.seen {
			continue
		}
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			errs[i] = f.project(ctx, st, b)
		}()
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	f.seen = max(f.seen, b.seen)
	f.show()
	return nil
}

// project brings one projection behind a batch.
func (f *flow) project(ctx context.Context, st *state, b *batch) error {
	todo, to, halt := st.choose(b)
	if halt != "" {
		f.logger.ErrorContext(ctx, "projection halted", "generation", f.gen.id, "projection", st.p.Name, "reason", halt)
	}
	if err := f.advance(ctx, st, todo, to); err != nil {
		return fmt.Errorf("project %s: %w", st.p.Name, err)
	}
	if halt == "" {
		return nil
	}
	st.halted = halt
	return f.insist(ctx, st.p.Name, func(ctx context.Context) error {
		if err := f.storeHalt(ctx, f.gen, st); err != nil {
			return &transactionError{failurePassing, err}
		}
		return nil
	})
}

// choose picks what of a batch concerns the projection, how far that brings
// it, and why it has to stop there.
func (st *state) choose(b *batch) (todo []*item, to es.Position, halt string) {
	to = st.at
	for i := range b.items {
		it := &b.items[i]
		at := it.rec.Position
		switch {
		case at <= st.at || st.parked[it.rec.Stream]:
		case st.p.raw != nil:
			todo = append(todo, it)
		case !st.p.reads(it.category):
		case it.unknown:
			return todo, to, it.err.Error()
		case it.err != nil || st.p.handler(it.env.Name) != nil:
			todo = append(todo, it)
		}
		to = max(to, at)
	}
	return todo, max(to, b.seen), ""
}

// advance writes what events make and the checkpoint, as one transaction; when
// one of the events is at fault, event by event.
func (f *flow) advance(ctx context.Context, st *state, todo []*item, to es.Position) error {
	was := st.at
	st.at = to
	err := st.queue(st.w, todo)
	if err == nil {
		if st.w.empty() {
			return nil
		}
		start := time.Now()
		err = f.insist(ctx, st.p.Name, func(ctx context.Context) error {
			return f.commit(ctx, []*state{st}, st.w)
		})
		if err == nil {
			st.stored = to
			f.metrics.BatchDone(st.p.Name, len(todo), time.Since(start))
		}
	}
	st.w.reset()
	var failed *transactionError
	if errors.As(err, &failed) && failed.kind == failureEvent {
		f.metrics.BatchFailed(st.p.Name, failed.kind.String())
		err = f.singly(ctx, st, todo)
	}
	if err != nil {
		st.at = was
	}
	return err
}

// queue lets the handlers queue what events make.
func (st *state) queue(w *Writer, todo []*item) error {
	if st.p.raw != nil {
		st.p.raw(w, todo)
		return nil
	}
	for _, it := range todo {
		if err := st.handle(w, it); err != nil {
			return &transactionError{failureEvent, err}
		}
	}
	return nil
}

// handle queues one event. A handler that panics is a handler that fails: the
// others must not stand still because of it.
func (st *state) handle(w *Writer, it *item) (err error) {
	if it.err != nil {
		return handlerError{it.err}
	}
	defer func() {
		if p := recover(); p != nil {
			err = handlerError{fmt.Errorf("panic: %v", p)}
		}
	}()
	if err := st.p.handler(it.env.Name)(w, it.env); err != nil {
		return handlerError{err}
	}
	return nil
}

// byIndex keeps the planner from reading whole tables in this transaction.
// Handlers find rows by key, and Postgres keeps a statement's plan for long: one
// made while the table was as good as empty would read all of it for each
// event, until somebody analyses the table.
const byIndex = `SELECT set_config('enable_seqscan', 'off', true)`

// commit writes the checkpoints of some projections, and the rows of one, in
// one round trip: the statements of a pipeline are one transaction.
func (f *flow) commit(ctx context.Context, states []*state, w *Writer) error {
	conn, err := f.db.Acquire(ctx)
	if err != nil {
		return &transactionError{failurePassing, err}
	}
	defer conn.Release()
	b := &pgx.Batch{}
	b.Queue(byIndex)
	queueAdvance(b, f.gen.id, f.last, states, func(st *state) es.Position { return st.at })
	if w != nil {
		w.into(b)
	}
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return &transactionError{classify(err, conn.Conn()), err}
	}
	return nil
}
