package repair_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
	"tallyard/processes/driver"
	"tallyard/processes/internal/proctest"
	"tallyard/processes/repair"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type made struct{}

func (made) Changes() []es.Change { return nil }

func TestRepair(t *testing.T) {
	clock := proctest.NewClock()
	rt := proctest.Runtime(t, storetest.Open(t), clock, []es.TypeDef{es.Type[made]("thing.made.v1")})
	things := es.Aggregate[int]{Category: "thing", Fold: 1, Evolve: func(n int, _ es.Envelope) int { return n + 1 }}
	tenant, orphan, kept := uuid.New(), uuid.New(), uuid.New()
	command := func() es.Command { return es.System(rt.IDs.New(), "test", "make", tenant) }
	name := func(v string) es.Name { return es.Name{Kind: "thing", Value: v} }

	for v, id := range map[string]uuid.UUID{"orphan": orphan, "kept": kept} {
		if err := rt.Reserve(t.Context(), command(), name(v), things.Stream(tenant, id)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := es.Execute(t.Context(), rt, command(), things, kept, func(int) ([]es.Event, error) { return []es.Event{made{}}, nil }); err != nil {
		t.Fatal(err)
	}

	d := driver.New(rt, repair.Process(rt, nil))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	held := func(v string) bool {
		_, taken, err := rt.Holder(t.Context(), tenant, name(v))
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	time.Sleep(300 * time.Millisecond)
	if !held("orphan") {
		t.Fatal("freed before its time: its command may still be at work")
	}
	clock.Move(es.OrphanAfter)
	proctest.Eventually(t, "the orphan is freed", func() bool { return !held("orphan") })
	proctest.Eventually(t, "all dealt with", func() bool { return d.Status().Handled >= 3 })
	if !held("kept") {
		t.Error("a name whose thing exists was freed")
	}
}
