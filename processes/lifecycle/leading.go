package lifecycle

import (
	"context"
	"errors"
	"sync"
)

// Lead runs f while this process is the leader called name, again each time it
// becomes that, until ctx ends. The context of f ends when leadership is lost.
type Lead func(ctx context.Context, name string, f func(context.Context) error) error

// Under makes one Runner of several that run together, only while this process
// leads. When one returns the others are stopped and leadership is given up, so
// that another process gets its chance.
func Under(lead Lead, name string, runners ...Runner) Runner {
	return &led{lead: lead, name: name, runners: runners}
}

type led struct {
	lead    Lead
	name    string
	runners []Runner
}

// Name implements Runner.
func (l *led) Name() string { return l.name }

// Run implements Runner.
func (l *led) Run(ctx context.Context) error {
	err := l.lead(ctx, l.name, func(ctx context.Context) error { return together(ctx, l.runners) })
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the end was asked for
	}
	return err
}

// Status is that of the runner that does worst.
func (l *led) Status() Status {
	worst := Status{Name: l.name, Condition: Waiting}
	for i, r := range l.runners {
		s := r.Status()
		if i == 0 || rank[s.Condition] > rank[worst.Condition] {
			worst.Condition, worst.Detail, worst.Since = s.Condition, s.Detail, s.Since
		}
		worst.Handled += s.Handled
		worst.Retries += s.Retries
	}
	return worst
}

// Each gives the status of every runner.
func (l *led) Each() []Status {
	all := make([]Status, len(l.runners))
	for i, r := range l.runners {
		all[i] = r.Status()
	}
	return all
}

// Statuses gives the status of every loop behind a runner or a service.
func Statuses(of interface{ Status() Status }) []Status {
	if l, ok := of.(*Loop); ok {
		return Statuses(l.runner)
	}
	if l, ok := of.(*led); ok {
		return l.Each()
	}
	return []Status{of.Status()}
}

var rank = map[Condition]int{Ready: 0, Waiting: 1, Starting: 2, Retrying: 3}

// together runs all until ctx ends or one returns, and waits for all.
func together(ctx context.Context, runners []Runner) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(runners))
	var wg sync.WaitGroup
	for i, r := range runners {
		wg.Go(func() {
			defer cancel()
			errs[i] = guarded(ctx, r)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
