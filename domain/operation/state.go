// Package operation holds long operations on files: copies and removals of
// directories, and later exports, cache fills and the like (OPS). It knows what
// is to be done and how far it came as a state; the doing is the worker's
// (processes/operations), and progress in bytes is a table, never an event.
package operation

import (
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Category is the category of the streams and the kind of an operation's Ref.
const Category = "operation"

// Kind tells people what an operation is for.
type Kind string

// Kinds of operations.
const (
	// PublishAlgorithm copies a directory of a space out to a published artefact.
	PublishAlgorithm Kind = "PUBLISH_ALGORITHM"
	// CopyAlgorithm copies a published artefact into a personal space, for a new version.
	CopyAlgorithm Kind = "COPY_ALGORITHM"
	// EditAlgorithm is the same copy, for an edit.
	EditAlgorithm Kind = "EDIT_ALGORITHM"
	// DeleteAlgorithmFiles removes a published artefact.
	DeleteAlgorithmFiles Kind = "DELETE_ALGORITHM_FILES"
	// DeleteDirectory removes a directory of a space with everything in it.
	DeleteDirectory Kind = "DELETE_DIRECTORY"
	// CacheDataSet copies a data set into the node cache.
	CacheDataSet Kind = "CACHE_DATA_SET"
	// RefreshDataSet copies what has changed of a data set into the node cache.
	RefreshDataSet Kind = "REFRESH_DATA_SET"
	// UnzipDataSet unpacks the archives in the node cache of a data set.
	UnzipDataSet Kind = "UNZIP_DATA_SET"
	// ClearDataSetCache removes the node cache of a data set that is gone.
	ClearDataSetCache Kind = "CLEAR_DATA_SET_CACHE"
)

// Kinds are all kinds, in the order in which they are shown.
func Kinds() []Kind {
	return []Kind{
		PublishAlgorithm, CopyAlgorithm, EditAlgorithm, DeleteAlgorithmFiles, DeleteDirectory,
		CacheDataSet, RefreshDataSet, UnzipDataSet, ClearDataSetCache,
	}
}

// Valid tells whether the kind exists.
func (k Kind) Valid() bool {
	for _, known := range Kinds() {
		if k == known {
			return true
		}
	}
	return false
}

// WorkKind tells the worker what to do. It is apart from [Kind], so that a new
// purpose needs no new work, and new work no new worker.
type WorkKind string

// Kinds of work.
const (
	// CopyOut copies a directory of a space to an artefact.
	CopyOut WorkKind = "COPY_OUT"
	// CopyIn copies an artefact to a new directory of a space.
	CopyIn WorkKind = "COPY_IN"
	// RemoveArtefact removes an artefact.
	RemoveArtefact WorkKind = "REMOVE_ARTEFACT"
	// RemoveDirectory removes a directory of a space, when it is still the one
	// that was meant.
	RemoveDirectory WorkKind = "REMOVE_DIRECTORY"
	// FillCache makes the cache of a data set equal to a directory.
	FillCache WorkKind = "FILL_CACHE"
	// UnpackCache unpacks the archives in the cache of a data set.
	UnpackCache WorkKind = "UNPACK_CACHE"
	// ClearCache removes the cache of a data set.
	ClearCache WorkKind = "CLEAR_CACHE"
)

// Undoable tells whether the work can be given up half way with nothing left
// behind. A removal can't: what is gone is gone, so it is carried to its end.
func (k WorkKind) Undoable() bool {
	return k != RemoveArtefact && k != RemoveDirectory && k != ClearCache
}

// Leaves tells whether failed work leaves something behind for the next attempt
// that nobody else removes: a copy into a space does, while what lies beside an
// artefact goes with it.
func (k WorkKind) Leaves() bool { return k == CopyIn || k == FillCache || k == UnpackCache }

// Ordered tells whether the work of one owner is done in the order in which it
// was queued. Copies are, so that one person can't take all places at once.
func (k WorkKind) Ordered() bool {
	return k == CopyOut || k == CopyIn || k == FillCache || k == UnpackCache
}

// Work is what the worker does. Path is inside the space, never one of the host.
type Work struct {
	Kind  WorkKind  `json:"kind"`
	Space uuid.UUID `json:"space,omitzero"`
	Path  string    `json:"path,omitempty"`
	// Artefact is a published artefact, or the data set whose cache it is.
	Artefact uuid.UUID `json:"artefact,omitzero"`
	// Directory tells the directory at the path from others that come there later.
	Directory string `json:"directory,omitempty"`
}

// complete tells whether the work names all that its kind needs.
func (w Work) complete() bool {
	switch w.Kind {
	case CopyOut, CopyIn, FillCache:
		return w.Space != uuid.Nil && w.Path != "" && w.Artefact != uuid.Nil
	case RemoveArtefact, UnpackCache, ClearCache:
		return w.Artefact != uuid.Nil
	case RemoveDirectory:
		return w.Space != uuid.Nil && w.Path != "" && w.Directory != ""
	}
	return false
}

// Spec is what an operation is queued with.
type Spec struct {
	Kind    Kind
	Subject es.Ref // the thing it is done for, such as a version of an algorithm
	Owner   uuid.UUID
	Project uuid.UUID
	Work    Work
}

// Status is where an operation stands (OPS-01).
type Status string

// Statuses.
const (
	Queued    Status = "QUEUED"
	Running   Status = "RUNNING"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
	Cancelled Status = "CANCELLED"
)

// Ended tells whether nothing happens any more until somebody acts.
func (s Status) Ended() bool { return s == Succeeded || s == Failed || s == Cancelled }

// Result is what a finished copy came to.
type Result struct {
	// Fingerprint is the digest over names and contents.
	Fingerprint string `json:"fingerprint,omitempty"`
	Files       int64  `json:"files,omitempty"`
	Bytes       int64  `json:"bytes,omitempty"`
}

// Amount is how much of the work is done.
type Amount struct {
	DoneBytes  int64 `json:"doneBytes"`
	TotalBytes int64 `json:"totalBytes"`
}

// Failure says why an operation failed, to people: no host path, no SQL, no stack.
type Failure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// State is one operation.
type State struct {
	Tenant  uuid.UUID `json:"tenant"`
	ID      uuid.UUID `json:"id"`
	Kind    Kind      `json:"kind"`
	Subject es.Ref    `json:"subject"`
	Owner   uuid.UUID `json:"owner"`
	Project uuid.UUID `json:"project,omitzero"`
	Work    Work      `json:"work"`
	Status  Status    `json:"status"`
	// Attempt counts from 1 and grows with every retry.
	Attempt int       `json:"attempt"`
	Amount  Amount    `json:"amount"`
	Result  Result    `json:"result"`
	Failure *Failure  `json:"failure,omitempty"`
	Queued  time.Time `json:"queued"` // for the first time; retries do not move it
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// CancelRequested: the owner wants it ended; the worker does it, since it runs
	// or has left something behind.
	CancelRequested bool `json:"cancelRequested,omitempty"`
	// Dismissed: the owner took it off the list.
	Dismissed bool `json:"dismissed,omitempty"`
	// Withdrawn: what it was done for is gone, so there is nothing to retry.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// Exists tells whether the operation was ever queued.
func (s State) Exists() bool { return s.Kind != "" }

// Retriable tells whether another attempt could be made.
func (s State) Retriable() bool {
	return (s.Status == Failed || s.Status == Cancelled) && !s.Withdrawn
}

// Ref points at the operation.
func (s State) Ref() es.Ref { return es.Ref{Kind: Category, ID: s.ID} }

// Spec is what the operation was queued with.
func (s State) Spec() Spec {
	return Spec{Kind: s.Kind, Subject: s.Subject, Owner: s.Owner, Project: s.Project, Work: s.Work}
}

// Thing is the operation for the rules of access: it is its owner's alone;
// tenant admins and auditors see it, as they see everything.
func (s State) Thing() access.Thing {
	return access.Thing{Tenant: s.Tenant, Project: s.Project, Owner: s.Owner, Visibility: access.Private}
}

// Aggregate folds the events of an operation.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 2, Evolve: evolve}

func evolve(s State, env es.Envelope) State {
	switch e := env.Event.(type) {
	case OperationQueued:
		s = State{
			Tenant: env.Stream.Tenant, ID: env.Root().ID,
			Kind: e.Kind, Subject: e.Subject, Owner: e.Owner, Project: e.Project, Work: e.Work,
			Status: Queued, Attempt: 1, Queued: env.Meta.Time,
		}
	case OperationStarted:
		s.Status, s.Attempt, s.Started, s.Ended = Running, e.Attempt, env.Meta.Time, time.Time{}
	case OperationSucceeded:
		s.Result, s.Amount = e.Result, e.Amount
		s = s.end(Succeeded, env.Meta.Time)
	case OperationFailed:
		failure := e.Failure
		s.Failure, s.Amount = &failure, e.Amount
		s = s.end(Failed, env.Meta.Time)
	case OperationCancelRequested:
		s.CancelRequested = true
	case OperationCancelled:
		// Nothing of the work is left behind, so nothing is done.
		s.Amount = Amount{}
		s = s.end(Cancelled, env.Meta.Time)
	case OperationRetried:
		// A retried one is on the list again, whoever took it off before.
		s.Status, s.Attempt, s.Failure, s.Dismissed = Queued, e.Attempt, nil, false
		s.Started, s.Ended = time.Time{}, time.Time{}
	case OperationDismissed:
		s.Dismissed = true
	case OperationWithdrawn:
		s.Withdrawn = true
	}
	return s
}

func (s State) end(status Status, at time.Time) State {
	s.Status, s.Ended, s.CancelRequested = status, at, false
	return s
}
