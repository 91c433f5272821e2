package events

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/infra/postgres"
)

// messageTables is a store of messages in a table, as message-db does it: a
// function that checks the expected revision and inserts. It takes no lock for
// a category, which would make it slower: that a stream's revision is there
// once says the unique index. So its global order has gaps that fill up later,
// which a reader of it would have to mind.
const messageTables = `
CREATE TABLE messages (
  global_position bigserial PRIMARY KEY,
  id uuid NOT NULL,
  stream text NOT NULL,
  revision bigint NOT NULL,
  type text NOT NULL,
  data jsonb NOT NULL,
  metadata jsonb NOT NULL,
  created timestamptz NOT NULL DEFAULT now(),
  UNIQUE (stream, revision),
  UNIQUE (id)
);
CREATE FUNCTION write_message(_id uuid, _stream text, _expected bigint, _type text, _data jsonb, _metadata jsonb)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  _last bigint;
BEGIN
  SELECT COALESCE(max(revision), -1) INTO _last FROM messages WHERE stream = _stream;
  IF _last <> _expected THEN
    RAISE EXCEPTION 'wrong revision: % instead of %', _last, _expected USING ERRCODE = 'serialization_failure';
  END IF;
  INSERT INTO messages (id, stream, revision, type, data, metadata)
  VALUES (_id, _stream, _expected + 1, _type, _data, _metadata);
  RETURN _expected + 1;
END $$;`

// postgresAppend appends into a private Postgres with the settings that the
// product gives it, all commits synced, over a connection per writer.
func postgresAppend(b *testing.B, writers int) appender {
	b.Helper()
	dir := place(b)
	if err := os.Chmod(dir, 0o711); err != nil { // Postgres, as another user, passes through
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	cluster, err := postgres.StartCluster(ctx, postgres.ClusterConfig{
		Dir: filepath.Join(dir, "pg"), Logger: slog.New(slog.DiscardHandler), OrphanSignal: syscall.SIGQUIT,
		Settings: map[string]string{"max_connections": fmt.Sprint(writers + 10)},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		if err := cluster.Stop(ctx); err != nil {
			b.Error(err)
		}
	})
	config, err := pgxpool.ParseConfig(cluster.URL())
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = int32(writers)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := pool.Exec(ctx, messageTables); err != nil {
		b.Fatal(err)
	}
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := pool.QueryRow(ctx, "SELECT current_setting($1)", setting).Scan(&value); err != nil || value != "on" {
			b.Fatalf("Postgres must sync what it commits: %s is %q, %v", setting, value, err)
		}
	}
	return func(ctx context.Context, stream string, n int64) error {
		_, err := pool.Exec(ctx, "SELECT write_message($1, $2, $3, $4, $5, $6)", uuid.New(), stream, n-1, eventType, newBody(), []byte(`{}`))
		return err
	}
}
