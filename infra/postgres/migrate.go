package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the operational tables.
type migration struct {
	version  int
	name     string // file name without ".sql"
	sql      string
	checksum string
}

// Migrate brings the operational tables (schema tallyard) to the program's
// version. Programs that start together wait for each other. A database that
// a newer program migrated is refused (ErrNewerDatabase), as is one whose
// applied migrations differ from the program's (ErrMigrationChanged).
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	sub, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	steps, err := readMigrations(sub)
	if err != nil {
		return err
	}
	if err := migrate(ctx, pool, steps); err != nil {
		return fmt.Errorf("postgres migration: %w", err)
	}
	return nil
}

// readMigrations reads NNNN_name.sql files; their numbers run 1, 2, 3, ….
func readMigrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	steps := make([]migration, 0, len(names))
	for i, file := range names {
		name := strings.TrimSuffix(file, ".sql")
		number, _, ok := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if !ok || len(number) != 4 || err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: its number must be %04d", file, i+1)
		}
		sql, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(sql)
		steps = append(steps, migration{version, name, string(sql), hex.EncodeToString(sum[:])})
	}
	return steps, nil
}

func migrate(ctx context.Context, pool *pgxpool.Pool, steps []migration) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	// A connection of its own: the lock is the session's, and a migration may
	// take longer than the pool lets a statement run.
	cfg := pool.Config().ConnConfig.Copy()
	delete(cfg.RuntimeParams, "statement_timeout")
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // ends the session and frees the lock
	if err := lockMigrations(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS tallyard;
		CREATE TABLE IF NOT EXISTS tallyard.schema_migrations (
			version    int         PRIMARY KEY,
			name       text        NOT NULL,
			checksum   text        NOT NULL,
			applied_at timestamptz NOT NULL DEFAULT now()
		)`); err != nil {
		return err
	}
	applied, err := checkApplied(ctx, conn, steps)
	if err != nil {
		return err
	}
	for _, m := range steps[applied:] {
		if err := apply(ctx, conn, m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// lockMigrations polls: a statement that waits for a lock would hold back
// vacuum, and CREATE INDEX CONCURRENTLY would wait for it for ever.
func lockMigrations(ctx context.Context, conn *pgx.Conn) error {
	for {
		var got bool
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, lockKey("migrations")).Scan(&got); err != nil {
			return err
		}
		if got {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another program holds the migration lock: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// checkApplied counts the migrations that are applied and compares them.
func checkApplied(ctx context.Context, conn *pgx.Conn, steps []migration) (int, error) {
	rows, err := conn.Query(ctx, `SELECT version, name, checksum FROM tallyard.schema_migrations ORDER BY version`)
	if err != nil {
		return 0, err
	}
	applied, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m migration, err error) {
		err = row.Scan(&m.version, &m.name, &m.checksum)
		return m, err
	})
	if err != nil {
		return 0, err
	}
	if n := len(applied); n > 0 && applied[n-1].version > len(steps) {
		return 0, fmt.Errorf("%w: it is at migration %d (%s), this program knows %d; run the newer program",
			ErrNewerDatabase, applied[n-1].version, applied[n-1].name, len(steps))
	}
	for i, a := range applied {
		if a.version != i+1 || a.checksum != steps[i].checksum {
			return 0, fmt.Errorf("%w: migration %d is %q with checksum %.12s in the database and %q with %.12s in the program",
				ErrMigrationChanged, a.version, a.name, a.checksum, steps[i].name, steps[i].checksum)
		}
	}
	return len(applied), nil
}

func apply(ctx context.Context, conn *pgx.Conn, m migration) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, m.sql); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO tallyard.schema_migrations (version, name, checksum) VALUES ($1, $2, $3)`,
			m.version, m.name, m.checksum)
		return err
	})
}
