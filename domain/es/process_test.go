package es_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
)

func TestProcessCheckpoint(t *testing.T) {
	ctx := t.Context()
	at := func(t *testing.T, rt *es.Runtime) es.Position {
		t.Helper()
		return must[es.Position](t)(es.ProcessCheckpoint(ctx, rt, "p"))
	}
	t.Run("none_begins_at_the_start", func(t *testing.T) {
		if got := at(t, alone(t)); got != es.StartPosition {
			t.Errorf("at %d", got)
		}
	})
	t.Run("goes_on_behind_the_last_event_and_stays_short", func(t *testing.T) {
		rt, id := alone(t), uuid.New()
		long(t, rt, id, 3)
		for _, env := range history(t, rt, counters.Stream(acme, id)) {
			if err := es.AdvanceProcess(ctx, rt, "p", env); err != nil {
				t.Fatal(err)
			}
			if got := at(t, rt); got != env.Position {
				t.Errorf("at %d, want %d", got, env.Position)
			}
		}
		if n := len(history(t, rt, es.ProcessStream("p"))); n > 2 {
			t.Errorf("%d checkpoints are kept", n)
		}
		if got := must[es.Position](t)(es.ProcessCheckpoint(ctx, rt, "q")); got != es.StartPosition {
			t.Errorf("another process is at %d", got)
		}
	})
	t.Run("a_copied_log_begins_at_the_start", func(t *testing.T) {
		from, id := alone(t), uuid.New()
		long(t, from, id, 2)
		long(t, from, uuid.New(), 2)
		events := history(t, from, counters.Stream(acme, id))
		if err := es.AdvanceProcess(ctx, from, "p", events[1]); err != nil {
			t.Fatal(err)
		}
		// The same histories, but something else lies before them.
		to := alone(t)
		long(t, to, uuid.New(), 5)
		for rec, err := range from.Log.ReadAll(ctx, es.StartPosition, es.Forward, es.Everything) {
			if err != nil {
				t.Fatal(err)
			}
			must[es.Written](t)(to.Log.Append(ctx, rec.Stream, es.Any(), rec.Raw))
		}
		if got := at(t, to); got != es.StartPosition {
			t.Errorf("at %d", got)
		}
	})
}

func TestIdentity(t *testing.T) {
	t.Run("E11_a_log_has_one_identity_whoever_asks_first", func(t *testing.T) {
		log := storetest.Open(t)
		ids := make([]uuid.UUID, 8)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() {
				id, err := es.Identity(t.Context(), process(t, log))
				if err != nil {
					t.Error(err)
				}
				ids[i] = id
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] || id == uuid.Nil {
				t.Errorf("identities %v", ids)
			}
		}
		if other := must[uuid.UUID](t)(es.Identity(t.Context(), alone(t))); other == ids[0] {
			t.Error("another log has the same identity")
		}
	})
}

// TestCausedCommands: the order of a process has one id, whoever gives it again.
func TestCausedCommands(t *testing.T) {
	t.Run("E18_the_same_order_by_the_same_event_is_one_command", func(t *testing.T) {
		env := es.Envelope{ID: uuid.New(), Meta: es.Metadata{Tenant: acme, Request: "r", Correlation: uuid.New()}}
		a, b := es.Caused("p", "do", env), es.Caused("p", "do", env)
		if a.ID != b.ID || a.Tenant != acme || a.Causation != env.ID || a.Correlation != env.Meta.Correlation || a.Request != "r" || a.Actor.Kind != es.ActorSystem {
			t.Errorf("%+v and %+v", a, b)
		}
		for _, other := range []es.Command{es.Caused("q", "do", env), es.Caused("p", "undo", env), es.Caused("p", "do", es.Envelope{ID: uuid.New()})} {
			if other.ID == a.ID {
				t.Errorf("%+v has the same id", other)
			}
		}
	})
}
