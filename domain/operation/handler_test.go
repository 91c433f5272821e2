package operation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/operation"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	acme  = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	alice = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	bob   = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
)

type everybody struct{}

func (everybody) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	return access.Grants{Tenant: tenant, User: user, Active: true}, nil
}

// subjects stands for the algorithms that operations are for.
type subjects struct {
	asked []operation.State
	err   error
}

func (s *subjects) MayRetry(context.Context, access.Grants, operation.State) error { return s.err }

func (s *subjects) Retry(_ context.Context, _ es.Command, op operation.State) error {
	s.asked = append(s.asked, op)
	return s.err
}

func setup(t *testing.T) (*operation.Handler, *subjects) {
	t.Helper()
	registry, err := es.NewRegistry(es.Types, operation.Types)
	if err != nil {
		t.Fatal(err)
	}
	s := &subjects{}
	return &operation.Handler{Access: everybody{}, Subjects: s, Runtime: &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{},
		NameKey: []byte("a key for tests"), Refusals: es.NewRefusals(), Logger: slog.New(slog.DiscardHandler),
	}}, s
}

func command(h *operation.Handler, user uuid.UUID, key string) es.Command {
	return es.Command{
		ID: h.Runtime.IDs.New(), Action: "test", Tenant: acme, Key: key, Digest: []byte("same"),
		Actor: es.Actor{Kind: es.ActorUser, User: user},
	}
}

func system(h *operation.Handler) es.Command {
	return es.System(h.Runtime.IDs.New(), "test", "test", acme)
}

func queued(t *testing.T, h *operation.Handler) uuid.UUID {
	t.Helper()
	id := h.Runtime.IDs.New()
	spec := operation.Spec{
		Kind: operation.PublishAlgorithm, Owner: alice, Subject: es.Ref{Kind: "algorithmVersion", ID: id},
		Work: operation.Work{Kind: operation.CopyOut, Space: id, Path: "code", Artefact: id},
	}
	if _, err := h.Queue(t.Context(), system(h), id, spec); err != nil {
		t.Fatal(err)
	}
	return id
}

func failed(t *testing.T, h *operation.Handler) uuid.UUID {
	t.Helper()
	id := queued(t, h)
	if _, err := h.Start(t.Context(), system(h), id); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Fail(t.Context(), system(h), id, 1, operation.Failure{Code: fault.CodeNotFound, Message: "gone"}, operation.Amount{DoneBytes: 1}); err != nil {
		t.Fatal(err)
	}
	return id
}

func history(t *testing.T, h *operation.Handler, id uuid.UUID) string {
	t.Helper()
	var names []string
	for env, err := range es.Events(t.Context(), h.Runtime, operation.Aggregate.Stream(acme, id), 0) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(env.Name, "operation."), ".v1"))
	}
	return strings.Join(names, " ")
}

func TestHandler(t *testing.T) {
	t.Run("OPS-02_retry_first_asks_the_subject", func(t *testing.T) {
		h, s := setup(t)
		id := failed(t, h)
		s.err = fault.New(fault.State, fault.CodeInvalidState, "The version was deleted.")
		if _, err := h.Retry(t.Context(), command(h, alice, ""), id); !fault.Is(err, fault.CodeInvalidState) {
			t.Errorf("refused with %v", err)
		}
		if got := history(t, h, id); got != "queued started failed" {
			t.Errorf("history %q", got)
		}
		s.err = nil
		r, err := h.Retry(t.Context(), command(h, alice, ""), id)
		if err != nil || r.Refs.Operation != id || r.Position == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if got := history(t, h, id); got != "queued started failed retried" {
			t.Errorf("history %q", got)
		}
		if op := s.asked[1]; op.Subject.ID != id || op.Attempt != 1 || op.Status != operation.Failed {
			t.Errorf("asked about %+v", op)
		}
	})
	t.Run("GEN-03_a_retry_cut_off_is_finished_by_the_same_key", func(t *testing.T) {
		h, s := setup(t)
		id := failed(t, h)
		s.err = errors.New("the machine went away")
		if _, err := h.Retry(t.Context(), command(h, alice, "key"), id); err == nil {
			t.Fatal("no error")
		}
		s.err = nil
		for i := range 3 {
			r, err := h.Retry(t.Context(), command(h, alice, "key"), id)
			if err != nil || r.Replayed != (i > 0) {
				t.Fatalf("try %d: %+v, %v", i, r, err)
			}
		}
		if got := history(t, h, id); got != "queued started failed retried" || len(s.asked) != 2 {
			t.Errorf("history %q, asked %d times", got, len(s.asked))
		}
	})
	t.Run("GEN-04_cancel_and_start_at_once_leave_one_truth", func(t *testing.T) {
		h, _ := setup(t)
		for range 10 {
			id := queued(t, h)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := h.Cancel(t.Context(), command(h, alice, ""), id); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := h.Start(t.Context(), system(h), id); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
			if got := history(t, h, id); got != "queued cancelled" && got != "queued started cancel_requested" {
				t.Errorf("history %q", got)
			}
		}
	})
	t.Run("OPS-03_dismissed_in_batch_each_on_its_own", func(t *testing.T) {
		h, _ := setup(t)
		waiting, ended, running, missing := queued(t, h), failed(t, h), queued(t, h), uuid.New()
		if _, err := h.Start(t.Context(), system(h), running); err != nil {
			t.Fatal(err)
		}
		ids := []uuid.UUID{waiting, ended, running, missing}
		for i := range 2 {
			r, err := h.Dismiss(t.Context(), command(h, alice, "key"), ids)
			if err != nil || r.Replayed != (i > 0) {
				t.Fatalf("%+v, %v", r, err)
			}
			for k, want := range []fault.Code{"", "", fault.CodeInvalidState, fault.CodeNotFound} {
				if got := r.Items[k]; got.ID != ids[k] || (want == "") != (got.Err == nil) || want != "" && !fault.Is(got.Err, want) {
					t.Errorf("item %d: %+v, want %q", k, got, want)
				}
			}
		}
		got := fmt.Sprint(history(t, h, waiting), "; ", history(t, h, ended), "; ", history(t, h, running))
		if got != "queued cancelled dismissed; queued started failed dismissed; queued started" {
			t.Errorf("history %s", got)
		}
	})
	t.Run("TEN-01_others_cannot_tell_that_it_exists", func(t *testing.T) {
		h, _ := setup(t)
		id := failed(t, h)
		for _, missing := range []uuid.UUID{id, uuid.New()} {
			_, cancel := h.Cancel(t.Context(), command(h, bob, ""), missing)
			_, retry := h.Retry(t.Context(), command(h, bob, ""), missing)
			if cancel.Error() != access.Missing().Error() || retry.Error() != access.Missing().Error() {
				t.Errorf("told %v, %v", cancel, retry)
			}
		}
	})
	t.Run("GEN-05_batches_have_a_size", func(t *testing.T) {
		h, _ := setup(t)
		if _, err := h.Dismiss(t.Context(), command(h, alice, ""), nil); !fault.Is(err, fault.CodeRequired) {
			t.Errorf("refused with %v", err)
		}
		if _, err := h.Dismiss(t.Context(), command(h, alice, ""), make([]uuid.UUID, 101)); !fault.Is(err, fault.CodeTooMany) {
			t.Errorf("refused with %v", err)
		}
	})
}
