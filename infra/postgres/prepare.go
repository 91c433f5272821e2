package postgres

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// prepare gives a running server the program's role, database and extension.
// It is repeated at every start, so that a kill in between does no harm.
func (c *Cluster) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var role, database bool
	err := c.asAdmin(ctx, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT
			EXISTS (SELECT FROM pg_roles WHERE rolname = $1),
			EXISTS (SELECT FROM pg_database WHERE datname = $2)`, programRole, databaseName).Scan(&role, &database)
	})
	if err != nil || role && database {
		return err
	}
	if !role {
		// template1 first: databases made later, tests' too, come with the extension.
		if err := c.asAdmin(ctx, "template1", c.createRole(ctx)); err != nil {
			return err
		}
	}
	return c.asAdmin(ctx, "postgres", func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `CREATE DATABASE `+databaseName+` OWNER `+programRole)
		return err
	})
}

// createRole makes the program's role in one transaction: it is no superuser,
// so that a hole in a statement cannot become one in the machine.
func (c *Cluster) createRole(ctx context.Context) func(*pgx.Conn) error {
	return func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			statements := []string{
				`CREATE ROLE ` + programRole + ` LOGIN CREATEDB`,
				`GRANT pg_monitor TO ` + programRole,
			}
			if c.statStatements {
				statements = append(statements,
					`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`,
					`GRANT EXECUTE ON FUNCTION pg_stat_statements_reset TO `+programRole)
			}
			for _, s := range statements {
				if _, err := tx.Exec(ctx, s); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (c *Cluster) asAdmin(ctx context.Context, database string, f func(*pgx.Conn) error) error {
	cfg, err := pgx.ParseConfig(c.DatabaseURL(database))
	if err != nil {
		return err
	}
	cfg.User = adminRole
	cfg.ConnectTimeout = 5 * time.Second
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	return errors.Join(f(conn), conn.Close(ctx))
}

// isStarting tells whether an error only says that the server is not up yet.
func isStarting(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "57P03" // cannot_connect_now
	}
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
}
