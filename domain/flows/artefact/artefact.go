// Package artefact joins algorithms and operations: what a version needs done
// with its files becomes an operation, and the end of the operation carries
// the version on.
package artefact

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/operation"
)

// Name is the process's name; its checkpoint hangs on it.
const Name = "artefacts"

// Flow is the process and what it gives commands to.
type Flow struct {
	Runtime    *es.Runtime
	Algorithms *algorithm.Handler
	Operations *operation.Handler
}

// Process is the flow as the driver runs it.
func (f *Flow) Process() es.Process {
	return es.Process{Name: Name, On: map[string]func(context.Context, es.Envelope) error{
		"algorithm.version_added.v1":       f.onAdded,
		"algorithm.version_edited.v1":      f.onEdited,
		"algorithm.publication_started.v1": f.onPublication,
		"algorithm.deletion_started.v1":    f.onDeletion,
		"algorithm.version_deleted.v1":     f.onVersionDeleted,
		"algorithm.deleted.v1":             f.onDeleted,
		"operation.succeeded.v1":           f.onSucceeded,
		"operation.failed.v1":              f.onFailed,
		"operation.cancelled.v1":           f.onCancelled,
		// A retry of a person who died half way is finished here.
		"algorithm.preparation_retried.v1": f.onRetried,
		"algorithm.publication_retried.v1": f.onRetried,
		"algorithm.deletion_retried.v1":    f.onRetried,
	}}
}

func (f *Flow) onAdded(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(algorithm.VersionAdded)
	if ev.Copy == nil {
		return nil
	}
	return f.copyIn(ctx, e, operation.CopyAlgorithm, ev.Version, ev.Settings.Source, *ev.Copy)
}

func (f *Flow) onEdited(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(algorithm.VersionEdited)
	if ev.Copy == nil {
		return nil
	}
	// Not from the event: an edit that copies to the same place as before does
	// not change the source. Until the copy ended nobody else changes it.
	s, err := f.state(ctx, e)
	if err != nil {
		return err
	}
	v, ok := s.Version(ev.Version)
	if !ok || v.Operation != ev.Copy.Operation {
		return nil
	}
	return f.copyIn(ctx, e, operation.EditAlgorithm, ev.Version, v.Settings.Source, *ev.Copy)
}

func (f *Flow) copyIn(ctx context.Context, e es.Envelope, kind operation.Kind, version uuid.UUID, src algorithm.Source, c algorithm.Copy) error {
	if src.Script == nil {
		return nil
	}
	return f.queue(ctx, e, c.Operation, kind, version, operation.Work{
		Kind: operation.CopyIn, Space: src.Script.Space, Path: src.Script.Directory, Artefact: c.Artefact,
	})
}

func (f *Flow) onPublication(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(algorithm.PublicationStarted)
	s, err := f.state(ctx, e)
	if err != nil {
		return err
	}
	v, ok := s.Version(ev.Version)
	if !ok || v.Settings.Source.Script == nil {
		return nil
	}
	owner := e.Meta.Actor.User
	if !e.Meta.Actor.Person() && v.Approval != nil {
		owner = v.Approval.By // who asked for it; the yes of another person began it
	}
	return f.queueFor(ctx, e, owner, ev.Operation, operation.PublishAlgorithm, ev.Version, operation.Work{
		Kind: operation.CopyOut, Space: v.Settings.Source.Script.Space, Path: v.Settings.Source.Script.Directory, Artefact: ev.Version,
	})
}

func (f *Flow) onDeletion(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(algorithm.DeletionStarted)
	return f.queue(ctx, e, ev.Operation, operation.DeleteAlgorithmFiles, ev.Version, operation.Work{
		Kind: operation.RemoveArtefact, Artefact: ev.Version,
	})
}

// queue makes the operation under the id that the event names. It belongs to
// who began it: the owner, or a tenant admin in their place.
func (f *Flow) queue(ctx context.Context, e es.Envelope, id uuid.UUID, kind operation.Kind, version uuid.UUID, work operation.Work) error {
	return f.queueFor(ctx, e, e.Meta.Actor.User, id, kind, version, work)
}

func (f *Flow) queueFor(ctx context.Context, e es.Envelope, owner, id uuid.UUID, kind operation.Kind, version uuid.UUID, work operation.Work) error {
	cmd := es.Caused(Name, "queueOperation", e)
	_, err := f.Operations.Queue(ctx, cmd, id, operation.Spec{
		Kind: kind, Owner: owner, Project: e.Meta.Project, Work: work,
		Subject: es.Ref{Kind: algorithm.VersionKind, ID: version, Parent: e.Root().ID},
	})
	return err
}

// onVersionDeleted withdraws every operation that was for the version: none is
// retried any more, and what a failed copy left in the owner's space goes.
func (f *Flow) onVersionDeleted(ctx context.Context, e es.Envelope) error {
	gone := e.Event.(algorithm.VersionDeleted).Version
	for env, err := range es.Events(ctx, f.Runtime, e.Stream, 0) {
		if err != nil {
			return err
		}
		version, id := begun(env.Event)
		if version != gone || id == uuid.Nil {
			continue
		}
		if _, err := f.Operations.Withdraw(ctx, es.Caused(Name, "withdrawOperation", e), id); err != nil {
			return err
		}
	}
	return nil
}

// begun is the operation that an event of a version asks for, if it does.
func begun(e es.Event) (version, operation uuid.UUID) {
	switch ev := e.(type) {
	case algorithm.VersionAdded:
		if ev.Copy != nil {
			return ev.Version, ev.Copy.Operation
		}
	case algorithm.VersionEdited:
		if ev.Copy != nil {
			return ev.Version, ev.Copy.Operation
		}
	case algorithm.PublicationStarted:
		return ev.Version, ev.Operation
	case algorithm.DeletionStarted:
		return ev.Version, ev.Operation
	}
	return uuid.Nil, uuid.Nil
}

