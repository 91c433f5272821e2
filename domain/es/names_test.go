package es_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/infra/eventstore/storetest"
)

func TestNames(t *testing.T) {
	ctx := t.Context()
	rt := alone(t)
	clock := newClock()
	rt.Clock = clock
	fresh := func() (es.Name, es.StreamID) {
		return es.Name{Kind: "counter", Value: "n" + uuid.NewString()}, counters.Stream(acme, uuid.New())
	}
	taken := func(t *testing.T, n es.Name, by es.StreamID) {
		t.Helper()
		if err := rt.Reserve(ctx, command(""), n, by); !fault.Is(err, fault.CodeNameTaken) {
			t.Errorf("told %v", err)
		}
	}
	free := func(t *testing.T, n es.Name, by es.StreamID) {
		t.Helper()
		if err := rt.Reserve(ctx, command(""), n, by); err != nil {
			t.Errorf("told %v", err)
		}
	}
	t.Run("GEN-03_reserved_twice_by_its_holder_is_one_reservation", func(t *testing.T) {
		n, holder := fresh()
		free(t, n, holder)
		free(t, n, holder)
		got, ok, err := rt.Holder(ctx, acme, n)
		if err != nil || !ok || got != holder {
			t.Errorf("held by %v, %v, %v", got, ok, err)
		}
	})
	t.Run("ALG-01_taken_then_released", func(t *testing.T) {
		n, holder := fresh()
		_, other := fresh()
		free(t, n, holder)
		taken(t, n, other)
		if err := rt.Release(ctx, command(""), n, other); err != nil {
			t.Error(err)
		}
		taken(t, n, other) // a release by who does not hold it does nothing
		if err := rt.Release(ctx, command(""), n, holder); err != nil {
			t.Error(err)
		}
		if _, ok, err := rt.Holder(ctx, acme, n); ok || err != nil {
			t.Errorf("still held, %v", err)
		}
		free(t, n, other)
	})
	t.Run("GEN-01_NFC_and_NFD_are_one_name_and_case_counts", func(t *testing.T) {
		_, a := fresh()
		_, b := fresh()
		free(t, es.Name{Kind: "counter", Value: "caf\u00e9"}, a)
		taken(t, es.Name{Kind: "counter", Value: "cafe\u0301"}, b)
		free(t, es.Name{Kind: "counter", Value: "Caf\u00e9"}, b)
	})
	t.Run("TEN-01_projects_kinds_and_tenants_have_names_of_their_own", func(t *testing.T) {
		n, holder := fresh()
		free(t, n, holder)
		_, other := fresh()
		free(t, es.Name{Kind: "counter", Project: uuid.New(), Value: n.Value}, other)
		free(t, es.Name{Kind: "other", Value: n.Value}, other)
		cmd := command("")
		cmd.Tenant = uuid.New()
		if err := rt.Reserve(ctx, cmd, n, other); err != nil {
			t.Error(err)
		}
	})
	t.Run("an_orphan_is_taken_over_after_its_time", func(t *testing.T) {
		n, orphan := fresh()
		_, heir := fresh()
		free(t, n, orphan)
		clock.pass(es.OrphanAfter - 1)
		taken(t, n, heir)
		clock.pass(1000)
		free(t, n, heir)
		other := born(t, rt, heir)
		clock.pass(2 * es.OrphanAfter)
		taken(t, n, other)
	})
	t.Run("a_living_holder_keeps_it_for_ever", func(t *testing.T) {
		n := es.Name{Kind: "counter", Value: "kept"}
		id := uuid.New()
		free(t, n, counters.Stream(acme, id))
		must[es.Outcome[counter]](t)(es.Execute(ctx, rt, command(""), counters, id, add(1)))
		clock.pass(100 * es.OrphanAfter)
		_, other := fresh()
		taken(t, n, other)
	})
}

// born brings the heir of a name to life and gives somebody else.
func born(t *testing.T, rt *es.Runtime, heir es.StreamID) es.StreamID {
	t.Helper()
	id := must[uuid.UUID](t)(heir.UUID())
	must[es.Outcome[counter]](t)(es.Execute(t.Context(), rt, command(""), counters, id, add(1)))
	return counters.Stream(acme, uuid.New())
}

func TestNamesAtOnce(t *testing.T) {
	t.Run("ALG-01_of_many_holders_at_once_one_wins", func(t *testing.T) {
		log := storetest.Open(t)
		processes := []*es.Runtime{process(t, log), process(t, log)}
		n := es.Name{Kind: "counter", Value: "wanted"}
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for i := range 16 {
			wg.Go(func() {
				err := processes[i%2].Reserve(t.Context(), command(""), n, counters.Stream(acme, uuid.New()))
				if err != nil && !fault.Is(err, fault.CodeNameTaken) {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				}
			})
		}
		wg.Wait()
		if won != 1 {
			t.Errorf("%d hold the name", won)
		}
	})
	t.Run("TEN-01_a_stream_does_not_tell_the_name", func(t *testing.T) {
		log := storetest.Open(t)
		a, b := process(t, log), process(t, log)
		b.NameKey = []byte("another key")
		n := es.Name{Kind: "counter", Value: "secret"}
		for _, rt := range []*es.Runtime{a, b} {
			if err := rt.Reserve(t.Context(), command(""), n, counters.Stream(acme, uuid.New())); err != nil {
				t.Error(err)
			}
		}
	})
}
