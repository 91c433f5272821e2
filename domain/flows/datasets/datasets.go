// Package datasets joins data sets and operations: what a data set needs done
// with its cache becomes an operation, and the end of that carries it on.
package datasets

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/dataset"
	"tallyard/domain/es"
	"tallyard/domain/operation"
)

// Name is the process's name; its checkpoint hangs on it.
const Name = "datasets"

// Flow is the process and what it gives commands to.
type Flow struct {
	Runtime    *es.Runtime
	DataSets   *dataset.Handler
	Operations *operation.Handler
}

// Process is the flow as the driver runs it.
func (f *Flow) Process() es.Process {
	return es.Process{Name: Name, On: map[string]func(context.Context, es.Envelope) error{
		"dataset.cache_begun.v1": f.onBegun,
		"dataset.removed.v1":     f.onRemoved,
		"operation.succeeded.v1": f.onSucceeded,
		"operation.failed.v1":    f.onFailed,
		"operation.cancelled.v1": f.onCancelled,
	}}
}

// onBegun puts a step in line, should whoever asked for it have died before that.
func (f *Flow) onBegun(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(dataset.CacheBegun)
	cmd := es.Caused(Name, "queueOperation", e)
	if ev.After > 0 {
		_, err := f.Operations.Requeue(ctx, cmd, ev.Operation, ev.After)
		return err
	}
	then, err := es.LoadRevision(ctx, f.Runtime, dataset.Aggregate, e.Meta.Tenant, e.Root().ID, e.Revision)
	if err != nil {
		return err
	}
	return f.Queue(ctx, cmd, then.State, ev.Step, ev.Operation, e.Meta.Actor.User)
}

// Queue implements dataset.Operations.
func (f *Flow) Queue(ctx context.Context, cmd es.Command, s dataset.State, step dataset.Step, id, by uuid.UUID) error {
	known, err := f.Operations.Load(ctx, cmd.Tenant, id)
	if err != nil {
		return err
	}
	if known.Exists() {
		// With the directory that the data set had then. Queued again it changes
		// nothing, and the command knows from where on the operation is seen.
		_, err = f.Operations.Queue(ctx, cmd, id, known.Spec())
		return err
	}
	spec := operation.Spec{
		Kind: operation.CacheDataSet, Owner: by, Project: s.Project, Subject: s.Ref(),
		Work: operation.Work{Kind: operation.FillCache, Space: s.Content.Space, Path: s.Content.Directory, Artefact: s.ID},
	}
	switch step {
	case dataset.Refresh:
		spec.Kind = operation.RefreshDataSet
	case dataset.Unzip:
		spec.Kind, spec.Work = operation.UnzipDataSet, operation.Work{Kind: operation.UnpackCache, Artefact: s.ID}
	case dataset.Fill:
	}
	_, err = f.Operations.Queue(ctx, cmd, id, spec)
	return err
}

// onRemoved frees the name and removes what there may be of the cache.
func (f *Flow) onRemoved(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(dataset.Removed)
	if err := f.DataSets.ReleaseName(ctx, es.Caused(Name, "releaseName", e), e.Root().ID, ev.Project, ev.Name); err != nil || !ev.Cached {
		return err
	}
	return f.Clear(ctx, es.Caused(Name, "queueOperation", e), e.Root().ID, ev.Project, ev.Operation, e.Meta.Actor.User)
}

// Clear implements dataset.Operations.
func (f *Flow) Clear(ctx context.Context, cmd es.Command, id, project, op, by uuid.UUID) error {
	_, err := f.Operations.Queue(ctx, cmd, op, operation.Spec{
		Kind: operation.ClearDataSetCache, Owner: by, Project: project, Subject: es.Ref{Kind: dataset.Category, ID: id},
		Work: operation.Work{Kind: operation.ClearCache, Artefact: id},
	})
	return err
}

func (f *Flow) onSucceeded(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(operation.OperationSucceeded)
	return f.ended(ctx, e, dataset.CacheEnded{Outcome: dataset.Succeeded, Files: ev.Result.Files, Bytes: ev.Result.Bytes})
}

func (f *Flow) onFailed(ctx context.Context, e es.Envelope) error {
	return f.ended(ctx, e, dataset.CacheEnded{Outcome: dataset.Failed, Problem: e.Event.(operation.OperationFailed).Message})
}

func (f *Flow) onCancelled(ctx context.Context, e es.Envelope) error {
	return f.ended(ctx, e, dataset.CacheEnded{Outcome: dataset.Cancelled, Problem: "It was cancelled; begin anew, or retry its operation."})
}

// ended carries the data set on that an operation was done for.
func (f *Flow) ended(ctx context.Context, e es.Envelope, ev dataset.CacheEnded) error {
	op, err := f.Operations.Load(ctx, e.Meta.Tenant, e.Root().ID)
	if err != nil {
		return err
	}
	step, mine := stepOf(op.Kind)
	if !mine {
		return nil
	}
	// The end of an older attempt is not the end of the one that is waited for.
	then, err := es.LoadRevision(ctx, f.Runtime, operation.Aggregate, e.Meta.Tenant, op.ID, e.Revision)
	if err != nil || then.State.Attempt != op.Attempt {
		return err
	}
	ev.Step, ev.Operation = step, op.ID
	cmd := es.Caused(Name, "endCacheStep", e)
	cmd.Project = op.Project
	return f.DataSets.Ended(ctx, cmd, op.Subject.ID, ev)
}

// Kinds are the operations that this flow knows the subjects of.
func (f *Flow) Kinds() []operation.Kind {
	return []operation.Kind{operation.CacheDataSet, operation.RefreshDataSet, operation.UnzipDataSet, operation.ClearDataSetCache}
}

// Retry implements operation.Subjects: the data set waits for its operation
// again, or refuses. What removes a cache is waited for by nobody.
func (f *Flow) Retry(ctx context.Context, cmd es.Command, op operation.State) error {
	step, mine := stepOf(op.Kind)
	if !mine {
		return nil
	}
	return f.DataSets.Retry(ctx, cmd, op.Subject.ID, step, op.ID, op.Attempt)
}

// MayRetry implements operation.Subjects.
func (f *Flow) MayRetry(ctx context.Context, _ access.Grants, op operation.State) error {
	step, mine := stepOf(op.Kind)
	if !mine {
		return nil
	}
	return f.DataSets.MayRetry(ctx, op.Tenant, op.Subject.ID, step, op.ID, op.Attempt)
}

// stepOf is the step that an operation is for; false for those that no data set
// waits for.
func stepOf(k operation.Kind) (dataset.Step, bool) {
	switch k {
	case operation.CacheDataSet:
		return dataset.Fill, true
	case operation.RefreshDataSet:
		return dataset.Refresh, true
	case operation.UnzipDataSet:
		return dataset.Unzip, true
	default:
		return "", false
	}
}
