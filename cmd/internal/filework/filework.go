// Package filework fits the file system to the ports of those who work on it:
// the worker of operations, and the commands on spaces.
package filework

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/operation"
	"tallyard/domain/storage"
	"tallyard/infra/files"
	"tallyard/infra/postgres"
	"tallyard/processes/operations"
)

// Work is the doing of every kind of work that the file system can do.
func Work(store *files.Store) map[operation.WorkKind]operations.Work {
	w := worker{store}
	return map[operation.WorkKind]operations.Work{
		operation.CopyOut:         {Do: w.copyOut, Undo: w.undoCopyOut},
		operation.CopyIn:          {Do: w.copyIn, Undo: w.undoCopyIn},
		operation.RemoveArtefact:  {Do: w.removeArtefact},
		operation.RemoveDirectory: {Do: w.removeDirectory},
		operation.FillCache:       {Do: w.fillCache, Undo: w.undoFillCache},
		operation.UnpackCache:     {Do: w.unpackCache, Undo: w.undoUnpackCache},
		operation.ClearCache:      {Do: w.clearCache},
	}
}

type worker struct{ store *files.Store }

func (w worker) copyOut(ctx context.Context, job operations.Job, report func(operations.Progress)) (operation.Result, error) {
	folder, f := storage.ParseFolder(job.Work.Path)
	if f != nil {
		return operation.Result{}, f
	}
	m, err := w.store.CopyOut(ctx, job.Tenant, job.Work.Space, folder, job.Work.Artefact, progress(report))
	return result(m), err
}

// undoCopyOut removes the artefact, whole or partial: nobody knows it yet,
// since the operation that makes it has not succeeded.
func (w worker) undoCopyOut(ctx context.Context, job operations.Job, _ bool) error {
	_, err := w.store.RemoveArtefact(ctx, job.Tenant, job.Work.Artefact, nil)
	return err
}

func (w worker) copyIn(ctx context.Context, job operations.Job, report func(operations.Progress)) (operation.Result, error) {
	folder, f := storage.ParsePath(job.Work.Path)
	if f != nil {
		return operation.Result{}, f
	}
	if err := w.store.EnsureSpace(ctx, job.Tenant, job.Work.Space); err != nil {
		return operation.Result{}, err
	}
	// The operation's id is the copy's, so that a retry goes on with it.
	m, err := w.store.CopyIn(ctx, job.Tenant, job.Work.Artefact, job.Work.Space, folder, job.ID, progress(report))
	return result(m), err
}

// undoCopyIn takes back the folder only when this copy was just seen to make
// it: otherwise what lies at the path may be somebody's own.
func (w worker) undoCopyIn(ctx context.Context, job operations.Job, finished bool) error {
	if err := w.store.EnsureSpace(ctx, job.Tenant, job.Work.Space); err != nil {
		return err
	}
	if finished {
		folder, f := storage.ParsePath(job.Work.Path)
		if f != nil {
			return f
		}
		if _, err := w.store.Delete(ctx, job.Tenant, job.Work.Space, folder, nil); err != nil {
			return err
		}
	}
	return w.store.DiscardCopyIn(ctx, job.Tenant, job.Work.Space, job.ID)
}

func (w worker) removeArtefact(ctx context.Context, job operations.Job, report func(operations.Progress)) (operation.Result, error) {
	done, err := w.store.RemoveArtefact(ctx, job.Tenant, job.Work.Artefact, progress(report))
	return operation.Result{Files: done.DoneFiles, Bytes: done.DoneBytes}, err
}

func (w worker) removeDirectory(ctx context.Context, job operations.Job, report func(operations.Progress)) (operation.Result, error) {
	folder, f := storage.ParsePath(job.Work.Path)
	if f != nil {
		return operation.Result{}, f
	}
	if err := w.store.EnsureSpace(ctx, job.Tenant, job.Work.Space); err != nil {
		return operation.Result{}, err
	}
	done, err := w.store.RemoveDirectory(ctx, job.Tenant, job.Work.Space, folder, job.Work.Directory, job.ID, progress(report))
	return operation.Result{Files: done.DoneFiles, Bytes: done.DoneBytes}, err
}

func result(m files.Manifest) operation.Result {
	return operation.Result{Fingerprint: m.Fingerprint, Files: m.Files, Bytes: m.Bytes}
}

func progress(report func(operations.Progress)) func(files.Progress) {
	return func(p files.Progress) {
		report(operations.Progress{
			DoneBytes: p.DoneBytes, TotalBytes: p.TotalBytes, DoneFiles: p.DoneFiles, TotalFiles: p.TotalFiles,
		})
	}
}

// Spaces does the work of the commands on spaces.
type Spaces struct{ Store *files.Store }

var _ storage.Files = Spaces{}

// MakeDirectory implements storage.Files.
func (s Spaces) MakeDirectory(ctx context.Context, tenant, space uuid.UUID, path storage.Path) error {
	if err := s.Store.EnsureSpace(ctx, tenant, space); err != nil {
		return err
	}
	return s.Store.MakeDir(ctx, tenant, space, path)
}

// Directory implements storage.Files.
func (s Spaces) Directory(ctx context.Context, tenant, space uuid.UUID, path storage.Path) (string, error) {
	if err := s.Store.EnsureSpace(ctx, tenant, space); err != nil {
		return "", err
	}
	return s.Store.Directory(ctx, tenant, space, path)
}

// Delete implements storage.Files.
func (s Spaces) Delete(ctx context.Context, tenant, space uuid.UUID, path storage.Path) (storage.Deleted, error) {
	if err := s.Store.EnsureSpace(ctx, tenant, space); err != nil {
		return storage.Deleted{}, err
	}
	p, err := s.Store.Delete(ctx, tenant, space, path, nil)
	return storage.Deleted{Files: p.DoneFiles, Bytes: p.DoneBytes}, err
}

// Samples keeps the progress of operations in its table.
type Samples struct{ Table *postgres.OperationProgress }

var _ operations.Samples = Samples{}

// Record implements operations.Samples.
func (s Samples) Record(ctx context.Context, ref operations.Ref, p operations.Progress) error {
	return s.Table.Save(ctx, postgres.Progress{
		Operation: ref.ID, Tenant: ref.Tenant, DoneBytes: p.DoneBytes, TotalBytes: p.TotalBytes,
		DoneFiles: p.DoneFiles, TotalFiles: p.TotalFiles, At: time.Now(),
	})
}

// Forget implements operations.Samples.
func (s Samples) Forget(ctx context.Context, ref operations.Ref) error {
	return s.Table.Delete(ctx, ref.ID)
}
