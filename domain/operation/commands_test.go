package operation

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

var (
	tenant  = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	project = uuid.MustParse("0198a000-0000-7000-8000-000000000002")
	alice   = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	bob     = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
	opID    = uuid.MustParse("0198a000-0000-7000-8000-0000000000f1")
	version = uuid.MustParse("0198a000-0000-7000-8000-0000000000e1")
	thing   = uuid.MustParse("0198a000-0000-7000-8000-0000000000e0")
	space   = uuid.MustParse("0198a000-0000-7000-8000-0000000000d1")
	copied  = uuid.MustParse("0198a000-0000-7000-8000-0000000000c1")
	begin   = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
)

func publication() Spec {
	return Spec{
		Kind: PublishAlgorithm, Subject: es.Ref{Kind: "algorithmVersion", ID: version, Parent: thing},
		Owner: alice, Project: project,
		Work: Work{Kind: CopyOut, Space: space, Path: "code/train", Artefact: copied},
	}
}

func copying() Spec {
	s := publication()
	s.Kind, s.Work.Kind = CopyAlgorithm, CopyIn
	return s
}

func removal() Spec {
	s := publication()
	s.Kind, s.Work = DeleteAlgorithmFiles, Work{Kind: RemoveArtefact, Artefact: copied}
	return s
}

func fold(events ...es.Event) State {
	var s State
	for i, e := range events {
		s = evolve(s, es.Envelope{
			Stream: es.StreamOf(Category, tenant, opID), Revision: es.Revision(i), Event: e,
			Meta: es.Metadata{Time: begin.Add(time.Duration(i) * time.Second)},
		})
	}
	return s
}

func in(status Status, spec Spec) State {
	events := []es.Event{OperationQueued(spec)}
	switch status {
	case Running:
		events = append(events, OperationStarted{Attempt: 1})
	case Succeeded:
		events = append(events, OperationStarted{Attempt: 1}, OperationSucceeded{Result: Result{Fingerprint: "f", Files: 1, Bytes: 2}})
	case Failed:
		events = append(events, OperationStarted{Attempt: 1}, OperationFailed{Failure: Failure{Code: fault.CodeInternal, Message: "m"}})
	case Cancelled:
		events = append(events, OperationCancelled{From: Queued})
	case Queued:
	}
	return fold(events...)
}

func user(id uuid.UUID, roles ...access.Role) access.Grants {
	return access.Grants{Tenant: tenant, User: id, Active: true, Roles: roles, Projects: map[uuid.UUID]access.Role{project: access.Member}}
}

func names(t *testing.T, events []es.Event) string {
	t.Helper()
	r, err := es.NewRegistry(Types)
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, e := range events {
		raw, err := r.Encode(e, es.Metadata{})
		if err != nil {
			t.Fatal(err)
		}
		out += " " + raw.Type
	}
	return out
}

func codeOf(err error) fault.Code {
	faults, _ := fault.All(err)
	if len(faults) == 0 {
		return ""
	}
	return faults[0].Code
}

type expectation struct {
	name   string
	decide es.Decide[State]
	state  State
	events string
	code   fault.Code
}

func (x expectation) run(t *testing.T) {
	t.Helper()
	events, err := x.decide(x.state)
	if got := names(t, events); got != x.events {
		t.Errorf("events %q, want %q", got, x.events)
	}
	if codeOf(err) != x.code || (err != nil) != (x.code != "") {
		t.Errorf("refusal %v, want code %q", err, x.code)
	}
}

func TestCancel(t *testing.T) {
	const asked, ended = " operation.cancel_requested.v1", " operation.cancelled.v1"
	for _, x := range []expectation{
		{"OPS-03_queued_is_cancelled_at_once", cancel(user(alice)), in(Queued, publication()), ended, ""},
		{"OPS-03_running_is_ended_by_the_worker", cancel(user(alice)), in(Running, publication()), asked, ""},
		{"OPS-03_asked_twice_is_asked_once", cancel(user(alice)), fold(OperationQueued(publication()), OperationStarted{1}, OperationCancelRequested{}), "", ""},
		{"OPS-03_cancelled_stays_cancelled", cancel(user(alice)), in(Cancelled, publication()), "", ""},
		{"OPS-03_succeeded_is_refused", cancel(user(alice)), in(Succeeded, publication()), "", fault.CodeInvalidState},
		{"OPS-03_failed_is_refused", cancel(user(alice)), in(Failed, publication()), "", fault.CodeInvalidState},
		{"OPS-03_queued_removal_can_be_cancelled", cancel(user(alice)), in(Queued, removal()), ended, ""},
		{"OPS-02_running_removal_cannot_be_undone", cancel(user(alice)), in(Running, removal()), "", fault.CodeInvalidState},
		{"OPS-03_tenant_admin_may", cancel(user(bob, access.TenantAdmin)), in(Queued, publication()), ended, ""},
		{"TEN-01_others_do_not_see_it", cancel(user(bob)), in(Queued, publication()), "", fault.CodeNotFound},
		{"TEN-02_auditors_change_nothing", cancel(user(bob, access.Auditor)), in(Queued, publication()), "", fault.CodeForbidden},
		{"TEN-02_not_even_their_own", cancel(user(alice, access.Auditor)), in(Queued, publication()), "", fault.CodeForbidden},
		{"TEN-07_suspended_may_not", cancel(access.Grants{Tenant: tenant, User: alice}), in(Queued, publication()), "", fault.CodeNotFound},
		{"TEN-01_a_missing_one", cancel(user(alice)), State{}, "", fault.CodeNotFound},
	} {
		t.Run(x.name, x.run)
	}
}

