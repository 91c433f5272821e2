package postgres

import (
	"context"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
)

// CheckFacts is what Open makes of a server's version and encoding.
var CheckFacts = checkFacts

// MigrateFrom is Migrate with other files.
func MigrateFrom(ctx context.Context, pool *pgxpool.Pool, files fs.FS) error {
	steps, err := readMigrations(files)
	if err != nil {
		return err
	}
	return migrate(ctx, pool, steps)
}
