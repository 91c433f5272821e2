package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"tallyard/domain/es"
)

const (
	// category begins the names of the streams that subscribers follow.
	category = "soak-"
	// wasteCategory begins those that are deleted again.
	wasteCategory = "waste-"
	// perStream is how many events a writer's stream gets before the next begins.
	perStream = 100
	// prefilled is how many events the store has before the time runs: more
	// than it knows by heart, so that what fills up early is full.
	prefilled = 100_000
	pad       = 350
)

// note is the body of an event.
type note struct {
	Writer int
	Number int64 // of the writer's events, from 0
	Pad    string
}

var padding = strings.Repeat("x", pad)

func raw(n note) (es.Raw, error) {
	n.Pad = padding
	body, err := json.Marshal(n)
	if err != nil {
		return es.Raw{}, err
	}
	return es.Raw{ID: uuid.New(), Type: "soak.noted.v1", Data: body, Metadata: []byte(`{}`)}, nil
}

// write appends a writer's events, at its part of the rate, one after the other.
func (s *soak) write(ctx context.Context, writer int) error {
	every := time.Duration(float64(time.Second) * float64(s.writers) / s.rate)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for number := int64(0); ; number++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		e, err := raw(note{Writer: writer, Number: number})
		if err != nil {
			return err
		}
		// What has begun is finished, so that it is known what was written.
		stream := fmt.Sprintf("%s%d.%d", category, writer, number/perStream)
		w, err := s.log.Append(context.WithoutCancel(ctx), stream, es.At(es.Revision(number%perStream-1)), e)
		if err != nil {
			return fmt.Errorf("writer %d: %w", writer, err)
		}
		s.written.Add(1)
		s.reached(uint64(w.Position))
	}
}

// reached takes note of the position of an event that was written.
func (s *soak) reached(position uint64) {
	for {
		have := s.position.Load()
		if position <= have || s.position.CompareAndSwap(have, position) {
			return
		}
	}
}

// prefill appends what is there before the time runs.
func (s *soak) prefill(ctx context.Context) error {
	var mu sync.Mutex
	next := 0
	g, ctx := errgroup.WithContext(ctx)
	for range 32 {
		g.Go(func() error {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i*perStream >= prefilled {
					return nil
				}
				if err := s.batch(ctx, fmt.Sprintf("early-%d", i)); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// batch fills a stream with one append.
func (s *soak) batch(ctx context.Context, stream string) error {
	events := make([]es.Raw, perStream)
	for i := range events {
		e, err := raw(note{Number: int64(i)})
		if err != nil {
			return err
		}
		events[i] = e
	}
	_, err := s.log.Append(ctx, stream, es.NoStream(), events...)
	return err
}

// waste writes a stream and deletes it, so that there is something to scavenge.
func (s *soak) waste(ctx context.Context) error {
	stream := wasteCategory + uuid.NewString()
	if err := s.batch(ctx, stream); err != nil {
		return err
	}
	return s.log.Delete(ctx, stream, es.At(perStream-1))
}
