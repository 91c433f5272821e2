package runner

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
)

// state is how far one projection of a generation is. Only its flow's
// goroutine (or the one that it waits for) touches it.
type state struct {
	p     *Projection
	texts *texts
	w     *Writer
	// stored is the checkpoint in Postgres; at is how far the projection is:
	// between them lie only events that it has nothing to do with.
	stored, at es.Position
	halted     string
	parked     map[string]bool
}

// solid is the last event seen whose stream stays in the log for good. It is
// kept with the checkpoints to recognise the log again.
type solid struct {
	position es.Position
	id       uuid.UUID
}

func (s *solid) see(rec *es.Recorded) {
	if !volatile(rec.Stream) {
		s.position, s.id = rec.Position, rec.ID
	}
}

const (
	// The log is the truth: what a crash of Postgres takes is projected again.
	quickCommitSQL = `SELECT set_config('synchronous_commit', 'off', true)`
	advanceSQL     = `SELECT tallyard.advance_checkpoints($1, $2, $3, $4, $5, $6)`
)

// queueAdvance queues the compare-and-set of checkpoints. It comes first in
// every transaction: the rows of a projection are written only by who holds it.
func queueAdvance(b *pgx.Batch, gen int32, last solid, states []*state, to func(*state) es.Position) {
	names := make([]string, len(states))
	was := make([]int64, len(states))
	becomes := make([]int64, len(states))
	for i, st := range states {
		names[i], was[i], becomes[i] = st.p.Name, dbPosition(st.stored), dbPosition(to(st))
	}
	b.Queue(quickCommitSQL)
	b.Queue(advanceSQL, gen, names, was, becomes, dbPosition(last.position), last.id)
}

func dbPosition(p es.Position) int64 { return int64(p) } //nolint:gosec // positions are far below 2^63

func position(n int64) es.Position { return es.Position(n) } //nolint:gosec // stored by dbPosition

// loadStates reads how far a generation's projections are. A halt is lifted:
// this program may know what the one before it did not.
func (c *core) loadStates(ctx context.Context, g generation) ([]*state, solid, error) {
	var last solid
	byName := map[string]*state{}
	rows, err := c.db.Query(ctx, `UPDATE tallyard.checkpoints SET halted = '' WHERE generation = $1
		RETURNING projection, position, event_position, coalesce(event_id, '00000000-0000-0000-0000-000000000000')`, g.id)
	if err != nil {
		return nil, last, err
	}
	var (
		name        string
		at, eventAt int64
		event       uuid.UUID
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &at, &eventAt, &event}, func() error {
		byName[name] = &state{stored: position(at), at: position(at), parked: map[string]bool{}}
		if position(eventAt) > last.position {
			last = solid{position(eventAt), event}
		}
		return nil
	})
	if err != nil {
		return nil, last, err
	}
	states := make([]*state, 0, len(c.set.list))
	for _, p := range c.set.list {
		st := byName[p.Name]
		if st == nil {
			return nil, last, fmt.Errorf("generation %d has no checkpoint of %s", g.id, p.Name)
		}
		st.p, st.texts = p, newTexts(g.schema())
		st.w = &Writer{texts: st.texts}
		states = append(states, st)
	}
	return states, last, c.loadParked(ctx, g, byName)
}

// checkLog makes sure that the log still holds what the generation was made from.
func (c *core) checkLog(ctx context.Context, last solid) error {
	if last.position == es.StartPosition {
		return nil
	}
	for rec, err := range c.log.ReadAll(ctx, last.position-1, es.Forward, 1) {
		if err != nil {
			return fmt.Errorf("look for the last projected event: %w", err)
		}
		if rec.ID == last.id && rec.Position == last.position {
			return nil
		}
	}
	return fmt.Errorf("%w: the event that it saw last (%s) is not there; was the store restored from an older backup? "+
		"`tallyard projections rebuild --accept-new-store` builds the read model from what this store has", ErrOtherStore, last.id)
}

// storeHalt writes down why a projection stands still.
func (c *core) storeHalt(ctx context.Context, g generation, st *state) error {
	_, err := c.db.Exec(ctx, `UPDATE tallyard.checkpoints SET halted = $3 WHERE generation = $1 AND projection = $2`,
		g.id, st.p.Name, st.halted)
	return err
}
