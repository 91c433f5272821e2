package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
)

const (
	// attempts is how often an event is tried before its stream is parked.
	attempts = 3
	// patience is how many events of a batch are waited for between tries: when
	// a whole kind of events fails, waiting for each would hold up the others.
	patience = 4
)

// loadParked reads which streams are parked.
func (c *core) loadParked(ctx context.Context, g generation, byName map[string]*state) error {
	rows, err := c.db.Query(ctx, `SELECT projection, stream FROM tallyard.parked_streams WHERE generation = $1`, g.id)
	if err != nil {
		return err
	}
	var name, stream string
	_, err = pgx.ForEachRow(rows, []any{&name, &stream}, func() error {
		if st := byName[name]; st != nil {
			st.parked[stream] = true
		}
		return nil
	})
	return err
}

// singly does a batch again, each event behind a savepoint, and parks the
// streams whose events fail. It is still one transaction with the checkpoint.
func (f *flow) singly(ctx context.Context, st *state, todo []*item) error {
	return f.insist(ctx, st.p.Name, func(ctx context.Context) error {
		parked := map[string]bool{}
		err := f.inTx(ctx, st, func(tx pgx.Tx) error {
			waits := patience
			for _, it := range todo {
				if parked[it.rec.Stream] {
					continue
				}
				cause, err := f.tryEvent(ctx, tx, st, it, &waits)
				if err != nil {
					return err
				}
				if cause != nil {
					if err := f.park(ctx, tx, st, it, cause); err != nil {
						return err
					}
					parked[it.rec.Stream] = true
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		st.stored = st.at
		for stream := range parked {
			st.parked[stream] = true
		}
		return nil
	})
}

// inTx runs fn in a transaction that begins with the projection's checkpoint.
func (f *flow) inTx(ctx context.Context, st *state, fn func(pgx.Tx) error) error {
	conn, err := f.db.Acquire(ctx)
	if err != nil {
		return &transactionError{failurePassing, err}
	}
	defer conn.Release()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(byIndex)
		queueAdvance(b, f.gen.id, f.last, []*state{st}, func(st *state) es.Position { return st.at })
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		return fn(tx)
	})
	if err == nil {
		return nil
	}
	// Events that fail were dealt with by savepoints: what is left is Postgres.
	kind := classify(err, conn.Conn())
	if kind == failureEvent {
		kind = failurePassing
	}
	return &transactionError{kind, err}
}

// tryEvent projects one event behind a savepoint. cause says why it can't be;
// err that the whole transaction is to be given up.
func (f *flow) tryEvent(ctx context.Context, tx pgx.Tx, st *state, it *item, waits *int) (cause, err error) {
	back := wait{f.times.Retry, f.times.RetryMost}
	for n := 1; ; n++ {
		cause = f.once(ctx, tx, st, it)
		if cause == nil {
			return nil, nil
		}
		if classify(cause, tx.Conn()) != failureEvent {
			return nil, cause
		}
		if n == attempts || *waits == 0 {
			*waits = max(*waits-1, 0)
			return cause, nil
		}
		if err := back.pause(ctx); err != nil {
			return nil, err
		}
	}
}

func (f *flow) once(ctx context.Context, tx pgx.Tx, st *state, it *item) error {
	st.w.reset()
	if err := st.queue(st.w, []*item{it}); err != nil {
		st.w.reset()
		var failed *transactionError
		if errors.As(err, &failed) {
			return failed.err
		}
		return err
	}
	if _, err := tx.Exec(ctx, "SAVEPOINT event"); err != nil {
		return err
	}
	// One by one: a statement of a batch that the client can't send costs the
	// connection, and with it the transaction that parks the stream.
	err := st.w.each(func(sql string, args []any) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
	st.w.reset()
	if err == nil {
		_, err = tx.Exec(ctx, "RELEASE SAVEPOINT event")
	}
	if err == nil || tx.Conn().IsClosed() {
		return err
	}
	if _, back := tx.Exec(ctx, "ROLLBACK TO SAVEPOINT event; RELEASE SAVEPOINT event"); back != nil {
		return back
	}
	return err
}

// park leaves a stream out of a projection until it is replayed.
func (f *flow) park(ctx context.Context, tx pgx.Tx, st *state, it *item, cause error) error {
	f.logger.ErrorContext(ctx, "stream parked", "generation", f.gen.id, "projection", st.p.Name,
		"stream", it.rec.Stream, "revision", it.rec.Revision, "event", it.rec.ID, "type", it.rec.Type, "error", cause)
	_, err := tx.Exec(ctx, `INSERT INTO tallyard.parked_streams AS p
		(generation, projection, stream, revision, position, event_id, event_type, error, attempts, parked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now())
		ON CONFLICT (generation, projection, stream) DO UPDATE SET
			revision = excluded.revision, position = excluded.position, event_id = excluded.event_id,
			event_type = excluded.event_type, error = excluded.error, attempts = p.attempts + excluded.attempts`,
		f.gen.id, st.p.Name, it.rec.Stream, int64(it.rec.Revision), dbPosition(it.rec.Position), it.rec.ID,
		it.rec.Type, cause.Error(), attempts)
	return err
}

// Parked is a stream that a projection leaves out.
type Parked struct {
	Projection string      `json:"projection"`
	Stream     string      `json:"stream"`
	Revision   es.Revision `json:"revision"`
	EventID    string      `json:"eventId"`
	EventType  string      `json:"eventType"`
	Error      string      `json:"error"`
	Attempts   int         `json:"attempts"`
	ParkedAt   time.Time   `json:"parkedAt"`
}

// parkedStreams lists a generation's parked streams, the oldest first.
func (c *core) parkedStreams(ctx context.Context, gen int32) ([]Parked, error) {
	rows, err := c.db.Query(ctx, `SELECT projection, stream, revision, event_id::text, event_type, error, attempts, parked_at
		FROM tallyard.parked_streams WHERE generation = $1 ORDER BY parked_at, projection, stream LIMIT 1000`, gen)
	if err != nil {
		return nil, fmt.Errorf("list parked streams: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Parked])
}
