package operation

import (
	"fmt"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// queue opens the operation; queueing the same again changes nothing.
func queue(spec Spec) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		switch {
		case s.Exists() && s.Spec() == spec:
			return nil, nil
		case s.Exists():
			// An id is drawn for one purpose; a second one is a mistake of the program.
			return nil, fmt.Errorf("operation %s was queued for something else", s.ID)
		case !spec.Kind.Valid() || !spec.Work.complete():
			return nil, fmt.Errorf("operation of kind %q with work %q is not complete", spec.Kind, spec.Work.Kind)
		}
		return []es.Event{OperationQueued(spec)}, nil
	}
}

// start begins an attempt. One that runs already is left as it is: its worker
// died and the one that asks goes on with it (OPS-02).
func start(s State) ([]es.Event, error) {
	if s.Status != Queued {
		return nil, nil
	}
	return []es.Event{OperationStarted{Attempt: s.Attempt}}, nil
}

// succeed ends a running operation, unless its cancellation was asked for: an
// accepted cancellation is kept, so the worker undoes the work instead.
func succeed(attempt int, result Result, amount Amount) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if s.Status != Running || s.Attempt != attempt || s.CancelRequested {
			return nil, nil
		}
		return []es.Event{OperationSucceeded{Result: result, Amount: amount}}, nil
	}
}

// fail is succeed's counterpart, with the same rule for cancellations.
func fail(attempt int, failure Failure, amount Amount) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if s.Status != Running || s.Attempt != attempt || s.CancelRequested {
			return nil, nil
		}
		return []es.Event{OperationFailed{Failure: failure, Amount: amount}}, nil
	}
}

// abandon ends a running operation whose cancellation can't be completed,
// because what it left behind could not be removed.
func abandon(attempt int, failure Failure, amount Amount) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if s.Status != Running || s.Attempt != attempt {
			return nil, nil
		}
		return []es.Event{OperationFailed{Failure: failure, Amount: amount}}, nil
	}
}

// endCancelled ends a running operation whose cancellation was asked for, once
// nothing of it is left.
func endCancelled(s State) ([]es.Event, error) {
	if s.Status != Running || !s.CancelRequested {
		return nil, nil
	}
	return []es.Event{OperationCancelled{From: Running}}, nil
}

// giveUp cancels an operation that waits: at once when it was never begun; one
// that waits for another attempt has left something behind, which the worker
// removes first (OPS-02).
func giveUp(s State) []es.Event {
	if s.Attempt > 1 && s.Work.Kind.Undoable() {
		return []es.Event{OperationCancelRequested{}}
	}
	return []es.Event{OperationCancelled{From: Queued}}
}

// cancel is the owner's or a tenant admin's (OPS-03). What waits is given up at
// once, what runs is ended by the worker.
func cancel(g access.Grants) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if err := mustChange(g, s); err != nil {
			return nil, err
		}
		switch {
		case s.Status == Cancelled, s.CancelRequested:
			return nil, nil
		case s.Status == Queued:
			return giveUp(s), nil
		case s.Status == Running && !s.Work.Kind.Undoable():
			return nil, invalidState(s, "The files are being removed already, which can't be undone; wait for the end.")
		case s.Status == Running:
			return []es.Event{OperationCancelRequested{}}, nil
		}
		return nil, invalidState(s, "This operation has ended; there is nothing left to cancel.")
	}
}

// withdraw ends an operation whose subject is gone, with nothing left of it:
// not begun it is cancelled, running it is given up, and what a failed copy left
// for the next attempt is removed as if that had been begun and given up.
func withdraw(s State) ([]es.Event, error) {
	if !s.Exists() || s.Withdrawn || s.Status == Succeeded {
		return nil, nil
	}
	var events []es.Event
	switch {
	case s.CancelRequested:
	case s.Status == Queued:
		events = giveUp(s)
	case s.Status == Running && s.Work.Kind.Undoable():
		events = []es.Event{OperationCancelRequested{}}
	case s.Status == Failed && s.Work.Kind.Leaves():
		events = []es.Event{OperationRetried{From: Failed, Attempt: s.Attempt + 1}, OperationCancelRequested{}}
	}
	return append(events, OperationWithdrawn{}), nil
}

// requeue puts an operation in line again. The attempt that it is to follow
// may be named, so that an order that comes late does not start another one.
func requeue(after int) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if !s.Exists() {
			return nil, access.Missing()
		}
		if !s.Retriable() || after != 0 && after != s.Attempt {
			return nil, nil
		}
		return []es.Event{OperationRetried{From: s.Status, Attempt: s.Attempt + 1}}, nil
	}
}

// mayRetry tells whether a person may have the operation tried again.
func mayRetry(g access.Grants, s State) error {
	if err := mustChange(g, s); err != nil {
		return err
	}
	switch {
	case s.Withdrawn:
		return invalidState(s, "What this was done for is gone; there is nothing left to retry.")
	case s.Retriable():
		return nil
	case s.Status == Succeeded:
		return invalidState(s, "This operation has succeeded; there is nothing to retry.")
	}
	return invalidState(s, "This operation has not ended; wait for its end, or cancel it first.")
}

// dismiss takes an operation off the list: its owner only, never a running one
// (OPS-03). One that waits is cancelled by it.
func dismiss(g access.Grants) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if err := mustOwn(g, s); err != nil {
			return nil, err
		}
		switch {
		case s.Dismissed:
			return nil, nil
		case s.Status == Running:
			return nil, invalidState(s, "This operation is running; cancel it or wait for its end, then remove it from the list.")
		case s.Status == Queued && !s.CancelRequested:
			return append(giveUp(s), OperationDismissed{}), nil
		}
		return []es.Event{OperationDismissed{}}, nil
	}
}

func mustChange(g access.Grants, s State) error {
	if !s.Exists() {
		return access.Missing()
	}
	return access.MustChange(g, s.Thing())
}

func mustOwn(g access.Grants, s State) error {
	if err := mustChange(g, s); err != nil {
		return err
	}
	if s.Owner != g.User {
		return fault.New(fault.Forbidden, fault.CodeForbidden, "The list belongs to the owner of the operation; only they remove something from it.")
	}
	return nil
}

func invalidState(s State, message string) *fault.Fault {
	return fault.New(fault.State, fault.CodeInvalidState, message).At("id").With("state", string(s.Status))
}
