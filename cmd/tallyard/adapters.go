package main

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/dataset"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/image"
	"tallyard/domain/model"
	"tallyard/domain/storage"
	"tallyard/graph/loader"
	graphstorage "tallyard/graph/storage"
	"tallyard/infra/files"
	"tallyard/infra/postgres"
	"tallyard/processes/operations"
	projoperation "tallyard/projections/operation"
	"tallyard/projections/runner"
)

// This file fits the parts to each other's ports; nothing is decided here.

// directories tells algorithms about the files of their owners.
type directories struct {
	spaces *storage.Handler
	disk   *files.Store
}

// Script implements algorithm.Directories.
func (d directories) Script(ctx context.Context, tenant, owner uuid.UUID, directory, script string) (algorithm.Script, error) {
	var faults fault.List
	dir, bad := storage.ParsePath(directory)
	if bad != nil {
		faults.Add(bad.At("source", "script", "directory"))
	}
	inside, bad := storage.ParsePath(script)
	if bad != nil {
		faults.Add(bad.At("source", "script", "script"))
	}
	if len(faults) > 0 {
		return algorithm.Script{}, faults
	}
	home, found, err := d.spaces.FindHome(ctx, tenant, owner)
	if err != nil {
		return algorithm.Script{}, err
	}
	if !found {
		return algorithm.Script{}, noDirectory()
	}
	if err := d.expect(ctx, tenant, home, dir, files.KindDirectory); err != nil {
		return algorithm.Script{}, or(err, noDirectory())
	}
	path, bad := dir.Join(inside.String())
	if bad != nil {
		return algorithm.Script{}, bad.At("source", "script", "script")
	}
	if err := d.expect(ctx, tenant, home, path, files.KindFile); err != nil {
		return algorithm.Script{}, or(err, fault.New(fault.Invalid, fault.CodeInvalidPath,
			"The directory has no such script; upload it, or name one that it has.").At("source", "script", "script"))
	}
	return algorithm.Script{Space: home, Directory: dir.String(), Script: inside.String()}, nil
}

// Free implements algorithm.Directories.
func (d directories) Free(ctx context.Context, tenant, owner uuid.UUID, path string) (uuid.UUID, error) {
	cmd := es.System(d.spaces.Runtime.IDs.New(), "storage", "createHome", tenant)
	home, err := d.spaces.Home(ctx, cmd, owner)
	if err != nil {
		return uuid.Nil, err
	}
	p, bad := storage.ParsePath(path)
	if bad != nil {
		return uuid.Nil, bad.At("label")
	}
	if err := d.disk.EnsureSpace(ctx, tenant, home); err != nil {
		return uuid.Nil, err
	}
	switch _, err := d.disk.Stat(ctx, tenant, home, p); {
	case err == nil:
		return uuid.Nil, fault.New(fault.Conflict, fault.CodeNameTaken,
			"The home has a file or directory named like the algorithm and label; rename that one, or choose another label.").At("label")
	case fault.Is(err, fault.CodeNotFound):
		return home, nil
	default:
		return uuid.Nil, err
	}
}

var errOtherKind = fault.New(fault.NotFound, fault.CodeNotFound, "It is of another kind.")

func (d directories) expect(ctx context.Context, tenant, space uuid.UUID, p storage.Path, kind files.Kind) error {
	if err := d.disk.EnsureSpace(ctx, tenant, space); err != nil {
		return err
	}
	e, err := d.disk.Stat(ctx, tenant, space, p)
	if err == nil && e.Kind != kind {
		return errOtherKind
	}
	return err
}

func noDirectory() *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeInvalidPath,
		"The home has no such directory; upload the files first, or name one that it has.").At("source", "script", "directory")
}

// or gives the clearer words for something that was not found.
func or(err error, clearer *fault.Fault) error {
	if fault.Is(err, fault.CodeNotFound) || fault.Is(err, fault.CodeInvalidPath) {
		return clearer
	}
	return err
}

// Look implements dataset.Directories.
func (d directories) Look(ctx context.Context, tenant, user, space uuid.UUID, directory string) (dataset.Content, error) {
	dir, bad := storage.ParsePath(directory)
	if bad != nil {
		return dataset.Content{}, bad.At("directory")
	}
	if space == uuid.Nil {
		home, found, err := d.spaces.FindHome(ctx, tenant, user)
		if err != nil {
			return dataset.Content{}, err
		}
		if !found {
			return dataset.Content{}, missingDirectory()
		}
		space = home
	} else if _, err := d.spaces.Readable(ctx, tenant, user, space); err != nil {
		return dataset.Content{}, atField(err, "spaceId")
	}
	if err := d.expect(ctx, tenant, space, dir, files.KindDirectory); err != nil {
		return dataset.Content{}, or(err, missingDirectory())
	}
	n, bytes, err := d.disk.Tally(ctx, tenant, space, dir)
	return dataset.Content{Space: space, Directory: dir.String(), Files: n, Bytes: bytes}, atField(err, "directory")
}

// atField names the field of a fault.
func atField(err error, field string) error {
	faults, ok := fault.All(err)
	if !ok {
		return err
	}
	return faults[0].At(field)
}

func missingDirectory() *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeInvalidPath,
		"The space has no such directory; upload the files first, or name one that it has.").At("directory")
}

