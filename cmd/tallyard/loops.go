package main

import (
	"context"
	"log/slog"
	"time"

	"tallyard/processes/lifecycle"
	"tallyard/projections/runner"
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

// forgetAddresses drops clients' addresses that were kept long enough.
func (p *parts) forgetAddresses(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			n, err := p.origins.table.DeleteBefore(ctx, now.Add(-p.config.originsKept))
			if err != nil {
				p.logger.WarnContext(ctx, "old client addresses not dropped", "error", err)
			} else if n > 0 {
				p.logger.InfoContext(ctx, "old client addresses dropped", "count", n)
			}
		}
	}
}
