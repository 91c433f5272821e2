package es_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
)

func refuse(t testing.TB, rt *es.Runtime, cmd es.Command, f error) {
	t.Helper()
	_, err := es.Run(t.Context(), rt, cmd, func(context.Context, es.Command) (refs, error) { return refs{}, f })
	if err == nil {
		t.Fatal("not refused")
	}
}

func refusals(t testing.TB, rt *es.Runtime, user uuid.UUID) (single []es.CommandRefused, summaries []es.RefusalsSummarised) {
	t.Helper()
	for _, env := range history(t, rt, es.StreamOf(es.RefusalCategory, acme, user)) {
		switch ev := env.Event.(type) {
		case es.CommandRefused:
			single = append(single, ev)
		case es.RefusalsSummarised:
			summaries = append(summaries, ev)
		}
	}
	return single, summaries
}

func TestRefusals(t *testing.T) {
	setup := func(t *testing.T) (*es.Runtime, *clock) {
		rt, c := alone(t), newClock()
		rt.Clock = c
		return rt, c
	}
	no := fault.New(fault.State, fault.CodeInvalidState, "No.").At("id").With("state", "X")
	t.Run("AUD-01_a_refusal_is_an_event_before_the_answer", func(t *testing.T) {
		rt, _ := setup(t)
		cmd := command("")
		cmd.Subject, cmd.Reason = es.Ref{Kind: "counter", ID: uuid.New()}, "why"
		refuse(t, rt, cmd, no)
		list := history(t, rt, es.StreamOf(es.RefusalCategory, acme, alice))
		if len(list) != 1 || list[0].Subject() != cmd.Subject || list[0].Meta.Command != cmd.ID || list[0].Meta.Reason != "why" {
			t.Fatalf("recorded %+v", list)
		}
		f := list[0].Event.(es.CommandRefused).Faults[0]
		if f.Code != no.Code || f.Message != no.Message || f.Field[0] != "id" || f.Details["state"] != "X" {
			t.Errorf("recorded %+v", f)
		}
	})
	t.Run("AUD-02_a_refusal_is_on_record_in_the_project_of_its_subject", func(t *testing.T) {
		rt, _ := setup(t)
		vision := uuid.New()
		for key, given := range map[string]uuid.UUID{"": uuid.Nil, "key": uuid.Nil, "other": uuid.New()} {
			cmd := command(key)
			cmd.Project = given
			var done es.Command
			_, err := es.Run(t.Context(), rt, cmd, func(ctx context.Context, cmd es.Command) (refs, error) {
				cmd.In(vision) // the subject was looked at
				done = cmd
				_, err := es.Execute(ctx, rt, cmd, counters, uuid.New(), add(1))
				if err != nil {
					t.Error(err)
				}
				return refs{}, no
			})
			list := history(t, rt, es.StreamOf(es.RefusalCategory, acme, alice))
			if last := list[len(list)-1]; err == nil || last.Meta.Project != vision || done.Project != vision {
				t.Errorf("%q: %v, in %v", key, err, last.Meta.Project)
			}
		}
	})
	t.Run("AUD-01_ten_singly_then_a_summary_of_a_flood", func(t *testing.T) {
		rt, c := setup(t)
		for range 1000 {
			refuse(t, rt, command(""), no)
		}
		rt.Refusals.Summarise(t.Context(), rt, rt.Now()) // the minute is not over
		c.pass(time.Minute)
		rt.Refusals.Summarise(t.Context(), rt, rt.Now())
		rt.Refusals.Summarise(t.Context(), rt, rt.Now())
		single, sums := refusals(t, rt, alice)
		if len(single) != 10 || len(sums) != 1 || sums[0].Count != 990 || sums[0].Code != no.Code || !sums[0].Minute.Equal(time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)) {
			t.Errorf("%d singly, summaries %+v", len(single), sums)
		}
		refuse(t, rt, command(""), no)
		if single, _ := refusals(t, rt, alice); len(single) != 11 {
			t.Error("a new minute does not begin anew")
		}
	})
	t.Run("AUD-01_actors_and_codes_are_counted_apart", func(t *testing.T) {
		rt, _ := setup(t)
		other := command("")
		other.Actor.User = uuid.New()
		for range 11 {
			refuse(t, rt, command(""), no)
			refuse(t, rt, command(""), fault.New(fault.Forbidden, fault.CodeForbidden, "No."))
		}
		refuse(t, rt, other, no)
		mine, _ := refusals(t, rt, alice)
		theirs, _ := refusals(t, rt, other.Actor.User)
		if len(mine) != 20 || len(theirs) != 1 {
			t.Errorf("%d and %d", len(mine), len(theirs))
		}
	})
	t.Run("AUD-01_a_flood_of_one_action_hides_no_other", func(t *testing.T) {
		rt, c := setup(t)
		ask := func(action string, on uuid.UUID) {
			cmd := command("")
			cmd.Action, cmd.Subject = action, es.Ref{Kind: "counter", ID: on}
			refuse(t, rt, cmd, no)
		}
		on, other := uuid.New(), uuid.New()
		for range 20 {
			ask("favorite", on)
		}
		ask("grant", on)
		ask("favorite", other)
		list := history(t, rt, es.StreamOf(es.RefusalCategory, acme, alice))
		if n := len(list); n != 12 || list[10].Meta.Action != "grant" || list[11].Subject().ID != other {
			t.Fatalf("%d recorded", n)
		}
		c.pass(time.Minute)
		rt.Refusals.Summarise(t.Context(), rt, rt.Now())
		_, sums := refusals(t, rt, alice)
		want := []es.RefusalsOf{{Action: "favorite", On: es.Ref{Kind: "counter", ID: on}, Count: 10}}
		if len(sums) != 1 || sums[0].Count != 10 || !slices.Equal(sums[0].Of, want) {
			t.Errorf("summaries %+v", sums)
		}
	})
	t.Run("AUD-01_an_actor_who_varies_the_subject_is_bounded", func(t *testing.T) {
		rt, c := setup(t)
		for range 400 {
			cmd := command("")
			cmd.Subject = es.Ref{Kind: "counter", ID: uuid.New()}
			refuse(t, rt, cmd, no)
		}
		for range 3 { // the first ten of a code are events all the same
			refuse(t, rt, command(""), fault.New(fault.Forbidden, fault.CodeForbidden, "No."))
		}
		for range 20 {
			granting := command("")
			granting.Action, granting.NeedsReason = "grant", true
			refuse(t, rt, granting, no)
		}
		if single, _ := refusals(t, rt, alice); len(single) != 123 {
			t.Errorf("%d singly, want 100 and the 3 of another code and the 20 that need a reason", len(single))
		}
		c.pass(time.Minute)
		rt.Refusals.Summarise(t.Context(), rt, rt.Now())
		_, sums := refusals(t, rt, alice)
		if len(sums) != 1 || sums[0].Count != 300 {
			t.Fatalf("summaries %+v", sums)
		}
		told := 0
		for _, of := range sums[0].Of {
			told += of.Count
		}
		if told != 300 || len(sums[0].Of) > 201 || sums[0].Of[0].On != (es.Ref{}) {
			t.Errorf("%d parts tell of %d", len(sums[0].Of), told)
		}
	})
	t.Run("AUD-01_a_summary_of_before_is_read", func(t *testing.T) {
		rt, _ := setup(t)
		old := []byte(`{"code":"INVALID_STATE","count":990,"minute":"2030-01-02T03:04:00Z"}`)
		env, err := rt.Registry.Decode(es.Recorded{
			Raw:    es.Raw{Type: "refusals.summarised.v1", Data: old, Metadata: []byte(`{}`)},
			Stream: es.StreamOf(es.RefusalCategory, acme, alice).String(),
		})
		ev, ok := env.Event.(es.RefusalsSummarised)
		if err != nil || !ok || ev.Count != 990 || ev.Code != fault.CodeInvalidState || ev.Of == nil || env.Name != "refusals.summarised.v2" {
			t.Errorf("%+v, %v", env, err)
		}
	})
	t.Run("AUD-01_mishaps_are_no_refusals", func(t *testing.T) {
		rt, _ := setup(t)
		refuse(t, rt, command(""), errCrash)
		refuse(t, rt, command(""), fault.New(fault.Unavailable, fault.CodeUnavailable, "Away."))
		if single, _ := refusals(t, rt, alice); len(single) != 0 {
			t.Errorf("recorded %+v", single)
		}
	})
	t.Run("AUD-01_a_conflict_is_recorded_with_a_key_too", func(t *testing.T) {
		rt, _ := setup(t)
		refuse(t, rt, command("key"), fault.New(fault.Conflict, fault.CodeConflict, "Busy."))
		if single, _ := refusals(t, rt, alice); len(single) != 1 {
			t.Errorf("recorded %+v", single)
		}
	})
	t.Run("AUD-01_a_stop_writes_the_running_minute", func(t *testing.T) {
		rt, _ := setup(t)
		for range 12 {
			refuse(t, rt, command(""), no)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := rt.Refusals.Run(ctx, rt); err != nil {
			t.Fatal(err)
		}
		if _, sums := refusals(t, rt, alice); len(sums) != 1 || sums[0].Count != 2 {
			t.Errorf("summaries %+v", sums)
		}
	})
	t.Run("AUD-01_a_store_that_is_away_delays_the_summary", func(t *testing.T) {
		rt, c := setup(t)
		for range 15 {
			refuse(t, rt, command(""), no)
		}
		c.pass(time.Minute)
		log := rt.Log
		rt.Log = &failing{Log: log, fail: func(int) (error, error) { return es.ErrUnavailable, nil }}
		rt.Refusals.Summarise(t.Context(), rt, rt.Now())
		rt.Log = log
		rt.Refusals.Summarise(t.Context(), rt, rt.Now())
		if _, sums := refusals(t, rt, alice); len(sums) != 1 || sums[0].Count != 5 {
			t.Errorf("summaries %+v", sums)
		}
	})
}