func TestDismiss(t *testing.T) {
	const gone = " operation.dismissed.v1"
	for _, x := range []expectation{
		{"OPS-03_succeeded", dismiss(user(alice)), in(Succeeded, publication()), gone, ""},
		{"OPS-03_failed", dismiss(user(alice)), in(Failed, publication()), gone, ""},
		{"OPS-03_cancelled", dismiss(user(alice)), in(Cancelled, publication()), gone, ""},
		{"OPS-03_queued_is_cancelled_by_it", dismiss(user(alice)), in(Queued, publication()), " operation.cancelled.v1" + gone, ""},
		{"OPS-03_running_is_refused", dismiss(user(alice)), in(Running, publication()), "", fault.CodeInvalidState},
		{"OPS-03_twice_is_once", dismiss(user(alice)), fold(OperationQueued(publication()), OperationCancelled{Queued}, OperationDismissed{}), "", ""},
		{"OPS-03_the_owner_only", dismiss(user(bob, access.TenantAdmin)), in(Failed, publication()), "", fault.CodeForbidden},
		{"TEN-01_others_do_not_see_it", dismiss(user(bob)), in(Failed, publication()), "", fault.CodeNotFound},
	} {
		t.Run(x.name, x.run)
	}
}

func TestRequeue(t *testing.T) {
	const again = " operation.retried.v1"
	for _, x := range []expectation{
		{"OPS-02_failed", requeue(0), in(Failed, publication()), again, ""},
		{"OPS-02_cancelled", requeue(1), in(Cancelled, publication()), again, ""},
		{"OPS-02_an_order_that_comes_late_starts_nothing", requeue(1), fold(OperationQueued(publication()), OperationCancelled{Queued}, OperationRetried{Cancelled, 2}, OperationCancelled{Queued}), "", ""},
		{"OPS-02_queued_stays", requeue(0), in(Queued, publication()), "", ""},
		{"OPS-02_running_stays", requeue(0), in(Running, publication()), "", ""},
		{"OPS-02_succeeded_stays", requeue(0), in(Succeeded, publication()), "", ""},
		{"OPS-02_missing", requeue(0), State{}, "", fault.CodeNotFound},
	} {
		t.Run(x.name, x.run)
	}
	t.Run("OPS-02_retried_is_on_the_list_again", func(t *testing.T) {
		s := fold(OperationQueued(publication()), OperationCancelled{Queued}, OperationDismissed{}, OperationRetried{Cancelled, 2})
		if s.Dismissed || s.Status != Queued || s.Attempt != 2 || s.Failure != nil || !s.Ended.IsZero() || !s.Queued.Equal(begin) {
			t.Errorf("state after the retry: %+v", s)
		}
	})
}

