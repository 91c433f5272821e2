package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// indexing bounds the making of a generation's indexes.
const indexing = 30 * time.Minute

// index makes the indexes that only readers need, once the flow has caught up
// without them: built from all rows at once they cost a fraction of what each
// event would pay row by row. The flow stands still meanwhile and catches up
// afterwards, before anybody reads. All of them are made or none.
func (t *term) index(ctx context.Context, f *flow) error {
	ctx, cancel := context.WithTimeout(ctx, indexing)
	defer cancel()
	var err error
	if doErr := f.do(ctx, func() { err = t.makeIndexes(ctx, f.gen) }); doErr != nil {
		return doErr
	}
	return err
}

func (c *core) makeIndexes(ctx context.Context, g generation) error {
	start := time.Now()
	done := false
	err := pgx.BeginFunc(ctx, c.db, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT indexed_at IS NOT NULL FROM tallyard.generations WHERE id = $1 FOR UPDATE`, g.id).Scan(&done)
		if errors.Is(err, pgx.ErrNoRows) {
			return errors.New("the generation is gone")
		}
		if err != nil || done {
			return err
		}
		_, err = tx.Exec(ctx, "SET LOCAL statement_timeout = 0; SET LOCAL maintenance_work_mem = '128MB'; SET LOCAL search_path TO "+g.schema()+", public")
		if err != nil {
			return err
		}
		for _, p := range c.set.list {
			if _, err := tx.Exec(ctx, p.Indexes); err != nil {
				err = fmt.Errorf("indexes of %s: %w", p.Name, err)
				if classify(err, tx.Conn()) == failureEvent {
					err = final{err}
				}
				return err
			}
		}
		_, err = tx.Exec(ctx, `UPDATE tallyard.generations SET indexed_at = now() WHERE id = $1`, g.id)
		return err
	})
	if err != nil {
		return fmt.Errorf("index generation %d: %w", g.id, err)
	}
	if !done {
		c.logger.InfoContext(ctx, "generation indexed", "generation", g.id, "took", time.Since(start).Round(time.Millisecond))
	}
	return nil
}
