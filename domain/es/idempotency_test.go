package es_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/infra/eventstore/storetest"
)

// refs is the answer of the command that these tests give.
type refs struct {
	Made uuid.UUID   `json:"made"`
	At   es.Revision `json:"at"`
}

// count makes a counter, and then another one, so that there is a place to die
// between: two aggregates, two appends.
func count(ctx context.Context, rt *es.Runtime, cmd es.Command) (es.Result[refs], error) {
	return es.Run(ctx, rt, cmd, func(ctx context.Context, cmd es.Command) (refs, error) {
		ids := cmd.NewIDs(2)
		for _, id := range ids {
			if _, err := es.Execute(ctx, rt, cmd, counters, id, func(counter) ([]es.Event, error) {
				return []es.Event{added{1}, moved{}}, nil
			}); err != nil {
				return refs{}, err
			}
		}
		return refs{Made: ids[0], At: 1}, nil
	})
}

// made counts the events of counters in the whole log.
func made(t testing.TB, rt *es.Runtime) int {
	t.Helper()
	n := 0
	for rec, err := range rt.Log.ReadAll(t.Context(), es.StartPosition, es.Forward, es.Everything) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Type == "counter.added.v1" {
			n++
		}
	}
	return n
}

func TestRun(t *testing.T) {
	t.Run("GEN-03_no_key_is_that_of_an_item_of_a_batch", func(t *testing.T) {
		rt := alone(t)
		batch := command("a")
		items := make([]es.Command, 3)
		for i := range items {
			items[i] = batch.Item(i)
			must[es.Result[refs]](t)(count(t.Context(), rt, items[i]))
		}
		other := command("a#0")
		other.Digest = []byte("another input")
		if got := must[es.Result[refs]](t)(count(t.Context(), rt, other)); got.Replayed {
			t.Error("it was taken for an item of the batch")
		}
		if n := made(t, rt); n != 8 {
			t.Errorf("%d counters were made, want two of each item and of the other one", n)
		}
		for i := range items {
			again := batch
			again.ID = uuid.New()
			if got := must[es.Result[refs]](t)(count(t.Context(), rt, again.Item(i))); !got.Replayed || got.Command != items[i].ID {
				t.Errorf("item %d is not replayed: %+v", i, got)
			}
		}
	})
	t.Run("GEN-03_50_in_parallel_of_two_processes_make_one", func(t *testing.T) {
		log := storetest.Open(t)
		processes := []*es.Runtime{process(t, log), process(t, log)}
		answers := make([]es.Result[refs], 50)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				r, err := count(t.Context(), processes[i%2], command("key"))
				if err != nil {
					t.Error(err)
				}
				answers[i] = r
			})
		}
		wg.Wait()
		for _, r := range answers {
			if r.Refs != answers[0].Refs || r.Command != answers[0].Command || r.Position != answers[0].Position {
				t.Errorf("answers %+v and %+v", answers[0], r)
			}
		}
		if n := made(t, processes[0]); n != 2 {
			t.Errorf("%d counters", n)
		}
	})
	for n := 1; n <= 4; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("GEN-03_died_at_append_%d_after_%v", n, after), func(t *testing.T) {
				log := storetest.Open(t)
				if _, err := count(t.Context(), process(t, dying(log, n, after)), command("key")); !errors.Is(err, errCrash) {
					t.Fatalf("told %v", err)
				}
				// The process that comes up afterwards knows the log alone.
				rt := impatient(t, log)
				first, err := count(t.Context(), rt, command("key"))
				if err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(first.Events) != "[counter.added.v1 counter.moved.v1 counter.added.v1 counter.moved.v1]" {
					t.Errorf("the receipt waits for %v", first.Events)
				}
				again, err := count(t.Context(), process(t, log), command("key"))
				if err != nil || !again.Replayed || again.Refs != first.Refs || again.Command != first.Command || again.Position != first.Position ||
					fmt.Sprint(again.Events) != fmt.Sprint(first.Events) {
					t.Errorf("%+v then %+v, %v", first, again, err)
				}
				if got := made(t, rt); got != 2 {
					t.Errorf("%d counters", got)
				}
			})
		}
	}
	t.Run("GEN-03_another_input_is_told_apart", func(t *testing.T) {
		rt := alone(t)
		must[es.Result[refs]](t)(count(t.Context(), rt, command("key")))
		other := command("key")
		other.Digest = []byte("another")
		if _, err := count(t.Context(), rt, other); !fault.Is(err, fault.CodeIdempotency) {
			t.Errorf("told %v", err)
		}
		if n := made(t, rt); n != 2 {
			t.Errorf("%d counters", n)
		}
	})
	t.Run("GEN-03_a_key_belongs_to_actor_action_and_tenant", func(t *testing.T) {
		rt := alone(t)
		for _, change := range []func(*es.Command){
			func(*es.Command) {}, func(c *es.Command) { c.Actor.User = uuid.New() },
			func(c *es.Command) { c.Action = "other" }, func(c *es.Command) { c.Tenant = uuid.New() },
		} {
			cmd := command("key")
			change(&cmd)
			if r := must[es.Result[refs]](t)(count(t.Context(), rt, cmd)); r.Replayed {
				t.Error("somebody else's answer came back")
			}
		}
	})
	t.Run("GEN-03_a_refusal_stays_one", func(t *testing.T) {
		log := storetest.Open(t)
		no := fault.List{fault.New(fault.Invalid, fault.CodeTooLong, "Too long.").At("name").With("max", "3"), fault.New(fault.State, fault.CodeInUse, "In use.")}
		asked := 0
		ask := func() (es.Result[refs], error) {
			rt := process(t, log)
			return es.Run(t.Context(), rt, command("key"), func(context.Context, es.Command) (refs, error) {
				asked++
				return refs{}, no
			})
		}
		_, first := ask()
		r, again := ask()
		faults, _ := fault.All(again)
		if asked != 1 || !r.Replayed || first.Error() != again.Error() || len(faults) != 2 || fmt.Sprint(*faults[0]) != fmt.Sprint(*no[0]) {
			t.Errorf("asked %d times: %v, then %v", asked, first, again)
		}
	})
	t.Run("GEN-03_a_mishap_is_tried_again", func(t *testing.T) {
		rt := impatient(t, storetest.Open(t))
		for i, mishap := range []error{errCrash, fault.New(fault.Unavailable, fault.CodeUnavailable, "Away."), fault.New(fault.Conflict, fault.CodeConflict, "Busy."), nil} {
			r, err := es.Run(t.Context(), rt, command("key"), func(context.Context, es.Command) (refs, error) { return refs{At: es.Revision(i)}, mishap })
			if !errors.Is(err, mishap) || r.Replayed {
				t.Errorf("%d: %+v, %v", i, r, err)
			}
		}
		r, err := count(t.Context(), rt, command("key"))
		if err != nil || !r.Replayed || r.Refs.At != 3 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("GEN-03_who_closes_first_answers_for_all", func(t *testing.T) {
		log := storetest.Open(t)
		slow, quick := process(t, log), impatient(t, log)
		r, err := es.Run(t.Context(), slow, command("key"), func(ctx context.Context, cmd es.Command) (refs, error) {
			// The other process comes while this one works, and is refused by then.
			_, err := es.Run(ctx, quick, command("key"), func(context.Context, es.Command) (refs, error) {
				return refs{}, fault.New(fault.NotFound, fault.CodeNotFound, "Gone.")
			})
			if !fault.Is(err, fault.CodeNotFound) {
				t.Errorf("told %v", err)
			}
			return refs{At: 9}, nil
		})
		if !fault.Is(err, fault.CodeNotFound) || !r.Replayed {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestRunWithoutAKey(t *testing.T) {
	rt := alone(t)
	a, b := must[es.Result[refs]](t)(count(t.Context(), rt, command(""))), must[es.Result[refs]](t)(count(t.Context(), rt, command("")))
	if a.Refs == b.Refs || a.Replayed || b.Replayed || made(t, rt) != 4 || a.Position == 0 || b.Position <= a.Position {
		t.Errorf("%+v and %+v", a, b)
	}
}
