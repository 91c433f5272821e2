package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
)

// How often processes that do not project look how far the projections are:
// for a mutation that waits, and for live updates.
const (
	lookForWait   = 5 * time.Millisecond
	lookForFollow = 20 * time.Millisecond
)

// WaitLimit is how long a read waits for a position at most.
const WaitLimit = 2 * time.Second

// WaitFor waits until the projections have reached a position, at most
// WaitLimit; then it is ErrStale: what was written is written, and shows later.
// With no projections there is nothing to wait for.
func (r *Reader) WaitFor(ctx context.Context, pos es.Position, projections ...string) error {
	limited, cancel := context.WithTimeout(ctx, WaitLimit)
	defer cancel()
	err := r.Await(limited, pos, projections...)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return ErrStale
	}
	return err
}

// Await is WaitFor for as long as ctx allows.
func (r *Reader) Await(ctx context.Context, pos es.Position, projections ...string) error {
	for _, name := range projections {
		if r.set.byName[name] == nil {
			return fmt.Errorf("there is no projection %q", name)
		}
	}
	if len(projections) == 0 || pos == es.StartPosition {
		return nil
	}
	return r.progress.wait(ctx, lookForWait, r.look, func(at map[string]es.Position) bool {
		for _, name := range projections {
			if at[name] < pos {
				return false
			}
		}
		return true
	})
}

// Progress is how far each projection of the live generation is.
type Progress struct {
	Generation int32
	At         map[string]es.Position
}

// Progress gives the newest that this process knows; it may be empty before
// anything is live.
func (r *Reader) Progress() Progress {
	r.progress.mu.Lock()
	defer r.progress.mu.Unlock()
	return Progress{r.progress.gen, r.progress.at}
}

// Follow returns as soon as the progress differs from the one that is known
// already. Live updates wait with it: a change goes out when the projection
// that serves it has reached the change's position.
func (r *Reader) Follow(ctx context.Context, known Progress) (Progress, error) {
	var now Progress
	err := r.progress.wait(ctx, lookForFollow, r.look, func(at map[string]es.Position) bool {
		now.At = at
		for name, pos := range at {
			if known.At[name] != pos {
				return true
			}
		}
		return false
	})
	if err != nil {
		return known, err
	}
	return r.Progress(), nil
}

// look reads the live checkpoints.
func (r *Reader) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	gen, at, err := r.checkpoints(ctx)
	if err != nil {
		return err
	}
	r.progress.set(gen, at, false)
	return nil
}

func (r *Reader) checkpoints(ctx context.Context) (int32, map[string]es.Position, error) {
	rows, err := r.db.Query(ctx, `SELECT generation, projection, position FROM tallyard.checkpoints
		WHERE generation = (`+pointerSQL+`)`, r.set.digest)
	if err != nil {
		return 0, nil, err
	}
	var (
		gen  int32
		name string
		pos  int64
		at   = map[string]es.Position{}
	)
	_, err = pgx.ForEachRow(rows, []any{&gen, &name, &pos}, func() error {
		at[name] = position(pos)
		return nil
	})
	if err == nil && len(at) == 0 {
		err = ErrNotReady
	}
	return gen, at, err
}

// WaitReady waits until a generation of this program's tables is live and has
// what the log had at the time of the call, apart from projections that halted.
func (r *Reader) WaitReady(ctx context.Context) error {
	var head es.Position
	known := false
	for {
		if !known {
			if h, err := headOf(ctx, r.log); err == nil {
				head, known = h, true
			}
		}
		if known {
			var behind int
			err := r.db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE halted = '' AND position < $2)
				FROM tallyard.checkpoints c JOIN tallyard.generations g ON g.id = c.generation
				WHERE g.digest = $1 AND g.state = 'live' HAVING count(*) > 0`, r.set.digest, dbPosition(head)).Scan(&behind)
			if err == nil && behind == 0 {
				return nil
			}
		}
		if err := sleep(ctx, 25*time.Millisecond); err != nil {
			return err
		}
	}
}
