package runner

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/domain/es"
)

// core is what the parts of the runner share.
type core struct {
	db       *pgxpool.Pool
	log      es.Log
	registry *es.Registry
	set      *Set
	store    uuid.UUID
	logger   *slog.Logger
	metrics  Metrics
	times    Times
}

// head is the position of the last event of the log.
func (c *core) head(ctx context.Context) (es.Position, error) { return headOf(ctx, c.log) }

func headOf(ctx context.Context, log es.Log) (es.Position, error) {
	for rec, err := range log.ReadAll(ctx, es.StartPosition, es.Backward, 1) {
		if err != nil {
			return es.StartPosition, err
		}
		return rec.Position, nil
	}
	return es.StartPosition, nil
}
