package operation

import (
	"github.com/google/uuid"

	"tallyard/domain/es"
)

// Types are the events of operations under their stored names.
var Types = []es.TypeDef{
	es.Type[OperationQueued]("operation.queued.v1"),
	es.Type[OperationStarted]("operation.started.v1"),
	es.Type[OperationSucceeded]("operation.succeeded.v1"),
	es.Type[OperationFailed]("operation.failed.v1"),
	es.Type[OperationCancelRequested]("operation.cancel_requested.v1"),
	es.Type[OperationCancelled]("operation.cancelled.v1"),
	es.Type[OperationRetried]("operation.retried.v1"),
	es.Type[OperationDismissed]("operation.dismissed.v1"),
	es.Type[OperationWithdrawn]("operation.withdrawn.v1"),
}

// OperationQueued opens an operation.
type OperationQueued struct {
	Kind    Kind      `json:"kind"`
	Subject es.Ref    `json:"subject"`
	Owner   uuid.UUID `json:"owner"`
	Project uuid.UUID `json:"project,omitzero"`
	Work    Work      `json:"work"`
}

// Changes implements es.Event.
func (e OperationQueued) Changes() []es.Change {
	c := []es.Change{
		es.Set("kind", e.Kind), es.Set("state", Queued), es.Set("subject", e.Subject.ID),
		es.Set("owner", e.Owner), es.Set("work", e.Work.Kind),
	}
	if e.Work.Path != "" {
		c = append(c, es.Set("path", e.Work.Path))
	}
	return c
}

// OperationStarted says that the worker began an attempt.
type OperationStarted struct {
	Attempt int `json:"attempt"`
}

// Changes implements es.Event.
func (e OperationStarted) Changes() []es.Change {
	return []es.Change{es.Moved("state", Queued, Running), es.Set("attempt", e.Attempt)}
}

// OperationSucceeded says that all of the work is done.
type OperationSucceeded struct {
	Result Result `json:"result"`
	Amount
}

// Changes implements es.Event.
func (e OperationSucceeded) Changes() []es.Change {
	c := []es.Change{es.Moved("state", Running, Succeeded)}
	if e.Result.Fingerprint != "" {
		c = append(c, es.Set("fingerprint", e.Result.Fingerprint))
	}
	return append(c, es.Set("files", e.Result.Files), es.Set("bytes", e.Result.Bytes))
}

// OperationFailed says why the work ended before it was done. What is done
// stays for a retry.
type OperationFailed struct {
	Failure
	Amount
}

// Changes implements es.Event.
func (e OperationFailed) Changes() []es.Change {
	return []es.Change{es.Moved("state", Running, Failed), es.Set("error", e.Failure)}
}

// OperationCancelRequested asks the worker to give up an operation that runs, or
// that waits to be tried again, and to remove what it left.
type OperationCancelRequested struct{}

// Changes implements es.Event.
func (OperationCancelRequested) Changes() []es.Change {
	return []es.Change{es.Moved("cancelRequested", false, true)}
}

// OperationCancelled says that the operation was given up and left nothing behind.
type OperationCancelled struct {
	From Status `json:"from"`
}

// Changes implements es.Event.
func (e OperationCancelled) Changes() []es.Change {
	return []es.Change{es.Moved("state", e.From, Cancelled)}
}

// OperationRetried puts an operation that failed or was cancelled in line again.
type OperationRetried struct {
	From    Status `json:"from"`
	Attempt int    `json:"attempt"`
}

// Changes implements es.Event.
func (e OperationRetried) Changes() []es.Change {
	return []es.Change{es.Moved("state", e.From, Queued), es.Set("attempt", e.Attempt)}
}

// OperationDismissed takes an operation off its owner's list.
type OperationDismissed struct{}

// Changes implements es.Event.
func (OperationDismissed) Changes() []es.Change {
	return []es.Change{es.Moved("dismissed", false, true)}
}

// OperationWithdrawn says that what the operation was done for is gone: it is
// never tried again.
type OperationWithdrawn struct{}

// Changes implements es.Event.
func (OperationWithdrawn) Changes() []es.Change {
	return []es.Change{es.Moved("withdrawn", false, true)}
}
