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

func TestExecute(t *testing.T) {
	ctx := t.Context()
	rt := alone(t)
	refusal := fault.New(fault.State, fault.CodeInvalidState, "No.")
	for name, c := range map[string]struct {
		given  []int
		decide es.Decide[counter]
		sum    int
		events int
		err    fault.Code
	}{
		"first_event_opens_the_stream": {nil, add(3), 3, 1, ""},
		"added_to_what_is_there":       {[]int{1, 2}, add(3), 6, 3, ""},
		"two_events_of_one_command":    {[]int{1}, func(counter) ([]es.Event, error) { return []es.Event{added{1}, moved{}}, nil }, 2, 3, ""},
		"nothing_changed_no_event":     {[]int{1}, func(counter) ([]es.Event, error) { return nil, nil }, 1, 1, ""},
		"refused_no_event":             {[]int{1}, func(counter) ([]es.Event, error) { return nil, refusal }, 1, 1, fault.CodeInvalidState},
		"refused_on_a_missing_stream":  {nil, func(counter) ([]es.Event, error) { return nil, refusal }, 0, 0, fault.CodeInvalidState},
	} {
		t.Run(name, func(t *testing.T) {
			id := uuid.New()
			for _, n := range c.given {
				must[es.Outcome[counter]](t)(es.Execute(ctx, rt, command(""), counters, id, add(n)))
			}
			out, err := es.Execute(ctx, rt, command(""), counters, id, c.decide)
			if (c.err == "") != (err == nil) || err != nil && !fault.Is(err, c.err) {
				t.Fatalf("told %v", err)
			}
			l := must[es.Loaded[counter]](t)(es.Load(ctx, rt, counters, acme, id))
			if l.State.Sum != c.sum || l.State.Events != c.events || l.Revision != es.Revision(c.events-1) {
				t.Errorf("left %+v", l)
			}
			if out.State.Sum != c.sum || out.Revision != l.Revision || out.Position != l.Position || out.Changed != (c.events > len(c.given)) {
				t.Errorf("outcome %+v, the log says %+v", out, l)
			}
		})
	}
}

