package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options of a connection pool; the zero value suits most uses.
type Options struct {
	// Name is the application name that the server shows. Empty: "tallyard".
	Name string
	// MaxConns bounds the pool. Zero: 16, or pool_max_conns of the address.
	MaxConns int32
	// StatementTimeout ends statements that run longer. Zero: 30 seconds;
	// negative: no limit.
	StatementTimeout time.Duration
	// Tracer sees every statement; the counts of statements in tests need it.
	Tracer pgx.QueryTracer
}

const (
	defaultMaxConns         = 16
	defaultStatementTimeout = 30 * time.Second
)

// Open connects a pool to the database at address (postgres://…, or a
// connection string with keywords) and makes sure that the server is one that
// the program works with. The pool mends itself when the server comes back.
func Open(ctx context.Context, address string, o Options) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("the Postgres address is not valid: %w", err) // pgx leaves passwords out
	}
	applyOptions(cfg, o)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := checkServer(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return pool, nil
}

func applyOptions(cfg *pgxpool.Config, o Options) {
	if o.Name == "" {
		o.Name = "tallyard"
	}
	switch {
	case o.MaxConns > 0:
		cfg.MaxConns = o.MaxConns
	case cfg.MaxConns < defaultMaxConns:
		// pgx's own default is the number of cores, at least 4.
		cfg.MaxConns = defaultMaxConns
	}
	if o.StatementTimeout == 0 {
		o.StatementTimeout = defaultStatementTimeout
	}
	// Connections age out so that a moved or restarted server, and what a
	// session cached, does not stay for ever.
	cfg.MaxConnLifetime = time.Hour
	cfg.MaxConnLifetimeJitter = 10 * time.Minute
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.HealthCheckPeriod = 30 * time.Second
	conn := cfg.ConnConfig
	conn.ConnectTimeout = 5 * time.Second
	conn.Tracer = o.Tracer
	conn.RuntimeParams["application_name"] = o.Name
	conn.RuntimeParams["timezone"] = "UTC"
	conn.RuntimeParams["idle_in_transaction_session_timeout"] = "60000"
	if o.StatementTimeout > 0 {
		conn.RuntimeParams["statement_timeout"] = strconv.FormatInt(o.StatementTimeout.Milliseconds(), 10)
	}
}

// checkServer refuses servers that would fail later in less clear ways.
func checkServer(ctx context.Context, pool *pgxpool.Pool) error {
	var version int
	var encoding, text string
	err := pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int,
		current_setting('server_version'), current_setting('server_encoding')`).Scan(&version, &text, &encoding)
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	return checkFacts(version, text, encoding)
}

func checkFacts(version int, text, encoding string) error {
	if version < MinVersion*10000 {
		return fmt.Errorf("%w: it is %s, needed is %d or newer", ErrOldServer, text, MinVersion)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s: make it anew with ENCODING 'UTF8'", encoding)
	}
	return nil
}

// none tells whether a query found nothing.
func none(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
