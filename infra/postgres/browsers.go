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

// BrowserSession is a browser that somebody signed in with.
type BrowserSession struct {
	Tenant, User         uuid.UUID
	CreatedAt, ExpiresAt time.Time
}

// BrowserSessions keeps the sessions of browsers by a digest of their secrets.
type BrowserSessions struct{ pool *pgxpool.Pool }

// NewBrowserSessions returns the store of browsers' sessions.
func NewBrowserSessions(pool *pgxpool.Pool) *BrowserSessions { return &BrowserSessions{pool} }

// Keep adds a session, and forgets those that have ended.
func (b *BrowserSessions) Keep(ctx context.Context, digest []byte, s BrowserSession) error {
	_, err := b.pool.Exec(ctx, `WITH over AS (DELETE FROM tallyard.browser_sessions WHERE expires_at <= $4)
		INSERT INTO tallyard.browser_sessions (digest, tenant, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)`,
		digest, s.Tenant, s.User, s.CreatedAt, s.ExpiresAt)
	if err != nil {
		return fmt.Errorf("keep a browser's session: %w", err)
	}
	return nil
}

// Find gives the session of a digest; false when there is none that holds at a time.
func (b *BrowserSessions) Find(ctx context.Context, digest []byte, at time.Time) (s BrowserSession, found bool, err error) {
	err = b.pool.QueryRow(ctx, `SELECT tenant, user_id, created_at, expires_at FROM tallyard.browser_sessions WHERE digest = $1 AND expires_at > $2`,
		digest, at).Scan(&s.Tenant, &s.User, &s.CreatedAt, &s.ExpiresAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return BrowserSession{}, false, nil
	}
	if err != nil {
		return BrowserSession{}, false, fmt.Errorf("find a browser's session: %w", err)
	}
	s.CreatedAt, s.ExpiresAt = s.CreatedAt.UTC(), s.ExpiresAt.UTC()
	return s, true, nil
}

// Drop ends a session; doing it twice is no error.
func (b *BrowserSessions) Drop(ctx context.Context, digest []byte) error {
	if _, err := b.pool.Exec(ctx, `DELETE FROM tallyard.browser_sessions WHERE digest = $1`, digest); err != nil {
		return fmt.Errorf("end a browser's session: %w", err)
	}
	return nil
}
