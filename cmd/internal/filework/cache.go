package filework

import (
	"context"

	"tallyard/domain/operation"
	"tallyard/domain/storage"
	"tallyard/processes/operations"
)

func (w worker) fillCache(ctx context.Context, job operations.Job, report func(operations.Progress)) (operation.Result, error) {
	folder, f := storage.ParsePath(job.Work.Path)
	if f != nil {
		return operation.Result{}, f
	}
	if err := w.store.EnsureSpace(ctx, job.Tenant, job.Work.Space); err != nil {
		return operation.Result{}, err
	}
	files, bytes, err := w.store.FillCache(ctx, job.Tenant, job.Work.Artefact, job.Work.Space, folder, progress(report))
	return operation.Result{Files: files, Bytes: bytes}, err
}

// undoFillCache leaves nothing of the cache: half of one is of no use to
// anybody, and nobody would know of it.
func (w worker) undoFillCache(ctx context.Context, job operations.Job, _ bool) error {
	_, err := w.store.ClearCache(ctx, job.Tenant, job.Work.Artefact, nil)
	return err
}

func (w worker) unpackCache(ctx context.Context, job operations.Job, report func(operations.Progress)) (operation.Result, error) {
	done, err := w.store.UnpackCache(ctx, job.Tenant, job.Work.Artefact, job.ID, progress(report))
	return operation.Result{Files: done.DoneFiles, Bytes: done.DoneBytes}, err
}

// undoUnpackCache removes what this very operation unpacked.
func (w worker) undoUnpackCache(ctx context.Context, job operations.Job, _ bool) error {
	return w.store.DiscardUnpacked(ctx, job.Tenant, job.Work.Artefact, job.ID)
}

func (w worker) clearCache(ctx context.Context, job operations.Job, report func(operations.Progress)) (operation.Result, error) {
	done, err := w.store.ClearCache(ctx, job.Tenant, job.Work.Artefact, progress(report))
	return operation.Result{Files: done.DoneFiles, Bytes: done.DoneBytes}, err
}
