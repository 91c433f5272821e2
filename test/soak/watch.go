package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tallyard/domain/es"
)

// watcher is a subscriber that looks at what it gets. What it keeps does not
// grow with the events.
type watcher struct {
	sub   es.Subscription
	ended chan struct{} // closed when the goroutine has ended
	want  chan goal

	// What follows belongs to the goroutine until it has ended.
	next     []int64 // number of each writer's next event
	position es.Position
	count    int64
	err      error
}

// goal is where a watcher may stop.
type goal struct {
	position es.Position
	count    int64
}

// subscribe starts the subscribers, which follow what is written from now on.
func (s *soak) subscribe(ctx context.Context) ([]*watcher, error) {
	watchers := make([]*watcher, s.subscribers)
	for i := range watchers {
		sub, err := s.log.Subscribe(ctx, es.FromEnd(), es.Filter{StreamPrefixes: []string{category}})
		if err != nil {
			return nil, err
		}
		w := &watcher{sub: sub, ended: make(chan struct{}), want: make(chan goal, 1), next: make([]int64, s.writers)}
		watchers[i] = w
		go func() {
			defer close(w.ended)
			w.err = w.follow(func() { s.got.Add(1) })
		}()
	}
	return watchers, nil
}

// follow takes events until the goal is reached or something is wrong.
func (w *watcher) follow(got func()) error {
	var until *goal
	want := w.want
	for {
		if until != nil && w.position >= until.position {
			if w.count != until.count {
				return fmt.Errorf("got %d events of %d", w.count, until.count)
			}
			return nil
		}
		select {
		case g := <-want:
			until, want = &g, nil
		case m, ok := <-w.sub.Messages():
			if !ok {
				return errors.Join(errors.New("the subscription ended"), w.sub.Err())
			}
			if m.Kind != es.MessageEvent {
				continue
			}
			if err := w.take(m.Event); err != nil {
				return err
			}
			got()
		}
	}
}

// take looks at one event.
func (w *watcher) take(e es.Recorded) error {
	var n note
	if err := json.Unmarshal(e.Data, &n); err != nil {
		return err
	}
	switch {
	case n.Writer < 0 || n.Writer >= len(w.next):
		return fmt.Errorf("an event of writer %d, whom nobody knows", n.Writer)
	case n.Number != w.next[n.Writer]:
		return fmt.Errorf("event %d of writer %d came instead of %d", n.Number, n.Writer, w.next[n.Writer])
	case e.Position <= w.position:
		return fmt.Errorf("an event at %d came behind one at %d", e.Position, w.position)
	}
	w.next[n.Writer]++
	w.position = e.Position
	w.count++
	return nil
}

// finish waits until the watcher has got everything up to a position, ends it
// and tells what was wrong.
func (w *watcher) finish(ctx context.Context, position es.Position, count int64) error {
	w.want <- goal{position, count}
	select {
	case <-w.ended:
	case <-ctx.Done():
		w.sub.Close()
		<-w.ended
		return fmt.Errorf("%w: has got %d events of %d", ctx.Err(), w.count, count)
	}
	w.sub.Close()
	return w.err
}
