package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Leader runs one function in one process of an installation at a time, by a
// session advisory lock on a connection of its own. The lock is the database's,
// so two installations in two databases don't disturb each other. A pooler
// that shares sessions (transaction mode) must not stand in between.
//
// A leader can lose its lock and not know it for Check + Deadline: what it
// writes needs a fence of its own, as the projections' checkpoints are.
type Leader struct {
	Pool   *pgxpool.Pool // gives the address; its connections are not used
	Logger *slog.Logger  // nil: slog.Default

	Retry    time.Duration // between tries to become leader; zero: 1 s
	Check    time.Duration // between looks whether the lock is still held; zero: 2 s
	Deadline time.Duration // for one look; zero: 5 s
}

// Lead is Leader.Lead with the usual times.
func Lead(ctx context.Context, pool *pgxpool.Pool, name string, f func(context.Context) error) error {
	return (&Leader{Pool: pool}).Lead(ctx, name, f)
}

// Lead waits until this process is the leader called name and runs f. The
// context of f ends, with cause ErrLeadershipLost, when the lock is lost; after
// that, and after an error of f, it gives the lock up, waits, and tries again.
// It returns nil when f did, and the cause of ctx when that ends; f has
// returned by then.
func (l *Leader) Lead(ctx context.Context, name string, f func(context.Context) error) error {
	logger := l.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger = logger.With("leader", name)
	retry := orDefault(l.Retry, time.Second)
	backoff := retry
	for {
		started := time.Now()
		led, err := l.term(ctx, name, f, logger)
		if led && err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err == nil: // somebody else leads
			backoff = retry
		case led && time.Since(started) > time.Minute:
			backoff = retry
			fallthrough
		default:
			logger.Warn("leading ended; trying again", "error", err, "after", backoff)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(backoff/2 + rand.N(backoff)): //nolint:gosec // G404: jitter needs no secrecy
		}
		if err != nil {
			backoff = min(2*backoff, 10*retry)
		}
	}
}

// term is one time as the leader, if the lock is free.
func (l *Leader) term(ctx context.Context, name string, f func(context.Context) error, logger *slog.Logger) (led bool, err error) {
	conn, err := l.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		// Not ctx: the lock must go although the program is stopping.
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), orDefault(l.Deadline, 5*time.Second))
		defer cancel()
		_ = conn.Close(closeCtx) // a broken connection has lost its lock anyway
	}()
	if err := l.look(ctx, conn, `SELECT pg_try_advisory_lock($1)`, lockKey(name), &led); err != nil || !led {
		return false, err
	}
	logger.Info("leading")
	term, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- f(term) }()
	ticker := time.NewTicker(orDefault(l.Check, 2*time.Second))
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return true, err
		case <-ctx.Done():
			return true, errors.Join(<-done, context.Cause(ctx))
		case <-ticker.C:
			// Its own session still there means its lock still held.
			var one int
			if err := l.look(ctx, conn, `SELECT 1 WHERE $1::bigint IS NOT NULL`, lockKey(name), &one); err != nil {
				if ctx.Err() != nil {
					continue
				}
				cancel(fmt.Errorf("%w: %w", ErrLeadershipLost, err))
				return true, errors.Join(context.Cause(term), <-done)
			}
		}
	}
}

func (l *Leader) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, orDefault(l.Deadline, 5*time.Second))
	defer cancel()
	cfg := l.Pool.Config().ConnConfig.Copy()
	cfg.Tracer = nil // looks are not what a count of statements is about
	// The session idles between looks, for ever.
	cfg.RuntimeParams["idle_session_timeout"] = "0"
	return pgx.ConnectConfig(ctx, cfg)
}

func (l *Leader) look(ctx context.Context, conn *pgx.Conn, sql string, key int64, into any) error {
	ctx, cancel := context.WithTimeout(ctx, orDefault(l.Deadline, 5*time.Second))
	defer cancel()
	return conn.QueryRow(ctx, sql, key).Scan(into)
}

// lockKey is the number of an advisory lock by name.
func lockKey(name string) int64 {
	sum := sha256.Sum256([]byte("tallyard/" + name))
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // G115: any 64 bits will do
}

func orDefault(d, standard time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return standard
}
