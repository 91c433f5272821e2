package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"tallyard/infra/eventstore/embedded/persistent"
)

// lastWrites bounds what a group writes when it ends. What it does not get
// written is delivered again.
const lastWrites = 500 * time.Millisecond

// run reads and writes for the group until its context ends or the store fails.
func (g *group) run(ctx context.Context) {
	defer close(g.done)
	r := &groupReader{group: g}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		busy, err := g.step(ctx, r)
		switch {
		case ctx.Err() != nil:
			continue
		case err != nil:
			g.fail(err)
			return
		case busy:
			continue
		}
		news := r.news
		g.mu.Lock()
		now := time.Now()
		at, due := g.state.NextCheck(now)
		if g.state.Room() == 0 {
			news = nil // nothing could be taken: the log may grow as it likes
		}
		g.mu.Unlock()
		if !due {
			at = now.Add(time.Hour)
		}
		timer.Reset(max(at.Sub(now), 0))
		select {
		case <-g.kick:
		case <-news:
		case <-timer.C:
		case <-g.store.failed():
			g.fail(fmt.Errorf("%w: %w", errFailed, g.store.failure()))
			return
		case <-ctx.Done():
		}
	}
	g.mu.Lock()
	keep := g.keep
	g.mu.Unlock()
	if keep {
		g.writeLast(context.WithoutCancel(ctx))
	}
}

// step does what there is to do once, and tells whether there may be more.
func (g *group) step(ctx context.Context, r *groupReader) (busy bool, err error) {
	g.mu.Lock()
	g.state.Expire(time.Now())
	g.mu.Unlock()
	for _, part := range []func(context.Context) (bool, error){
		g.writeParked, g.beginReplay, g.readParked, r.read, g.writeCheckpoint, g.truncateParked,
	} {
		did, err := part(ctx)
		if err != nil {
			return false, err
		}
		busy = busy || did
	}
	return busy, nil
}

// writeLast writes down how far the group is before it ends.
func (g *group) writeLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWrites)
	defer cancel()
	if _, err := g.writeParked(ctx); err != nil {
		return
	}
	g.mu.Lock()
	at, checkpoint := g.state.Checkpoint(time.Now(), true)
	before, cut := g.state.Truncate(time.Now(), true)
	g.mu.Unlock()
	var err error
	if checkpoint {
		err = g.putCheckpoint(ctx, at)
	}
	if cut && err == nil {
		err = g.cutParked(ctx, before)
	}
	if err != nil {
		g.logger.Warn("a persistent subscription could not write down how far it is; it delivers some events again", "error", err)
	}
}

// writeCheckpoint writes a checkpoint if it is time for one.
func (g *group) writeCheckpoint(ctx context.Context) (bool, error) {
	g.mu.Lock()
	at, due := g.state.Checkpoint(time.Now(), false)
	g.mu.Unlock()
	if !due {
		return false, nil
	}
	err := g.putCheckpoint(ctx, at)
	g.mu.Lock()
	g.state.CheckpointWritten(time.Now(), err == nil)
	g.mu.Unlock()
	return true, g.survive(ctx, "write a checkpoint", err)
}

func (g *group) putCheckpoint(ctx context.Context, at persistent.Position) error {
	data, err := json.Marshal(at.Format(g.name.wholeLog()))
	if err != nil {
		return fmt.Errorf("write a checkpoint: %w", err)
	}
	stream := g.name.checkpoints()
	e := proposed{id: uuid.New(), kind: checkpointType, contentType: contentJSON, data: data}
	if err := g.store.appendOwn(ctx, stream, e); err != nil {
		return err
	}
	return g.store.keepLast(ctx, stream)
}

// survive tells which failed writes end the group: those of a store that takes
// no more. Any other is tried again later and loses nothing.
func (g *group) survive(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errFailed), errors.Is(err, errStopping):
		return err
	}
	g.logger.Warn("a persistent subscription could not write; it tries again", "what", what, "error", err)
	return nil
}
