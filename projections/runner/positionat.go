package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
)

// PositionAt finds the last position whose running maximum of recorded time is
// not after t; StartPosition when the log begins later. It reads one row and
// then, on average, a few hundred events of the log.
func (r *Reader) PositionAt(ctx context.Context, t time.Time) (es.Position, error) {
	t = t.UTC().Truncate(time.Microsecond)
	var start int64
	err := r.QueryRow(ctx, `SELECT position FROM {g}.timeline WHERE latest <= $1
		ORDER BY latest DESC, position DESC LIMIT 1`, t).Scan(&start)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return es.StartPosition, fmt.Errorf("find a position by time: %w", err)
	}
	found := position(start)
	for rec, err := range r.log.ReadAll(ctx, found, es.Forward, es.Everything) {
		if err != nil {
			return es.StartPosition, fmt.Errorf("find a position by time: %w", err)
		}
		at, ok := recordedTime(&rec)
		switch {
		case !ok || !at.After(t):
			found = rec.Position
		case !volatile(rec.Stream):
			return found, nil
		}
	}
	return found, nil
}
