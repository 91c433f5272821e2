package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/domain/es"
)

// Snapshots keeps folded states of long streams (es.Snapshots). They only save
// reading: any of them may be lost.
type Snapshots struct{ pool *pgxpool.Pool }

var _ es.Snapshots = (*Snapshots)(nil)

// NewSnapshots returns the store of snapshots.
func NewSnapshots(pool *pgxpool.Pool) *Snapshots { return &Snapshots{pool} }

// Load gives the newest snapshot of a stream made by the same fold.
func (s *Snapshots) Load(ctx context.Context, stream string, fold int) (es.Revision, []byte, bool, error) {
	var revision es.Revision
	var data []byte
	err := s.pool.QueryRow(ctx, `SELECT revision, data FROM tallyard.snapshots
		WHERE stream = $1 AND fold_version = $2`, stream, fold).Scan(&revision, &data)
	if none(err) {
		return es.NoRevision, nil, false, nil
	}
	if err != nil {
		return es.NoRevision, nil, false, fmt.Errorf("load snapshot: %w", err)
	}
	return revision, data, true, nil
}

// Save keeps a snapshot, unless a newer one of the same fold is there.
func (s *Snapshots) Save(ctx context.Context, stream string, revision es.Revision, fold int, state []byte) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO tallyard.snapshots AS old (stream, fold_version, revision, data)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (stream, fold_version) DO UPDATE SET revision = EXCLUDED.revision, data = EXCLUDED.data
		WHERE old.revision < EXCLUDED.revision`, stream, fold, int64(revision), state)
	if err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

// Delete forgets every snapshot of a stream, as erasing a person needs.
func (s *Snapshots) Delete(ctx context.Context, stream string) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM tallyard.snapshots WHERE stream = $1`, stream); err != nil {
		return fmt.Errorf("delete snapshots: %w", err)
	}
	return nil
}

// DeleteOlder forgets the snapshots of a stream that folds before the given
// one made.
func (s *Snapshots) DeleteOlder(ctx context.Context, stream string, fold int) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM tallyard.snapshots WHERE stream = $1 AND fold_version < $2`, stream, fold)
	if err != nil {
		return fmt.Errorf("delete old snapshots: %w", err)
	}
	return nil
}