// workloads tells what uses data sets. Nothing runs yet, so nothing does.
type workloads struct{}

// Using implements dataset.Users.
func (workloads) Using(context.Context, uuid.UUID, uuid.UUID) ([]dataset.Use, error) { return nil, nil }

// imageUsers tells what uses images, likewise.
type imageUsers struct{}

// Using implements image.Users.
func (imageUsers) Using(context.Context, uuid.UUID, image.State) ([]image.Use, error) {
	return nil, nil
}

// Model implements model.Directories.
func (d directories) Model(ctx context.Context, tenant, owner uuid.UUID, directory, script string) (model.Directory, error) {
	missing := fault.New(fault.Invalid, fault.CodeInvalidPath,
		"The home has no such directory with something in it; upload the files first, or name another one.").At("directory")
	dir, bad := storage.ParsePath(directory)
	if bad != nil {
		return model.Directory{}, bad.At("directory")
	}
	home, found, err := d.spaces.FindHome(ctx, tenant, owner)
	switch {
	case err != nil:
		return model.Directory{}, err
	case !found || dir.IsRoot():
		return model.Directory{}, missing
	}
	if err := d.expect(ctx, tenant, home, dir, files.KindDirectory); err != nil {
		return model.Directory{}, or(err, missing)
	}
	in, err := d.disk.List(ctx, tenant, home, dir, "", 1)
	switch {
	case err != nil:
		return model.Directory{}, or(err, missing)
	case len(in.Entries) == 0:
		return model.Directory{}, missing
	case script == "":
		return model.Directory{Space: home, Path: dir.String()}, nil
	}
	path, bad := dir.Join(script)
	if bad != nil {
		return model.Directory{}, bad.At("script")
	}
	if err := d.expect(ctx, tenant, home, path, files.KindFile); err != nil {
		return model.Directory{}, or(err, fault.New(fault.Invalid, fault.CodeInvalidPath,
			"The directory has no such script; upload it, or name one that it has.").At("script"))
	}
	return model.Directory{Space: home, Path: dir.String()}, nil
}

// models tells algorithms about models.
type models struct{ handler *model.Handler }

// Model implements algorithm.Models.
func (m models) Model(ctx context.Context, g access.Grants, id uuid.UUID) (bool, error) {
	return m.handler.Sees(ctx, g, id)
}

// sources are the directories that things of several features were taken from.
type sources []graphstorage.Sources

// SourcesIn implements graphstorage.Sources.
func (s sources) SourcesIn(ctx context.Context, tenant, space uuid.UUID) ([]string, error) {
	var all []string
	for _, of := range s {
		list, err := of.SourcesIn(ctx, tenant, space)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// origins keeps from where requests came.
type origins struct{ table *postgres.Origins }

// Record implements command.Origins.
func (o origins) Record(ctx context.Context, request, tenant uuid.UUID, address, userAgent string, at time.Time) error {
	return o.table.Record(ctx, postgres.Origin{Request: request, Tenant: tenant, Address: address, UserAgent: userAgent, At: at})
}

// progress tells how far running operations are.
type progress struct{ table *postgres.OperationProgress }

// Find implements loader.ProgressSource.
func (p progress) Find(ctx context.Context, tenant uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]loader.Progress, error) {
	rows, err := p.table.Find(ctx, tenant, ids)
	out := make(map[uuid.UUID]loader.Progress, len(rows))
	for id, r := range rows {
		out[id] = loader.Progress{DoneBytes: r.DoneBytes, TotalBytes: r.TotalBytes, DoneFiles: r.DoneFiles, TotalFiles: r.TotalFiles}
	}
	return out, err
}

// pending lists what the worker has to do.
func pending(q projoperation.Queries) func(context.Context) ([]operations.Ref, error) {
	return func(ctx context.Context) ([]operations.Ref, error) {
		rows, err := q.Pending(ctx)
		if errors.Is(err, runner.ErrNotReady) {
			return nil, nil // nothing is known yet; the worker asks again
		}
		refs := make([]operations.Ref, len(rows))
		for i, r := range rows {
			refs[i] = operations.Ref{Tenant: r.Tenant, ID: r.ID}
		}
		return refs, err
	}
}

// disk lets the API look into spaces.
type disk struct{ store *files.Store }

// List implements graphstorage.Disk.
func (d disk) List(ctx context.Context, tenant, space uuid.UUID, folder storage.Path, after string, limit int) ([]graphstorage.Entry, bool, error) {
	if err := d.store.EnsureSpace(ctx, tenant, space); err != nil {
		return nil, false, err
	}
	p, err := d.store.List(ctx, tenant, space, folder, after, limit)
	list := make([]graphstorage.Entry, len(p.Entries))
	for i, e := range p.Entries {
		list[i] = entry(e)
	}
	return list, p.More, err
}

// Stat implements graphstorage.Disk.
func (d disk) Stat(ctx context.Context, tenant, space uuid.UUID, path storage.Path) (graphstorage.Entry, error) {
	e, err := d.store.Stat(ctx, tenant, space, path)
	return entry(e), err
}

func entry(e files.Entry) graphstorage.Entry {
	return graphstorage.Entry{Name: e.Name, Key: e.Key, Path: e.Path, Kind: graphstorage.EntryKind(e.Kind), SizeBytes: e.SizeBytes, ModifiedAt: e.ModifiedAt}
}
