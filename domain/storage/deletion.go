package storage

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// DeleteItem is what became of one path of a batch: Err holds faults, or is nil.
type DeleteItem struct {
	Path string
	// Operation removes a directory; nil for what is gone already.
	Operation uuid.UUID
	Err       error
}

// DeleteResult is the answer to a batch.
type DeleteResult struct {
	Items    []DeleteItem // in the order asked
	Position es.Position
	Replayed bool // every item was carried out earlier with the same key
}

// DeleteFiles is `deleteFiles`: each path succeeds or fails on its own. An
// error that is no fault ends the batch; the same key goes on where it ended.
func (h *Handler) DeleteFiles(ctx context.Context, cmd es.Command, space uuid.UUID, paths []string) (DeleteResult, error) {
	if f := batchSize(len(paths)); f != nil {
		// Through Run, so that the refusal is recorded like any other.
		_, err := h.run(ctx, cmd, space, func(context.Context, es.Command) (Refs, error) { return Refs{}, f })
		return DeleteResult{}, err
	}
	out := DeleteResult{Items: make([]DeleteItem, len(paths)), Replayed: true}
	for i, path := range paths {
		r, err := h.deleteOne(ctx, cmd.Item(i), space, path, i)
		if _, isFault := fault.All(err); err != nil && !isFault {
			return out, fmt.Errorf("delete item %d: %w", i, err)
		}
		out.Items[i] = DeleteItem{Path: path, Operation: r.Refs.Operation, Err: err}
		out.Position = max(out.Position, r.Position)
		out.Replayed = out.Replayed && r.Replayed
	}
	return out, nil
}

func (h *Handler) deleteOne(ctx context.Context, cmd es.Command, space uuid.UUID, path string, i int) (es.Result[Refs], error) {
	return h.run(ctx, cmd, space, func(ctx context.Context, cmd es.Command) (Refs, error) {
		p, err := parsePath(path, "paths", strconv.Itoa(i))
		if err != nil {
			return Refs{}, err
		}
		r := Removal{Operation: cmd.NewIDs(1)[0], Space: space, Owner: cmd.Actor.User, Path: p.String()}
		if queued, err := h.Operations.Known(ctx, cmd.Tenant, r.Operation); err != nil || queued {
			return Refs{Space: space, Path: r.Path, Operation: r.Operation}, err
		}
		s, err := h.mustWrite(ctx, cmd, space)
		if err != nil {
			return Refs{}, err
		}
		if r.Directory, err = h.Files.Directory(ctx, cmd.Tenant, space, p); err != nil {
			return Refs{}, err
		}
		if r.Directory != "" {
			r.Project = s.Project
			return h.removeDirectory(ctx, cmd, r)
		}
		return h.change(ctx, cmd, space, DeleteFiles, p, func(ctx context.Context) (es.Event, error) {
			d, err := h.Files.Delete(ctx, cmd.Tenant, space, p)
			return FilesDeleted{Path: p.String(), Files: d.Files, Bytes: d.Bytes}, err
		})
	})
}

// mustWrite gives a space to who may write in it; a refusal, too, is on record
// in the space's project.
func (h *Handler) mustWrite(ctx context.Context, cmd es.Command, space uuid.UUID) (State, error) {
	g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
	if err != nil {
		return State{}, err
	}
	s, err := h.Load(ctx, cmd.Tenant, space)
	if err != nil {
		return State{}, err
	}
	cmd.In(s.Project)
	return s, MustWrite(g, s)
}

// removeDirectory puts the request on record and the work in line. Should it
// die in between, whoever follows the log puts it in line.
func (h *Handler) removeDirectory(ctx context.Context, cmd es.Command, r Removal) (Refs, error) {
	g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
	if err != nil {
		return Refs{}, err
	}
	asked := DirectoryRemovalRequested{Path: r.Path, Directory: r.Directory, Operation: r.Operation}
	if _, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, r.Space, permitted(cmd, g, asked)); err != nil {
		return Refs{}, err
	}
	return Refs{Space: r.Space, Path: r.Path, Operation: r.Operation}, h.Operations.RemoveDirectory(ctx, cmd, r)
}

// DirectoryRemoved puts on record what an operation removed.
func (h *Handler) DirectoryRemoved(ctx context.Context, cmd es.Command, space uuid.UUID, path string, d Deleted) error {
	_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, space, record(FilesDeleted{Path: path, Files: d.Files, Bytes: d.Bytes}))
	return err
}

const maxBatch = 100

func batchSize(n int) *fault.Fault {
	switch {
	case n == 0:
		return fault.New(fault.Invalid, fault.CodeRequired, "Name at least one path.").At("paths")
	case n > maxBatch:
		return fault.New(fault.Invalid, fault.CodeTooMany, fmt.Sprintf("Name at most %d paths at once.", maxBatch)).At("paths")
	}
	return nil
}
