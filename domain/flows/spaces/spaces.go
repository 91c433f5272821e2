// Package spaces joins storage spaces with those who share them, and with the
// operations that work on what they hold.
package spaces

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/operation"
	"tallyard/domain/storage"
)

// Name is the process's name; its checkpoint hangs on it.
const Name = "spaces"

// Flow is the process and what it gives commands to.
type Flow struct {
	Runtime    *es.Runtime
	Spaces     *storage.Handler
	Operations *operation.Handler
}

// Process is the flow as the driver runs it. It makes the shared spaces of
// projects and tenants, also of those that were there before it.
func (f *Flow) Process() es.Process {
	return es.Process{Name: Name, On: map[string]func(context.Context, es.Envelope) error{
		"tenant.created.v1":                    f.onTenant,
		"project.created.v1":                   f.onProject,
		"space.directory_removal_requested.v1": f.onRemoval,
		"operation.succeeded.v1":               f.onSucceeded,
	}}
}

// onTenant makes the space of a tenant. Tenants live in the platform's streams,
// what is theirs in their own.
func (f *Flow) onTenant(ctx context.Context, e es.Envelope) error {
	cmd := es.Caused(Name, "createSpace", e)
	cmd.Tenant = e.Root().ID
	_, err := f.Spaces.Shared(ctx, cmd, uuid.Nil)
	return err
}

func (f *Flow) onProject(ctx context.Context, e es.Envelope) error {
	_, err := f.Spaces.Shared(ctx, es.Caused(Name, "createSpace", e), e.Root().ID)
	return err
}

// onRemoval puts a removal in line, should whoever asked for it have died
// before that.
func (f *Flow) onRemoval(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(storage.DirectoryRemovalRequested)
	return f.RemoveDirectory(ctx, es.Caused(Name, "queueOperation", e), storage.Removal{
		Operation: ev.Operation, Space: e.Root().ID, Project: e.Meta.Project, Owner: e.Meta.Actor.User,
		Path: ev.Path, Directory: ev.Directory,
	})
}

// RemoveDirectory implements storage.Operations.
func (f *Flow) RemoveDirectory(ctx context.Context, cmd es.Command, r storage.Removal) error {
	_, err := f.Operations.Queue(ctx, cmd, r.Operation, operation.Spec{
		Kind: operation.DeleteDirectory, Owner: r.Owner, Project: r.Project,
		Subject: es.Ref{Kind: storage.Category, ID: r.Space},
		Work:    operation.Work{Kind: operation.RemoveDirectory, Space: r.Space, Path: r.Path, Directory: r.Directory},
	})
	return err
}

// Known implements storage.Operations.
func (f *Flow) Known(ctx context.Context, tenant, id uuid.UUID) (bool, error) {
	s, err := f.Operations.Load(ctx, tenant, id)
	return s.Exists(), err
}

// onSucceeded puts on record in the space what an operation did there.
func (f *Flow) onSucceeded(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(operation.OperationSucceeded)
	op, err := f.Operations.Load(ctx, e.Meta.Tenant, e.Root().ID)
	if err != nil || op.Kind != operation.DeleteDirectory {
		return err
	}
	cmd := es.Caused(Name, "deleteFiles", e)
	cmd.Project = op.Project
	return f.Spaces.DirectoryRemoved(ctx, cmd, op.Work.Space, op.Work.Path, storage.Deleted{Files: ev.Result.Files, Bytes: ev.Result.Bytes})
}

// Kinds are the operations that this flow knows the subjects of.
func (f *Flow) Kinds() []operation.Kind { return []operation.Kind{operation.DeleteDirectory} }

// Retry implements operation.Subjects: a space waits for nothing.
func (f *Flow) Retry(context.Context, es.Command, operation.State) error { return nil }

// MayRetry implements operation.Subjects.
func (f *Flow) MayRetry(context.Context, access.Grants, operation.State) error { return nil }