func TestExecuteAtOnce(t *testing.T) {
	t.Run("E22_32_commands_of_two_processes_make_32_events", func(t *testing.T) {
		log := storetest.Open(t)
		processes := []*es.Runtime{process(t, log), process(t, log)}
		id := uuid.New()
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				// A command that lost five races is told so and comes again, as a client does.
				for {
					_, err := es.Execute(t.Context(), processes[i%2], command(""), counters, id, add(1<<i))
					if fault.Is(err, fault.CodeConflict) {
						continue
					}
					if err != nil {
						t.Error(err)
					}
					return
				}
			})
		}
		wg.Wait()
		l := must[es.Loaded[counter]](t)(es.Load(t.Context(), processes[0], counters, acme, id))
		if l.State.Events != 32 || l.State.Sum != 1<<32-1 {
			t.Errorf("left %+v", l.State)
		}
	})
	t.Run("E22_inside_one_process_nobody_loses_a_race", func(t *testing.T) {
		rt, id := alone(t), uuid.New()
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				if _, err := es.Execute(t.Context(), rt, command(""), counters, id, add(1)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := len(history(t, rt, counters.Stream(acme, id))); got != 32 {
			t.Errorf("%d events", got)
		}
	})
	t.Run("E22_a_conflict_after_five_tries", func(t *testing.T) {
		rt := alone(t)
		log, id, decided := rt.Log, uuid.New(), 0
		rt.Log = &failing{Log: log, fail: func(int) (error, error) { return es.ErrWrongRevision, nil }}
		_, err := es.Execute(t.Context(), rt, command(""), counters, id, func(counter) ([]es.Event, error) {
			decided++
			return []es.Event{added{1}}, nil
		})
		if !fault.Is(err, fault.CodeConflict) || decided != 5 {
			t.Errorf("told %v after %d decisions", err, decided)
		}
	})
	t.Run("E12_a_lost_answer_is_found_by_the_commands_id", func(t *testing.T) {
		rt := alone(t)
		log, id := rt.Log, uuid.New()
		// The append is written, but the writer hears of a wrong revision.
		rt.Log = &failing{Log: log, fail: func(n int) (error, error) {
			if n == 1 {
				return nil, es.ErrWrongRevision
			}
			return nil, nil
		}}
		out, err := es.Execute(t.Context(), rt, command(""), counters, id, add(5))
		if err != nil || !out.Changed || out.State.Sum != 5 || len(history(t, rt, counters.Stream(acme, id))) != 1 {
			t.Errorf("%+v, %v", out, err)
		}
	})
	t.Run("E12_a_process_repeats_its_order_and_nothing_happens", func(t *testing.T) {
		rt, id := alone(t), uuid.New()
		must[es.Outcome[counter]](t)(es.Execute(t.Context(), rt, command(""), counters, id, add(1)))
		cause := history(t, rt, counters.Stream(acme, id))[0]
		for range 3 {
			out, err := es.Execute(t.Context(), rt, es.Caused("p", "count", cause), counters, id, add(2))
			if err != nil || !out.Changed || out.Revision != 1 {
				t.Fatalf("%+v, %v", out, err)
			}
			must[es.Outcome[counter]](t)(es.Execute(t.Context(), rt, command(""), counters, id, add(10)))
		}
		if got := must[es.Loaded[counter]](t)(es.Load(t.Context(), rt, counters, acme, id)); got.State.Sum != 33 {
			t.Errorf("left %+v", got.State)
		}
	})
	t.Run("E13_any_other_failure_is_not_tried_again", func(t *testing.T) {
		rt := alone(t)
		log, id := rt.Log, uuid.New()
		f := &failing{Log: log, fail: func(int) (error, error) { return es.ErrUnavailable, nil }}
		rt.Log = f
		if _, err := es.Execute(t.Context(), rt, command(""), counters, id, add(1)); !errors.Is(err, es.ErrUnavailable) || f.n != 1 {
			t.Errorf("told %v after %d appends", err, f.n)
		}
	})
	t.Run("G14_who_leaves_while_waiting_holds_nothing", func(t *testing.T) {
		rt, id := alone(t), uuid.New()
		ctx, leave := context.WithCancel(t.Context())
		inside, out := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := es.Execute(t.Context(), rt, command(""), counters, id, func(counter) ([]es.Event, error) {
				close(inside)
				<-out
				return []es.Event{added{1}}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-inside
		leave()
		if _, err := es.Execute(ctx, rt, command(""), counters, id, add(1)); !errors.Is(err, context.Canceled) {
			t.Errorf("told %v", err)
		}
		close(out)
		wg.Wait()
		if _, err := es.Execute(t.Context(), rt, command(""), counters, id, add(1)); err != nil {
			t.Error(err)
		}
	})
}

// TestTheLogSaysWhatExecuteSaid: the envelopes that a command folds for its
// answer are those that a reader gets.
func TestTheLogSaysWhatExecuteSaid(t *testing.T) {
	rt, id := alone(t), uuid.New()
	cmd := command("")
	cmd.Reason, cmd.Project = "because", uuid.New()
	out := must[es.Outcome[counter]](t)(es.Execute(t.Context(), rt, cmd, counters, id, func(counter) ([]es.Event, error) {
		return []es.Event{added{1}, added{2}, moved{}}, nil
	}))
	l := must[es.Loaded[counter]](t)(es.Load(t.Context(), rt, counters, acme, id))
	if fmt.Sprint(out.State) != fmt.Sprint(l.State) || out.Position != l.Position {
		t.Errorf("said %+v, the log has %+v", out, l)
	}
	ids := map[uuid.UUID]bool{}
	for i, env := range history(t, rt, counters.Stream(acme, id)) {
		ids[env.ID] = true
		if env.Meta.Command != cmd.ID || env.Meta.Index != i || env.Meta.Reason != "because" || env.Meta.Project != cmd.Project {
			t.Errorf("metadata %+v", env.Meta)
		}
	}
	if len(ids) != 3 {
		t.Error("events of one command share an id")
	}
}
