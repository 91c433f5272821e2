// Package lifecycle holds the one contract by which the program starts and
// stops its loops. A loop is a [Runner]: it works until its context ends and
// has returned everything it started when it returns. [Loop] makes a [Service]
// of it, which cmd starts in order and stops in reverse; [Under] runs several
// of them only while this process leads.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Runner is a loop. Run returns when ctx ends, with nil, or earlier with what
// makes going on impossible; no goroutine of it is left then.
type Runner interface {
	Name() string
	Run(ctx context.Context) error
	// Status tells how it is doing; it may be asked at any time.
	Status() Status
}

// Service is something that is started once and stopped once.
type Service interface {
	Name() string
	// Start returns when the service works or can't; it does not keep ctx.
	Start(ctx context.Context) error
	// Stop ends the service before ctx does, or says that it did not end.
	Stop(ctx context.Context) error
}

// Condition tells how a loop is doing.
type Condition string

// Conditions.
const (
	Waiting  Condition = "WAITING"  // not started, or somebody else leads
	Starting Condition = "STARTING" // catching up
	Ready    Condition = "READY"
	Retrying Condition = "RETRYING" // stuck on something that it tries again and again
)

// Status is how a loop is doing, for /readyz, metrics and the status commands.
// Detail is for operators and may hold an error's text; it never goes to users.
type Status struct {
	Name      string
	Condition Condition
	Detail    string
	Since     time.Time
	Handled   uint64 // events or items dealt with since the start
	Retries   uint64 // failed tries since the start
}

// StartAll starts services in order; when one fails those before it are stopped.
func StartAll(ctx context.Context, services ...Service) error {
	for i, s := range services {
		if err := s.Start(ctx); err != nil {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
			defer cancel()
			return errors.Join(fmt.Errorf("start %s: %w", s.Name(), err), StopAll(stop, services[:i]...))
		}
	}
	return nil
}

// StopAll stops services in reverse order; all of them, whatever one says.
func StopAll(ctx context.Context, services ...Service) error {
	var errs []error
	for i := len(services) - 1; i >= 0; i-- {
		if err := services[i].Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", services[i].Name(), err))
		}
	}
	return errors.Join(errs...)
}
