package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
	"tallyard/graph/loader"
	"tallyard/infra/files"
	"tallyard/infra/postgres"
	"tallyard/projections/runner"
	projstorage "tallyard/projections/storage"
)

// accounts knows how much spaces hold and may hold.
type accounts struct {
	spaces *storage.Handler
	usage  *postgres.SpaceUsage
	disk   *files.Store
}

var _ files.Ledger = accounts{}

// Room implements files.Ledger.
func (a accounts) Room(ctx context.Context, tenant, space uuid.UUID, bytes int64) error {
	limit, err := a.limit(ctx, tenant, space)
	if err != nil || limit < 0 {
		return err
	}
	u, counted, err := a.usage.Get(ctx, space)
	if err == nil && !counted {
		if err = a.Recount(ctx, tenant, space); err == nil {
			u, _, err = a.usage.Get(ctx, space)
		}
	}
	if err == nil && u.Bytes+bytes > limit {
		err = full(u.Bytes, bytes, limit)
	}
	return err
}

// Charge implements files.Ledger.
func (a accounts) Charge(ctx context.Context, tenant, space uuid.UUID, bytes int64) error {
	limit, err := a.limit(ctx, tenant, space)
	if err != nil {
		return err
	}
	for range 3 {
		holds, counted, fits, err := a.usage.Add(ctx, space, bytes, limit)
		switch {
		case err != nil:
			return err
		case fits:
			return nil
		case counted:
			return full(holds, bytes, limit)
		}
		if err := a.Recount(ctx, tenant, space); err != nil {
			return err
		}
	}
	return fmt.Errorf("space %s can't be counted", space)
}

// Return implements files.Ledger.
func (a accounts) Return(ctx context.Context, _, space uuid.UUID, bytes int64) error {
	_, _, _, err := a.usage.Add(ctx, space, -bytes, postgres.NoLimit)
	return err // what was never counted is right when it is
}

// limit is what a space may hold; below zero: there is no limit.
func (a accounts) limit(ctx context.Context, tenant, space uuid.UUID) (int64, error) {
	s, err := a.spaces.Load(ctx, tenant, space)
	if err != nil {
		return 0, err
	}
	if most, limited := a.spaces.Limits.Limit(s); limited {
		return most, nil
	}
	return postgres.NoLimit, nil
}

func full(holds, more, limit int64) *fault.Fault {
	return fault.New(fault.Quota, fault.CodeQuotaExceeded, fmt.Sprintf(
		"The space holds %d bytes and may hold %d; %d more do not fit. Delete what is no longer needed, or ask a tenant admin for more room.",
		holds, limit, more)).
		With("usedBytes", strconv.FormatInt(holds, 10)).With("limitBytes", strconv.FormatInt(limit, 10)).With("neededBytes", strconv.FormatInt(more, 10))
}

// Recount implements files.Ledger. While the space changes all the time no
// count of it is kept; what it holds is known from its changes then, and the
// next one tries again.
func (a accounts) Recount(ctx context.Context, tenant, space uuid.UUID) error {
	_, err := a.recount(ctx, tenant, space)
	return err
}

func (a accounts) recount(ctx context.Context, tenant, space uuid.UUID) (bytes int64, err error) {
	if err := a.disk.EnsureSpace(ctx, tenant, space); err != nil {
		return 0, err
	}
	for range 3 {
		u, counted, err := a.usage.Get(ctx, space)
		if err != nil {
			return 0, err
		}
		if !counted {
			u.Changes = -1
		}
		bytes, err := a.disk.Measure(ctx, tenant, space)
		if err != nil {
			return 0, err
		}
		if kept, err := a.usage.Counted(ctx, tenant, space, bytes, u.Changes, time.Now()); err != nil || kept {
			return bytes, err
		}
	}
	u, _, err := a.usage.Get(ctx, space)
	return u.Bytes, err
}

// countEvery is how old a count gets before everything is counted again: what
// workloads write comes to light by it.
const countEvery = 24 * time.Hour

// recountAll counts every space whose count is older than a moment, and tells of
// each what it was taken for and what it holds.
func (a accounts) recountAll(ctx context.Context, spaces projstorage.Queries, before time.Time, tell func(space uuid.UUID, was, is int64)) error {
	last := uuid.Nil
	for {
		list, err := spaces.After(ctx, last, 100)
		if errors.Is(err, runner.ErrNotReady) || err == nil && len(list) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		for _, s := range list {
			last = s.ID
			u, counted, err := a.usage.Get(ctx, s.ID)
			if err != nil {
				return err
			}
			if counted && !u.CountedAt.Before(before) {
				continue
			}
			is, err := a.recount(ctx, s.Tenant, s.ID)
			if err != nil {
				return err
			}
			tell(s.ID, u.Bytes, is)
		}
	}
}

// used tells what spaces hold.
type used struct{ table *postgres.SpaceUsage }

// Find implements loader.UsageSource.
func (u used) Find(ctx context.Context, tenant uuid.UUID, spaces []uuid.UUID) (map[uuid.UUID]loader.Usage, error) {
	rows, err := u.table.Find(ctx, tenant, spaces)
	out := make(map[uuid.UUID]loader.Usage, len(rows))
	for id, r := range rows {
		out[id] = loader.Usage{Bytes: r.Bytes, CountedAt: r.CountedAt}
	}
	return out, err
}

// digests knows the SHA-256 of files that were uploaded or read whole.
type digests struct{ table *postgres.FileDigests }

var _ files.Digests = digests{}

// Learn implements files.Digests.
func (d digests) Learn(ctx context.Context, _, space uuid.UUID, p storage.Path, version string, sum []byte) error {
	return d.table.Keep(ctx, space, p.String(), version, sum, time.Now())
}

// Known implements the port of graph/transport/files.
func (d digests) Known(ctx context.Context, _, space uuid.UUID, p storage.Path, info fs.FileInfo) ([]byte, error) {
	version := files.VersionOf(info)
	if version == "" {
		return nil, nil
	}
	return d.table.Find(ctx, space, p.String(), version)
}

// Keep implements the port of graph/transport/files.
func (d digests) Keep(ctx context.Context, tenant, space uuid.UUID, p storage.Path, info fs.FileInfo, sum []byte) error {
	version := files.VersionOf(info)
	if version == "" {
		return nil
	}
	return d.Learn(ctx, tenant, space, p, version, sum)
}
