// Package expiry ends what may wait for a time only and whose time has come.
package expiry

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/processes/lifecycle"
)

// Name is the loop's name.
const Name = "expiry"

// batch is how many things are looked up at once.
const batch = 100

// space makes the commands' ids: one end per thing.
var space = uuid.MustParse("6d3bb7f2-6c1e-5a0b-9d43-0f6a4f0b8a11")

// Ref names a thing of a tenant.
type Ref struct{ Tenant, ID uuid.UUID }

// Config is what the loop works with.
type Config struct {
	Clock es.Clock
	// Every is how often the clock is asked.
	Every time.Duration
	// Due lists what waits longer than it may, at most so many.
	Due func(ctx context.Context, now time.Time, limit int) ([]Ref, error)
	// Expire ends one; what was decided meanwhile it leaves alone.
	Expire func(ctx context.Context, cmd es.Command, id uuid.UUID) error
	Logger *slog.Logger
}

// Loop ends things when their time has come.
type Loop struct{ c Config }

// New makes the loop.
func New(c Config) *Loop { return &Loop{c} }

// Name implements lifecycle.Runner.
func (*Loop) Name() string { return Name }

// Status implements lifecycle.Runner.
func (*Loop) Status() lifecycle.Status {
	return lifecycle.Status{Name: Name, Condition: lifecycle.Ready}
}

// Run implements lifecycle.Runner.
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(l.c.Every)
	defer tick.Stop()
	for {
		if err := l.once(ctx); err != nil && ctx.Err() == nil {
			l.c.Logger.WarnContext(ctx, "what is due was not ended", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// once ends what is due now. The read model may be behind: what it still lists
// is looked at once more by the next round, which changes nothing.
func (l *Loop) once(ctx context.Context) error {
	due, err := l.c.Due(ctx, l.c.Clock.Now(), batch)
	if err != nil {
		return err
	}
	for _, r := range due {
		cmd := es.System(uuid.NewSHA1(space, r.ID[:]), Name, "expireRequest", r.Tenant)
		if err := l.c.Expire(ctx, cmd, r.ID); err != nil {
			return err
		}
	}
	return nil
}
