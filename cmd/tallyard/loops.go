package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tallyard/processes/lifecycle"
	"tallyard/projections/runner"
	projstorage "tallyard/projections/storage"
)

// namedLoop is a loop with a name, as a lifecycle.Runner.
type namedLoop struct {
	name string
	run  func(context.Context) error
}

func (l namedLoop) Name() string                  { return l.name }
func (l namedLoop) Run(ctx context.Context) error { return l.run(ctx) }
func (l namedLoop) Status() lifecycle.Status {
	return lifecycle.Status{Name: l.name, Condition: lifecycle.Ready}
}

func loop(name string, run func(context.Context) error, logger *slog.Logger) lifecycle.Service {
	return lifecycle.NewLoop(namedLoop{name, run}, logger)
}

// projectorService is the projections' runner as a service.
type projectorService struct{ *runner.Runner }

func (p *parts) projector() lifecycle.Service { return projectorService{p.runner} }

func (projectorService) Name() string { return "projector" }

func (s projectorService) Status() lifecycle.Status {
	status := lifecycle.Status{Name: "projector", Condition: lifecycle.Starting}
	select {
	case <-s.Ready():
		status.Condition = lifecycle.Ready
	default:
	}
	return status
}

// uploadsKept is how long an upload that nobody goes on with is kept.
const uploadsKept = 7 * 24 * time.Hour

// sweepUploads removes uploads that were given up, in every space.
func (p *parts) sweepUploads(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if n, err := p.sweepOnce(ctx, now.Add(-uploadsKept)); err != nil && ctx.Err() == nil {
				p.logger.WarnContext(ctx, "abandoned uploads not removed", "error", err)
			} else if n > 0 {
				p.logger.InfoContext(ctx, "abandoned uploads removed", "count", n)
			}
		}
	}
}

func (p *parts) sweepOnce(ctx context.Context, before time.Time) (removed int, err error) {
	spaces := projstorage.Queries{Reader: p.reader}
	last := uuid.Nil
	for {
		list, err := spaces.After(ctx, last, 100)
		if err != nil || len(list) == 0 {
			return removed, err
		}
		for _, s := range list {
			if err := p.disk.EnsureSpace(ctx, s.Tenant, s.ID); err != nil {
				return removed, err
			}
			n, err := p.disk.Sweep(ctx, s.Tenant, s.ID, before)
			if removed += n; err != nil {
				return removed, err
			}
			last = s.ID
		}
	}
}

// digestsKept is how long the digest of a file is remembered.
const digestsKept = 180 * 24 * time.Hour

// countSpaces counts anew what spaces hold, and forgets digests of files that
// nobody has put anywhere for long.
func (p *parts) countSpaces(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			tell := func(space uuid.UUID, was, is int64) {
				if was != is {
					p.logger.InfoContext(ctx, "a space holds something else than was known", "space", space, "was", was, "is", is)
				}
			}
			if err := p.accounts.recountAll(ctx, projstorage.Queries{Reader: p.reader}, now.Add(-countEvery), tell); err != nil && ctx.Err() == nil {
				p.logger.WarnContext(ctx, "spaces not counted", "error", err)
			}
			if _, err := p.digests.table.DeleteBefore(ctx, now.Add(-digestsKept)); err != nil && ctx.Err() == nil {
				p.logger.WarnContext(ctx, "old digests not dropped", "error", err)
			}
		}
	}
}
