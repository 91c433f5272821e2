package runner

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/domain/es"
)

// Reader reads the live generation. It is what queries and the waiting for
// one's own writes go through, in every process.
type Reader struct {
	db       *pgxpool.Pool
	log      es.Log
	set      *Set
	gen      atomic.Int32 // the live generation as it was last seen; 0: unknown
	progress *progress
}

// NewReader makes the reader of a set's live tables.
func NewReader(db *pgxpool.Pool, log es.Log, set *Set) *Reader {
	return &Reader{db: db, log: log, set: set, progress: newProgress()}
}

// ProjectionsFor lists the projections that do something with one of the events.
func (r *Reader) ProjectionsFor(eventNames ...string) []string {
	return r.set.ProjectionsFor(eventNames...)
}

// pointerSQL finds the generation to read. One that was replaced serves a
// program whose own tables are not the live ones, as long as it is there.
const pointerSQL = `SELECT id FROM tallyard.generations
	WHERE digest = $1 AND state IN ('live', 'retired') ORDER BY state = 'live' DESC, id DESC LIMIT 1`

// pointer reads which generation is live.
func (r *Reader) pointer(ctx context.Context) (int32, error) {
	var id int32
	err := r.db.QueryRow(ctx, pointerSQL, r.set.digest).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNotReady
	}
	if err != nil {
		return 0, fmt.Errorf("find the live generation: %w", err)
	}
	r.gen.Store(id)
	return id, nil
}

// Schema is the live generation's schema. It is meant for one statement at
// once: what is kept longer than a minute may be gone.
func (r *Reader) Schema(ctx context.Context) (string, error) {
	id, err := r.pointer(ctx)
	return schemaOf(id), err
}

// Query runs a query with "{g}" replaced by the live generation's schema. The
// pointer is read in the same round trip; when it has moved, the query is run
// again on the new generation. It never stops because of a rebuild.
func (r *Reader) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	id := r.gen.Load()
	if id == 0 {
		var err error
		if id, err = r.pointer(ctx); err != nil {
			return nil, err
		}
	}
	for {
		rows, now, err := r.try(ctx, id, sql, args)
		if err == nil && now == id {
			return rows, nil
		}
		if rows != nil {
			rows.Close()
		}
		if err != nil {
			// A table that is gone can mean that its generation is: ask again.
			if !missing(err) {
				return nil, err
			}
			again, pointerErr := r.pointer(ctx)
			if pointerErr != nil {
				return nil, pointerErr
			}
			if again == id {
				return nil, err
			}
			now = again
		}
		id = now
	}
}

// try sends pointer and query together and says which generation is live.
func (r *Reader) try(ctx context.Context, id int32, sql string, args []any) (pgx.Rows, int32, error) {
	b := &pgx.Batch{}
	b.Queue(pointerSQL, r.set.digest)
	b.Queue(inSchema(sql, schemaOf(id)), args...)
	results := r.db.SendBatch(ctx, b)
	var now int32
	if err := results.QueryRow().Scan(&now); err != nil {
		_ = results.Close() // err says what happened
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, 0, ErrNotReady
		}
		return nil, 0, err
	}
	r.gen.Store(now)
	rows, err := results.Query()
	if err != nil {
		_ = results.Close() // err says what happened
		return nil, now, err
	}
	return &batchRows{Rows: rows, results: results}, now, nil
}

// missing tells whether an error says that a schema or table does not exist.
func missing(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000")
}

// batchRows are rows whose Close also gives the connection back.
type batchRows struct {
	pgx.Rows
	results pgx.BatchResults
	err     error
}

// Close implements pgx.Rows.
func (r *batchRows) Close() {
	r.Rows.Close()
	if err := r.results.Close(); err != nil && r.err == nil {
		r.err = err
	}
}

// Next implements pgx.Rows.
func (r *batchRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Err implements pgx.Rows.
func (r *batchRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

// QueryRow is Query for one row; without one, Scan gives pgx.ErrNoRows.
func (r *Reader) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := r.Query(ctx, sql, args...)
	return &oneRow{rows, err}
}

type oneRow struct {
	rows pgx.Rows
	err  error
}

// Scan implements pgx.Row.
func (o *oneRow) Scan(dest ...any) error {
	if o.err != nil {
		return o.err
	}
	defer o.rows.Close()
	if !o.rows.Next() {
		if err := o.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := o.rows.Scan(dest...); err != nil {
		return err
	}
	o.rows.Close()
	return o.rows.Err()
}
