package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
)

// States of a generation.
const (
	building = "building" // catches up beside the live one
	live     = "live"     // the one that is read
	retired  = "retired"  // was live; dropped when the last reader has moved on
	verify   = "verify"   // built to be compared, then dropped
)

// generation is one set of all projections' tables.
type generation struct {
	id        int32
	digest    string
	state     string
	store     uuid.UUID
	createdAt time.Time
	// retiredFor is how long ago it was replaced, by the clock of Postgres.
	retiredFor time.Duration
}

func (g generation) schema() string { return schemaOf(g.id) }

func schemaOf(id int32) string { return "gen_" + strconv.Itoa(int(id)) }

// generations lists what there is, the oldest first.
func (c *core) generations(ctx context.Context) ([]generation, error) {
	rows, err := c.db.Query(ctx, `SELECT id, digest, state, store_identity, created_at,
			coalesce(extract(epoch FROM now() - retired_at), 0)::float8
		FROM tallyard.generations ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("list generations: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g generation, err error) {
		var seconds float64
		err = row.Scan(&g.id, &g.digest, &g.state, &g.store, &g.createdAt, &seconds)
		g.retiredFor = time.Duration(min(seconds, 1e9) * float64(time.Second))
		return g, err
	})
	if err != nil {
		return nil, fmt.Errorf("list generations: %w", err)
	}
	return list, nil
}

// checkStore refuses generations that were made from another event store.
func (c *core) checkStore(list []generation) error {
	for _, g := range list {
		if (g.state == live || g.state == building) && g.store != c.store {
			return fmt.Errorf("%w: generation %d was made from store %s, this one is %s. "+
				"If the store was exchanged on purpose, `tallyard projections rebuild --accept-new-store` "+
				"builds the read model from what it has", ErrOtherStore, g.id, g.store, c.store)
		}
	}
	return nil
}

// CheckStore refuses a store that the read model was not made from. Programs
// that only read call it at their start; a runner does so itself.
func CheckStore(ctx context.Context, cfg Config) error { return cfg.core().checkGenerations(ctx) }

func (c *core) checkGenerations(ctx context.Context) error {
	list, err := c.generations(ctx)
	if err != nil {
		return err
	}
	if err := c.checkStore(list); err != nil {
		return err
	}
	for _, g := range list {
		if g.state == live || g.state == building {
			if err := c.checkLogOf(ctx, g); err != nil {
				return fmt.Errorf("generation %d: %w", g.id, err)
			}
		}
	}
	return nil
}

// AcceptStore drops every generation that was made from another store than
// this one, or that saw more of this one than it holds now, so that the next
// start builds the read model anew. It tells how many it dropped.
func AcceptStore(ctx context.Context, cfg Config) (int, error) {
	c := cfg.core()
	list, err := c.generations(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, g := range list {
		if g.state != live && g.state != building {
			continue
		}
		if g.store == c.store {
			err := c.checkLogOf(ctx, g)
			if err == nil {
				continue
			}
			if !errors.Is(err, ErrOtherStore) {
				return n, err
			}
		}
		// At once: nobody may read it as if it were made from this store.
		if err := c.drop(ctx, g); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// checkLogOf is checkLog for a generation that no flow holds.
func (c *core) checkLogOf(ctx context.Context, g generation) error {
	var (
		at   int64
		last solid
	)
	err := c.db.QueryRow(ctx, `SELECT event_position, event_id FROM tallyard.checkpoints
		WHERE generation = $1 AND event_id IS NOT NULL ORDER BY event_position DESC LIMIT 1`, g.id).Scan(&at, &last.id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	last.position = position(at)
	return c.checkLog(ctx, last)
}

// create makes an empty generation: its schema, every projection's tables and
// a checkpoint for each, all or nothing.
func (c *core) create(ctx context.Context, kind string) (generation, error) {
	g := generation{digest: c.set.digest, state: kind, store: c.store}
	err := pgx.BeginFunc(ctx, c.db, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `INSERT INTO tallyard.generations (id, digest, state, store_identity, created_at)
			VALUES (nextval('tallyard.generation_ids'), $1, $2, $3, now()) RETURNING id, created_at`,
			g.digest, g.state, g.store).Scan(&g.id, &g.createdAt)
		if err != nil {
			return err
		}
		// Extensions lie in public; nothing else of ours does.
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+g.schema()+"; SET LOCAL search_path TO "+g.schema()+", public"); err != nil {
			return err
		}
		for _, p := range c.set.list {
			if _, err := tx.Exec(ctx, p.Schema); err != nil {
				err = fmt.Errorf("tables of %s: %w", p.Name, err)
				if classify(err, tx.Conn()) == failureEvent {
					err = final{err}
				}
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO tallyard.checkpoints (generation, projection, position, updated_at)
				VALUES ($1, $2, $3, now())`, g.id, p.Name, dbPosition(es.StartPosition))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return g, fmt.Errorf("create generation: %w", err)
	}
	c.logger.InfoContext(ctx, "generation created", "generation", g.id, "state", kind, "digest", g.digest[:12])
	return g, nil
}

// makeLive moves the pointer: readers use g from their next statement on.
func (c *core) makeLive(ctx context.Context, g generation) error {
	err := pgx.BeginFunc(ctx, c.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE tallyard.generations SET state = 'retired', retired_at = now() WHERE state = 'live'`)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE tallyard.generations SET state = 'live', live_at = now()
			WHERE id = $1 AND state = 'building'`, g.id)
		if err == nil && tag.RowsAffected() != 1 {
			err = errors.New("it is not being built any more")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("make generation %d live: %w", g.id, err)
	}
	c.logger.InfoContext(ctx, "generation is live", "generation", g.id)
	return nil
}

// drop removes a generation and all that is known of it.
func (c *core) drop(ctx context.Context, g generation) error {
	err := pgx.BeginFunc(ctx, c.db, func(tx pgx.Tx) error {
		// Somebody who reads it still is left alone; it is tried again.
		_, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '2s'; DROP SCHEMA IF EXISTS "+g.schema()+" CASCADE")
		if err != nil {
			return err
		}
		for _, sql := range []string{
			`DELETE FROM tallyard.parked_streams WHERE generation = $1`,
			`DELETE FROM tallyard.checkpoints WHERE generation = $1`,
			`DELETE FROM tallyard.generations WHERE id = $1`,
		} {
			if _, err := tx.Exec(ctx, sql, g.id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop generation %d: %w", g.id, err)
	}
	c.logger.InfoContext(ctx, "generation dropped", "generation", g.id, "state", g.state)
	return nil
}

// tidy drops generations that nobody needs: replaced long enough ago, or left
// by a leader that died.
func (c *core) tidy(ctx context.Context, list []generation, starting bool) {
	for _, g := range list {
		old := g.state == retired && g.retiredFor >= c.times.Keep
		left := starting && (g.state == verify || g.state == building && g.digest != c.set.digest)
		if !old && !left {
			continue
		}
		if err := c.drop(ctx, g); err != nil && ctx.Err() == nil {
			c.logger.WarnContext(ctx, "generation not dropped, trying again later", "error", err)
		}
	}
}