func (f *Flow) onDeleted(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(algorithm.AlgorithmDeleted)
	return f.Algorithms.ReleaseName(ctx, es.Caused(Name, "releaseName", e), e.Root().ID, ev.Name, ev.Project)
}

func (f *Flow) onSucceeded(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(operation.OperationSucceeded)
	return f.ended(ctx, e, "completeOperation", f.Algorithms.Succeeded, func(st *algorithm.Step) {
		st.Files = algorithm.Files{Fingerprint: ev.Result.Fingerprint, Count: ev.Result.Files, Bytes: ev.Result.Bytes}
	})
}

func (f *Flow) onFailed(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(operation.OperationFailed)
	return f.ended(ctx, e, "failOperation", f.Algorithms.Failed, func(st *algorithm.Step) { st.Problem = ev.Message })
}

func (f *Flow) onCancelled(ctx context.Context, e es.Envelope) error {
	return f.ended(ctx, e, "endCancelledOperation", f.Algorithms.Cancelled, func(st *algorithm.Step) {
		st.Problem = "It was cancelled; retry its operation, or begin anew."
	})
}

// ended carries the version on that an operation was done for.
func (f *Flow) ended(ctx context.Context, e es.Envelope, action string, carryOn func(context.Context, es.Command, algorithm.Purpose, algorithm.Step) error, fill func(*algorithm.Step)) error {
	op, err := f.Operations.Load(ctx, e.Meta.Tenant, e.Root().ID)
	if err != nil {
		return err
	}
	purpose, mine := purposeOf(op.Kind)
	if !mine {
		return nil
	}
	// When it was retried before this came about, the version waits for the new
	// attempt already; the end of an older one is not its end.
	then, err := es.LoadRevision(ctx, f.Runtime, operation.Aggregate, e.Meta.Tenant, op.ID, e.Revision)
	if err != nil || then.State.Attempt != op.Attempt {
		return err
	}
	cmd := es.Caused(Name, action, e)
	cmd.Project = op.Project
	st := algorithm.Step{VersionRef: ref(op), Operation: op.ID, By: op.Owner}
	fill(&st)
	return carryOn(ctx, cmd, purpose, st)
}

// onRetried puts the operation in line again, should whoever asked for it have
// died between the version's event and that.
func (f *Flow) onRetried(ctx context.Context, e es.Envelope) error {
	s, err := f.state(ctx, e)
	if err != nil {
		return err
	}
	v, ok := s.Version(e.Subject().ID)
	if !ok || v.Operation == uuid.Nil {
		return nil
	}
	_, err = f.Operations.Requeue(ctx, es.Caused(Name, "requeueOperation", e), v.Operation, after(e.Event))
	return err
}

// after is the attempt that a retry is to follow; a later one is left alone.
func after(e es.Event) int {
	switch ev := e.(type) {
	case algorithm.PreparationRetried:
		return ev.After
	case algorithm.PublicationRetried:
		return ev.After
	case algorithm.DeletionRetried:
		return ev.After
	}
	return -1
}

func (f *Flow) state(ctx context.Context, e es.Envelope) (algorithm.State, error) {
	l, err := es.Load(ctx, f.Runtime, algorithm.Aggregate, e.Meta.Tenant, e.Root().ID)
	return l.State, err
}

// Kinds are the operations that this flow knows the subjects of.
func (f *Flow) Kinds() []operation.Kind {
	return []operation.Kind{operation.PublishAlgorithm, operation.CopyAlgorithm, operation.EditAlgorithm, operation.DeleteAlgorithmFiles}
}

// Retry implements operation.Subjects: the version waits for its operation
// again, or refuses (ALG-11).
func (f *Flow) Retry(ctx context.Context, cmd es.Command, op operation.State) error {
	purpose, err := retried(op)
	if err != nil {
		return err
	}
	cmd.Project = op.Project
	return f.Algorithms.Retry(ctx, cmd, purpose, ref(op), op.ID, op.Attempt)
}

// MayRetry implements operation.Subjects.
func (f *Flow) MayRetry(ctx context.Context, g access.Grants, op operation.State) error {
	purpose, err := retried(op)
	if err != nil {
		return err
	}
	return f.Algorithms.MayRetry(ctx, g, purpose, ref(op), op.ID, op.Attempt)
}

// retried is what an operation that is to be retried is to its version.
func retried(op operation.State) (algorithm.Purpose, error) {
	purpose, mine := purposeOf(op.Kind)
	if !mine {
		return "", errors.New("an operation of a kind that no flow knows")
	}
	if op.Subject.ID == uuid.Nil {
		return "", fault.New(fault.State, fault.CodeInvalidState, "What this was done for is gone; there is nothing left to retry.")
	}
	return purpose, nil
}

func ref(op operation.State) algorithm.VersionRef {
	return algorithm.VersionRef{Algorithm: op.Subject.Parent, Version: op.Subject.ID}
}

// purposeOf tells what an operation is to its version; false for operations
// that are not this flow's.
func purposeOf(k operation.Kind) (algorithm.Purpose, bool) {
	switch k {
	case operation.PublishAlgorithm:
		return algorithm.Publish, true
	case operation.CopyAlgorithm, operation.EditAlgorithm:
		return algorithm.Prepare, true
	case operation.DeleteAlgorithmFiles:
		return algorithm.Remove, true
	default:
		return "", false
	}
}