func TestMayRetry(t *testing.T) {
	for status, want := range map[Status]fault.Code{
		Queued: fault.CodeInvalidState, Running: fault.CodeInvalidState, Succeeded: fault.CodeInvalidState, Failed: "", Cancelled: "",
	} {
		t.Run("OPS-02_"+string(status), func(t *testing.T) {
			if got := codeOf(mayRetry(user(alice), in(status, publication()))); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	t.Run("ALG-11_not_what_nobody_wants_any_more", func(t *testing.T) {
		s := fold(OperationQueued(publication()), OperationCancelled{Queued}, OperationWithdrawn{})
		if got := codeOf(mayRetry(user(alice), s)); got != fault.CodeInvalidState || s.Retriable() {
			t.Errorf("got %q, retriable %v", got, s.Retriable())
		}
		if events, err := requeue(0)(s); err != nil || len(events) > 0 {
			t.Errorf("a process starts it again: %v, %v", events, err)
		}
	})
	t.Run("TEN-01_others_do_not_see_it", func(t *testing.T) {
		if got := codeOf(mayRetry(user(bob), in(Failed, publication()))); got != fault.CodeNotFound {
			t.Errorf("got %q", got)
		}
	})
}

func TestWorker(t *testing.T) {
	cancelling := fold(OperationQueued(publication()), OperationStarted{1}, OperationCancelRequested{})
	failure := Failure{Code: fault.CodeInternal, Message: "m"}
	const withdrawn = " operation.withdrawn.v1"
	for _, x := range []expectation{
		{"OPS-01_starts_what_waits", start, in(Queued, publication()), " operation.started.v1", ""},
		{"OPS-02_goes_on_with_what_runs", start, in(Running, publication()), "", ""},
		{"OPS-03_leaves_what_was_cancelled", start, in(Cancelled, publication()), "", ""},
		{"OPS-01_succeeds", succeed(1, Result{}, Amount{}), in(Running, publication()), " operation.succeeded.v1", ""},
		{"OPS-02_an_older_attempt_ends_nothing", succeed(2, Result{}, Amount{}), in(Running, publication()), "", ""},
		{"OPS-03_an_accepted_cancellation_is_kept", succeed(1, Result{}, Amount{}), cancelling, "", ""},
		{"OPS-01_fails", fail(1, failure, Amount{}), in(Running, publication()), " operation.failed.v1", ""},
		{"OPS-03_a_failure_is_no_end_of_a_cancelled_one", fail(1, failure, Amount{}), cancelling, "", ""},
		{"OPS-02_fails_when_it_cannot_be_undone", abandon(1, failure, Amount{}), cancelling, " operation.failed.v1", ""},
		{"OPS-03_ends_as_cancelled", endCancelled, cancelling, " operation.cancelled.v1", ""},
		{"OPS-03_only_when_asked", endCancelled, in(Running, publication()), "", ""},
		{"OPS-01_the_same_again_is_queued_once", queue(publication()), in(Queued, publication()), "", ""},
		{"OPS-01_queued", queue(publication()), State{}, " operation.queued.v1", ""},
		{"OPS-02_the_subject_gone_what_waits_is_cancelled", withdraw, in(Queued, publication()), " operation.cancelled.v1" + withdrawn, ""},
		{"OPS-02_the_subject_gone_what_runs_is_given_up", withdraw, in(Running, publication()), " operation.cancel_requested.v1" + withdrawn, ""},
		{"OPS-02_the_subject_gone_a_removal_goes_on", withdraw, in(Running, removal()), withdrawn, ""},
		{"OPS-02_the_subject_gone_a_failed_publication_stays_failed", withdraw, in(Failed, publication()), withdrawn, ""},
		{"OPS-02_the_subject_gone_what_a_failed_copy_left_is_removed", withdraw, in(Failed, copying()), " operation.retried.v1 operation.cancel_requested.v1" + withdrawn, ""},
		{"OPS-02_the_subject_gone_what_is_done_stays", withdraw, in(Succeeded, copying()), "", ""},
		{"OPS-02_the_subject_gone_twice_is_once", withdraw, fold(OperationQueued(publication()), OperationCancelled{Queued}, OperationWithdrawn{}), "", ""},
	} {
		t.Run(x.name, x.run)
	}
	t.Run("OPS-01_one_id_has_one_purpose", func(t *testing.T) {
		if _, err := queue(removal())(in(Queued, publication())); err == nil {
			t.Error("queued for something else without an error")
		}
		incomplete := publication()
		incomplete.Work.Path = ""
		if _, err := queue(incomplete)(State{}); err == nil {
			t.Error("incomplete work was queued")
		}
	})
}

// TestStates drives an operation with random commands and holds that every
// state is reached by the rules only.
func TestStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := rapid.SampledFrom([]Spec{publication(), removal()}).Draw(t, "spec")
		events := []es.Event{OperationQueued(spec)}
		for range rapid.IntRange(0, 25).Draw(t, "commands") {
			before := fold(events...)
			attempt := rapid.IntRange(1, 3).Draw(t, "attempt")
			commands := map[string]es.Decide[State]{
				"start": start, "succeed": succeed(attempt, Result{}, Amount{}), "fail": fail(attempt, Failure{}, Amount{}),
				"abandon": abandon(attempt, Failure{}, Amount{}), "endCancelled": endCancelled, "cancel": cancel(user(alice)),
				"withdraw": withdraw, "requeue": requeue(0), "dismiss": dismiss(user(alice)),
			}
			which := rapid.SampledFrom([]string{"start", "succeed", "fail", "abandon", "endCancelled", "cancel", "withdraw", "requeue", "dismiss"}).Draw(t, "command")
			more, err := commands[which](before)
			if err != nil && len(more) > 0 {
				t.Fatal("refused and changed")
			}
			events = append(events, more...)
			after := fold(events...)
			if problem := impossible(before, after, which); problem != nil {
				t.Fatalf("%s: %v\nbefore %+v\nafter  %+v", which, problem, before, after)
			}
		}
	})
}

func impossible(before, after State, command string) error {
	switch {
	case after.Dismissed && after.Status == Running && !after.CancelRequested:
		return errors.New("a running one was taken off the list")
	case after.CancelRequested && after.Status != Running && (after.Status != Queued || after.Attempt == 1):
		return errors.New("cancellation asked for of one that has nothing to undo")
	case after.CancelRequested && !after.Work.Kind.Undoable():
		return errors.New("cancellation accepted for what can't be undone")
	case before.CancelRequested && after.Status == Succeeded:
		return errors.New("an accepted cancellation ended in success")
	case after.Status.Ended() != !after.Ended.IsZero():
		return errors.New("end and time of end differ")
	case before.Status.Ended() && after.Status != before.Status && command != "requeue":
		return errors.New("an ended one changed")
	case after.Attempt < before.Attempt:
		return errors.New("attempts went back")
	case (after.Status == Failed) != (after.Failure != nil):
		return errors.New("a failure without its reason, or a reason without a failure")
	}
	return nil
}
