package runner_test

import (
	"context"
	"sync"
	"sync/atomic"

	"tallyard/domain/es"
)

// countingLog counts the events that subscriptions deliver.
type countingLog struct {
	es.Log
	events atomic.Int64
}

func (l *countingLog) Subscribe(ctx context.Context, start es.Start, filter es.Filter) (es.Subscription, error) {
	sub, err := l.Log.Subscribe(ctx, start, filter)
	if err != nil {
		return nil, err
	}
	c := &countingSubscription{Subscription: sub, out: make(chan es.Message), stop: make(chan struct{})}
	c.wg.Go(func() {
		defer close(c.out)
		for m := range sub.Messages() {
			if m.Kind == es.MessageEvent {
				l.events.Add(1)
			}
			select {
			case c.out <- m:
			case <-c.stop:
				return
			}
		}
	})
	return c, nil
}

type countingSubscription struct {
	es.Subscription
	out  chan es.Message
	stop chan struct{}
	wg   sync.WaitGroup
}

func (s *countingSubscription) Messages() <-chan es.Message { return s.out }

func (s *countingSubscription) Close() {
	close(s.stop)
	s.Subscription.Close()
	s.wg.Wait()
}
