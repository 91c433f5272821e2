package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
)

const (
	// flat is how much more there may be at the end than after warming up.
	flat = 1.1
	// catchUpTime is how long subscribers may take for the rest, when the
	// writers have stopped.
	catchUpTime = 2 * time.Minute
)

// soak is one run.
type soak struct {
	options
	dir    string
	server *embedded.Server
	log    *eventstore.Log

	written atomic.Int64 // events that subscribers get
	got     atomic.Int64 // by all subscribers together
	upkeeps atomic.Int64
	// scavenged counts the deleted events that scavenges have removed.
	scavenged atomic.Int64
	position  atomic.Uint64 // of the last event written
}

func (s *soak) run(ctx context.Context) error {
	if err := s.prefill(ctx); err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	watchers, err := s.subscribe(ctx)
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	fmt.Printf("%d writers, %d subscribers, %.0f events/s, %s\n", s.writers, s.subscribers, s.rate, s.time)
	early, late, err := s.work(ctx)
	if err != nil {
		return err
	}
	if err := s.settle(ctx, watchers); err != nil {
		return err
	}
	fmt.Printf("every subscriber got %d events once and in order; %d rounds of upkeep; %d deleted events scavenged\n",
		s.written.Load(), s.upkeeps.Load(), s.scavenged.Load())
	if s.scavenged.Load() == 0 {
		return errors.New("nothing was scavenged")
	}
	return compare(early, late)
}

// work runs writers and upkeep for the time of the soak, and takes readings.
func (s *soak) work(ctx context.Context) (early, late reading, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for w := range s.writers {
		g.Go(func() error { return s.write(ctx, w) })
	}
	for _, c := range s.chores() {
		g.Go(func() error { return s.repeat(ctx, c) })
	}
	g.Go(func() error {
		defer cancel()
		early, late, err = s.observe(ctx)
		return err
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return reading{}, reading{}, err
	}
	if late.at == 0 {
		return reading{}, reading{}, errors.New("it was stopped before its time")
	}
	return early, late, nil
}

// chore is a piece of an operator's work.
type chore struct {
	name  string
	every time.Duration
	do    func(context.Context) error
}

// repeat does a chore again and again. One that has begun is finished.
func (s *soak) repeat(ctx context.Context, c chore) error {
	for {
		if !sleep(ctx, c.every) {
			return ctx.Err()
		}
		if err := c.do(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		s.upkeeps.Add(1)
	}
}

// settle waits until every subscriber has got the last event, and looks at what
// each got.
func (s *soak) settle(ctx context.Context, watchers []*watcher) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	var all error
	for i, w := range watchers {
		if err := w.finish(ctx, es.Position(s.position.Load()), s.written.Load()); err != nil {
			all = errors.Join(all, fmt.Errorf("subscriber %d: %w", i, err))
		}
	}
	return all
}

// sleep waits and tells whether the whole time is over.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
