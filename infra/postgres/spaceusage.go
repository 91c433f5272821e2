package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// SpaceUsage keeps how many bytes spaces hold.
type SpaceUsage struct{ pool *pgxpool.Pool }

// NewSpaceUsage returns the store of usage.
func NewSpaceUsage(pool *pgxpool.Pool) *SpaceUsage { return &SpaceUsage{pool} }

// Usage is what a space holds.
type Usage struct {
	Space     uuid.UUID
	Bytes     int64
	Changes   int64
	CountedAt time.Time
}

// NoLimit lets any number of bytes in.
const NoLimit = -1

// Add changes what a space holds, unless that would grow beyond the limit:
// then nothing changes and fits is false. It gives what the space holds
// afterwards; counted is false for a space that was never counted.
func (s *SpaceUsage) Add(ctx context.Context, space uuid.UUID, bytes, limit int64) (holds int64, counted, fits bool, err error) {
	err = s.pool.QueryRow(ctx, `UPDATE tallyard.space_usage SET bytes = greatest(bytes + $2, 0), changes = changes + 1
		WHERE space = $1 AND ($2 <= 0 OR $3 < 0 OR bytes + $2 <= $3) RETURNING bytes`, space, bytes, limit).Scan(&holds)
	if err == nil {
		return holds, true, true, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return 0, false, false, fmt.Errorf("change usage: %w", err)
	}
	u, found, err := s.Get(ctx, space)
	return u.Bytes, found, false, err
}

// Get gives the usage of a space; false when it was never counted.
func (s *SpaceUsage) Get(ctx context.Context, space uuid.UUID) (Usage, bool, error) {
	found, err := s.Find(ctx, uuid.Nil, []uuid.UUID{space})
	u, ok := found[space]
	return u, ok, err
}

// Find gives the usage of spaces of a tenant (of any, for the nil one); those
// that were never counted are missing.
func (s *SpaceUsage) Find(ctx context.Context, tenant uuid.UUID, spaces []uuid.UUID) (map[uuid.UUID]Usage, error) {
	rows, err := s.pool.Query(ctx, `SELECT space, bytes, changes, counted_at FROM tallyard.space_usage
		WHERE space = ANY($1) AND ($2 = '00000000-0000-0000-0000-000000000000'::uuid OR tenant = $2)`, spaces, tenant)
	if err != nil {
		return nil, fmt.Errorf("find usage: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Usage])
	if err != nil {
		return nil, fmt.Errorf("find usage: %w", err)
	}
	found := make(map[uuid.UUID]Usage, len(list))
	for _, u := range list {
		u.CountedAt = u.CountedAt.UTC()
		found[u.Space] = u
	}
	return found, nil
}

// Counted keeps what a count of everything in a space came to, unless the space
// changed since the count began, when it had seen as many changes (-1: it was
// not known yet). It tells whether it did.
func (s *SpaceUsage) Counted(ctx context.Context, tenant, space uuid.UUID, bytes, changes int64, at time.Time) (bool, error) {
	sql := `UPDATE tallyard.space_usage SET bytes = $3, counted_at = $5 WHERE space = $1 AND tenant = $2 AND changes = $4`
	if changes < 0 {
		sql = `INSERT INTO tallyard.space_usage (space, tenant, bytes, changes, counted_at) VALUES ($1, $2, $3, $4 + 1, $5) ON CONFLICT DO NOTHING`
	}
	tag, err := s.pool.Exec(ctx, sql, space, tenant, bytes, changes, at)
	if err != nil {
		return false, fmt.Errorf("keep a count: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// FileDigests keeps the SHA-256 of files.
type FileDigests struct{ pool *pgxpool.Pool }

// NewFileDigests returns the store of digests.
func NewFileDigests(pool *pgxpool.Pool) *FileDigests { return &FileDigests{pool} }

// Find gives the digest of a file at a version of it; nil when it is not known.
func (s *FileDigests) Find(ctx context.Context, space uuid.UUID, path, version string) (sum []byte, err error) {
	err = s.pool.QueryRow(ctx, `SELECT sha256 FROM tallyard.file_digests WHERE space = $1 AND path = $2 AND version = $3`,
		space, path, version).Scan(&sum)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find digest: %w", err)
	}
	return sum, nil
}

// Keep keeps the digest of a file at a version of it.
func (s *FileDigests) Keep(ctx context.Context, space uuid.UUID, path, version string, sum []byte, at time.Time) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO tallyard.file_digests (space, path, version, sha256, at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (space, path) DO UPDATE SET version = EXCLUDED.version, sha256 = EXCLUDED.sha256, at = EXCLUDED.at`,
		space, path, version, sum, at)
	if err != nil {
		return fmt.Errorf("keep digest: %w", err)
	}
	return nil
}

// DeleteBefore forgets digests from before a moment and tells how many.
func (s *FileDigests) DeleteBefore(ctx context.Context, before time.Time) (int64, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM tallyard.file_digests WHERE at < $1`, before)
	if err != nil {
		return 0, fmt.Errorf("delete digests: %w", err)
	}
	return tag.RowsAffected(), nil
}
