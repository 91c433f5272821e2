package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Progress is how far a running operation is.
type Progress struct {
	Operation  uuid.UUID
	Tenant     uuid.UUID
	DoneBytes  int64
	TotalBytes int64
	DoneFiles  int64
	TotalFiles int64
	At         time.Time
}

// OperationProgress keeps how far operations are. Samples are no events: they
// are written over and go with the operation's end.
type OperationProgress struct{ pool *pgxpool.Pool }

// NewOperationProgress returns the store of progress.
func NewOperationProgress(pool *pgxpool.Pool) *OperationProgress { return &OperationProgress{pool} }

// Save keeps the newest sample of an operation; a late older one is dropped.
func (s *OperationProgress) Save(ctx context.Context, p Progress) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO tallyard.operation_progress AS old
		(operation, tenant, done_bytes, total_bytes, done_files, total_files, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (operation) DO UPDATE SET
			done_bytes = EXCLUDED.done_bytes, total_bytes = EXCLUDED.total_bytes,
			done_files = EXCLUDED.done_files, total_files = EXCLUDED.total_files, at = EXCLUDED.at
		WHERE old.at <= EXCLUDED.at`,
		p.Operation, p.Tenant, p.DoneBytes, p.TotalBytes, p.DoneFiles, p.TotalFiles, p.At)
	if err != nil {
		return fmt.Errorf("save progress: %w", err)
	}
	return nil
}

// Find returns the progress of operations of a tenant; those without a sample
// are missing.
func (s *OperationProgress) Find(ctx context.Context, tenant uuid.UUID, operations []uuid.UUID) (map[uuid.UUID]Progress, error) {
	rows, err := s.pool.Query(ctx, `SELECT operation, tenant, done_bytes, total_bytes, done_files, total_files, at
		FROM tallyard.operation_progress WHERE tenant = $1 AND operation = ANY($2)`, tenant, operations)
	if err != nil {
		return nil, fmt.Errorf("find progress: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Progress])
	if err != nil {
		return nil, fmt.Errorf("find progress: %w", err)
	}
	found := make(map[uuid.UUID]Progress, len(list))
	for _, p := range list {
		p.At = p.At.UTC()
		found[p.Operation] = p
	}
	return found, nil
}

// Delete forgets the progress of an operation.
func (s *OperationProgress) Delete(ctx context.Context, operation uuid.UUID) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM tallyard.operation_progress WHERE operation = $1`, operation); err != nil {
		return fmt.Errorf("delete progress: %w", err)
	}
	return nil
}
