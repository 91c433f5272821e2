package es_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/infra/eventstore/storetest"
)

// TestTakenOver: a process that was slow is taken for dead; the second one
// finishes the command of the same key. What the first decides afterwards, on
// a state that has its own command's events, must not become a refusal.
func TestTakenOver(t *testing.T) {
	log := storetest.Open(t)
	slow, second := process(t, log), impatient(t, log)
	id := uuid.New()
	once := func(s counter) ([]es.Event, error) {
		if s.Events > 0 {
			return nil, fault.New(fault.State, fault.CodeInvalidState, "It is counted already.")
		}
		return []es.Event{added{1}}, nil
	}
	// run counts once; before is what happens between the acceptance and the work.
	run := func(rt *es.Runtime, before func()) (es.Result[es.Revision], error) {
		return es.Run(t.Context(), rt, command("key"), func(ctx context.Context, cmd es.Command) (es.Revision, error) {
			before()
			out, err := es.Execute(ctx, rt, cmd, counters, id, once)
			return out.Revision, err
		})
	}
	var taken es.Result[es.Revision]
	first, err := run(slow, func() {
		var err error
		if taken, err = run(second, func() {}); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatalf("GEN-03: the slow process answers %v", err)
	}
	if first.Refs != taken.Refs || first.Command != taken.Command {
		t.Errorf("GEN-03: two answers, %+v and %+v", first, taken)
	}
	if n := len(history(t, slow, counters.Stream(acme, id))); n != 1 {
		t.Errorf("GEN-03: %d events", n)
	}
	if _, err := run(slow, func() { t.Error(errors.New("done again")) }); err != nil {
		t.Errorf("GEN-03: the key answers %v later", err)
	}
}
