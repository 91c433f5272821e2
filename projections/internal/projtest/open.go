// Package projtest gives tests of read models a log and a database of their own,
// and the projector between them.
package projtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/runner"
)

// Open projects what is written through the runtime into the reader's tables,
// until the test ends. Package pgtest must be running.
func Open(t *testing.T, p runner.Projection, types ...[]es.TypeDef) (*es.Runtime, *runner.Reader) {
	t.Helper()
	registry, err := es.NewRegistry(append([][]es.TypeDef{es.Types}, types...)...)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, NameKey: []byte("k"),
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	set, err := runner.NewSet(p)
	if err != nil {
		t.Fatal(err)
	}
	store, err := es.Identity(t.Context(), rt)
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t)
	reader := runner.NewReader(db, rt.Log, set)
	run, err := runner.New(runner.Config{
		DB: db, Log: rt.Log, Registry: registry, Set: set, Store: store, Reader: reader, Logger: rt.Logger,
		Lead: func(ctx context.Context, work func(context.Context) error) error { return work(ctx) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := run.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-run.Ready():
	case <-time.After(30 * time.Second):
		t.Fatal("the read model did not become ready")
	}
	return rt, reader
}
