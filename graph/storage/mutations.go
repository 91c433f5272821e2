package storage

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/storage"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/problem"
	"tallyard/graph/relay"
)

// What deletions and the first directory of a home write, for the read models
// that a receipt waits for.
var (
	written = []string{"space.change_requested.v1", "space.files_deleted.v1", "space.directory_removal_requested.v1", "operation.queued.v1"}
	made    = "space.created.v1"
)

// CreateDirectory is createDirectory. The first one makes the home.
func (a *API) CreateDirectory(ctx context.Context, in gqlmodel.CreateDirectoryInput) (*gqlmodel.CreateDirectoryPayload, error) {
	var faults fault.List
	space := spaceOf(in.SpaceID.Value(), &faults)
	at := place{space: space, name: homeName}
	if id := in.SpaceID.Value(); id != nil {
		at.name = *id
	}
	r, err := command.Carry(ctx, a.Commands, a.Runtime, command.Options{Key: in.IdempotencyKey.Value()}, faults,
		func(ctx context.Context, cmd es.Command) (es.Result[storage.Refs], error) {
			if at.space != uuid.Nil {
				return a.Handler.CreateDirectory(ctx, cmd, at.space, in.Path)
			}
			return a.createAtHome(ctx, cmd, in.Path)
		},
		func(ctx context.Context, res es.Result[storage.Refs]) (*gqlmodel.File, error) {
			at.space = res.Refs.Space
			return a.directory(ctx, at, res.Refs.Path)
		})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.CreateDirectoryPayload{File: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// createAtHome makes a directory in the viewer's home, which is made only when
// nothing speaks against the directory.
func (a *API) createAtHome(ctx context.Context, cmd es.Command, path string) (es.Result[storage.Refs], error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return es.Result[storage.Refs]{}, err
	}
	home, ok, err := a.Handler.FindHome(ctx, cmd.Tenant, v.User())
	if err == nil && !ok {
		home, err = a.makeHome(ctx, cmd, v, path)
	}
	if err != nil {
		return command.Refuse[storage.Refs](ctx, a.Runtime, cmd, err)
	}
	res, err := a.Handler.CreateDirectory(ctx, cmd, home, path)
	if !ok {
		res.Events = append(res.Events, made)
	}
	return res, err
}

func (a *API) makeHome(ctx context.Context, cmd es.Command, v authn.Viewer, path string) (uuid.UUID, error) {
	if _, bad := storage.ParsePath(path); bad != nil {
		return uuid.Nil, bad.At("path")
	}
	if !v.Grants.Writes() {
		return uuid.Nil, access.ReadOnly()
	}
	return a.Handler.Home(ctx, cmd, v.User())
}

// directory is what createDirectory made; nil when it is gone again.
func (a *API) directory(ctx context.Context, at place, path string) (*gqlmodel.File, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	at.tenant = v.Tenant
	p, bad := storage.ParsePath(path)
	if bad != nil {
		return nil, bad
	}
	e, err := a.Disk.Stat(ctx, at.tenant, at.space, p)
	if fault.Is(err, fault.CodeNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	show, err := a.show(ctx, at)
	if err != nil {
		return nil, err
	}
	return show(e), nil
}

// DeleteFiles is deleteFiles: every path is a command of its own.
func (a *API) DeleteFiles(ctx context.Context, in gqlmodel.DeleteFilesInput) (*gqlmodel.DeleteFilesPayload, error) {
	out := &gqlmodel.DeleteFilesPayload{Results: []*gqlmodel.DeleteFileResult{}}
	cmd, err := a.Commands.Begin(ctx, command.Options{Key: in.IdempotencyKey.Value(), Reason: in.Reason.Value()})
	if cmd.ID == uuid.Nil {
		return nil, err
	}
	var space uuid.UUID
	if err == nil {
		space, err = a.deleteIn(ctx, cmd, in.SpaceID.Value())
	}
	if err != nil {
		res, err := command.Refuse[storage.Refs](ctx, a.Runtime, cmd, err)
		out.Receipt, out.UserErrors, err = command.Answer(ctx, a.Commands, res, err)
		return out, err
	}
	gate, err := command.Gate(ctx, a.Runtime, cmd, func() error { return command.BatchSize(len(in.Paths), "paths") })
	if err != nil {
		out.Receipt, out.UserErrors, err = command.Answer(ctx, a.Commands, gate, err)
		return out, err
	}
	res, err := a.Handler.DeleteFiles(ctx, cmd, space, in.Paths)
	if err != nil {
		return nil, err
	}
	for i, item := range res.Items {
		errors, err := problem.UserErrors(atField(item.Err, "paths", strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		out.Results = append(out.Results, &gqlmodel.DeleteFileResult{
			Path: item.Path, Deleted: len(errors) == 0 && item.Operation == uuid.Nil, UserErrors: errors, OperationID: item.Operation,
		})
	}
	out.UserErrors = []*gqlmodel.UserError{}
	out.Receipt, err = a.Commands.Receipt(ctx, command.Done{Command: gate.Command, Position: res.Position, Events: written, Replayed: res.Replayed})
	return out, err
}

// deleteIn is the space that files are deleted in; who has no home has nothing
// to delete there.
func (a *API) deleteIn(ctx context.Context, cmd es.Command, id *string) (uuid.UUID, error) {
	var faults fault.List
	if space := spaceOf(id, &faults); space != uuid.Nil || len(faults) > 0 {
		return space, faults.Err()
	}
	home, ok, err := a.Handler.FindHome(ctx, cmd.Tenant, cmd.Actor.User)
	if err == nil && !ok {
		err = access.Missing().At("spaceId")
	}
	return home, err
}

func spaceOf(text *string, faults *fault.List) uuid.UUID {
	if text == nil {
		return uuid.Nil
	}
	id, bad := relay.Expect(relay.StorageSpace, *text, "spaceId")
	faults.Add(bad)
	return id.UUID
}
