package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Origin is where a request came from. It is personal and expires; events know
// only the request's id.
type Origin struct {
	Request   uuid.UUID
	Tenant    uuid.UUID // of who asked
	Address   string
	UserAgent string
	At        time.Time
}

// Origins keeps where requests came from.
type Origins struct{ pool *pgxpool.Pool }

// NewOrigins returns the store of origins.
func NewOrigins(pool *pgxpool.Pool) *Origins { return &Origins{pool} }

// maxUserAgent bounds what a client can make us keep.
const maxUserAgent = 512

// Record keeps an origin; the first word on a request counts.
func (o *Origins) Record(ctx context.Context, origin Origin) error {
	_, err := o.pool.Exec(ctx, `INSERT INTO tallyard.request_origins (request_id, tenant, address, user_agent, at)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		origin.Request, origin.Tenant, storable(origin.Address, maxUserAgent), storable(origin.UserAgent, maxUserAgent), origin.At)
	if err != nil {
		return fmt.Errorf("record origin: %w", err)
	}
	return nil
}

// Find returns the origins of requests; those that expired are missing.
func (o *Origins) Find(ctx context.Context, requests []uuid.UUID) (map[uuid.UUID]Origin, error) {
	rows, err := o.pool.Query(ctx, `SELECT request_id, coalesce(tenant, $2), address, user_agent, at
		FROM tallyard.request_origins WHERE request_id = ANY($1)`, requests, uuid.Nil)
	if err != nil {
		return nil, fmt.Errorf("find origins: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Origin])
	if err != nil {
		return nil, fmt.Errorf("find origins: %w", err)
	}
	found := make(map[uuid.UUID]Origin, len(list))
	for _, origin := range list {
		origin.At = origin.At.UTC()
		found[origin.Request] = origin
	}
	return found, nil
}

// DeleteOf forgets a tenant's origins from before a moment and tells how many.
func (o *Origins) DeleteOf(ctx context.Context, tenant uuid.UUID, before time.Time) (int64, error) {
	return o.delete(ctx, `DELETE FROM tallyard.request_origins WHERE tenant = $1 AND at < $2`, tenant, before)
}

// DeleteOthers forgets origins from before a moment that are of none of these
// tenants, and tells how many.
func (o *Origins) DeleteOthers(ctx context.Context, tenants []uuid.UUID, before time.Time) (int64, error) {
	return o.delete(ctx, `DELETE FROM tallyard.request_origins WHERE (tenant IS NULL OR tenant <> ALL($1)) AND at < $2`, tenants, before)
}

func (o *Origins) delete(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := o.pool.Exec(ctx, sql, args...)
	if err != nil {
		return 0, fmt.Errorf("delete origins: %w", err)
	}
	return tag.RowsAffected(), nil
}

// storable makes a client's text one that Postgres takes: valid UTF-8, no NUL,
// at most limit bytes.
func storable(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
