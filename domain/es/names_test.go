package es_test

import (
	"context"
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
	t.Run("GEN-04_a_rush_of_one_holder_for_its_name_is_no_conflict", func(t *testing.T) {
		n, holder := fresh()
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() { free(t, n, holder) })
		}
		wg.Wait()
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

// TestFreeing looks at who may free a name that its holder still has.
func TestFreeing(t *testing.T) {
	ctx := t.Context()
	rt, clock := alone(t), newClock()
	rt.Clock = clock
	holder := counters.Stream(acme, uuid.New())
	born(t, rt, holder)
	name := func(v string) es.Name { return es.Name{Kind: "counter", Value: v} }
	bears := func(v string) es.Bears {
		return func(context.Context, es.StreamID) (es.Name, bool, error) { return name(v), v != "", nil }
	}
	held := func(v string) bool {
		_, ok, err := rt.Holder(ctx, acme, name(v))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	reserve := func(v string) es.Command {
		cmd := command("")
		if err := rt.Reserve(ctx, cmd, name(v), holder); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	unborne := func(v string, b es.Bears) bool {
		freed, err := rt.ReleaseUnborne(ctx, command(""), rt.NameStream(acme, name(v)), b)
		if err != nil {
			t.Fatal(err)
		}
		return freed
	}
	t.Run("GEN-04_a_refused_command_frees_its_own_reservation_alone", func(t *testing.T) {
		mine := reserve("a")
		theirs := reserve("a")
		if err := rt.ReleaseOwn(ctx, mine, name("a"), holder); err != nil || !held("a") {
			t.Errorf("freed what another command wants: %v", err)
		}
		if err := rt.ReleaseOwn(ctx, theirs, name("a"), holder); err != nil || held("a") {
			t.Errorf("not freed: %v", err)
		}
	})
	t.Run("GEN-04_a_name_that_is_wanted_back_is_not_freed", func(t *testing.T) {
		reserve("b")
		out := must[es.Outcome[counter]](t)(es.Execute(ctx, rt, command(""), counters, must[uuid.UUID](t)(holder.UUID()), add(1)))
		reserve("b")
		if err := rt.ReleaseLeft(ctx, command(""), name("b"), holder, out.Position); err != nil || !held("b") {
			t.Errorf("freed: %v", err)
		}
		reserve("c")
		out = must[es.Outcome[counter]](t)(es.Execute(ctx, rt, command(""), counters, must[uuid.UUID](t)(holder.UUID()), add(1)))
		if err := rt.ReleaseLeft(ctx, command(""), name("c"), holder, out.Position); err != nil || held("c") {
			t.Errorf("not freed: %v", err)
		}
	})
	t.Run("TEN-11_what_nothing_bears_is_freed_after_its_time", func(t *testing.T) {
		reserve("d")
		clock.pass(es.OrphanAfter)
		if unborne("d", nil) || unborne("d", bears("d")) {
			t.Error("freed what a thing that exists bears, or may bear")
		}
		reserve("d") // somebody is about to give it the name
		if unborne("d", bears("other")) {
			t.Error("freed before its time")
		}
		clock.pass(es.OrphanAfter)
		if !unborne("d", bears("other")) || held("d") || unborne("d", bears("other")) {
			t.Error("not freed once")
		}
		reserve("e")
		clock.pass(es.OrphanAfter)
		if !unborne("e", bears("")) || held("e") {
			t.Error("a thing without a name keeps one")
		}
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
