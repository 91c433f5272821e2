package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
)

func TestOpen(t *testing.T) {
	t.Run("an old server is refused", func(t *testing.T) {
		err := postgres.CheckFacts(130012, "13.12", "UTF8")
		if !errors.Is(err, postgres.ErrOldServer) || !strings.Contains(err.Error(), "13.12") {
			t.Fatalf("error %v", err)
		}
		if err := postgres.CheckFacts(140000, "14.0", "UTF8"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("another encoding is refused", func(t *testing.T) {
		if err := postgres.CheckFacts(150000, "15.0", "LATIN1"); err == nil || !strings.Contains(err.Error(), "LATIN1") {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("a wrong address shows no password", func(t *testing.T) {
		for _, address := range []string{
			"postgres://u:hunter2@127.0.0.1:1/db?connect_timeout=1",
			"postgres://u:hunter2@[/db",
			"postgres://u:hunter2@h:port/db",
		} {
			_, err := postgres.Open(t.Context(), address, postgres.Options{})
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v", err)
			}
		}
	})
	t.Run("long statements are ended", func(t *testing.T) {
		pool, err := postgres.Open(t.Context(), pgtest.URL(t), postgres.Options{StatementTimeout: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if _, err := pool.Exec(t.Context(), `SELECT pg_sleep(10)`); err == nil || !strings.Contains(err.Error(), "57014") {
			t.Fatalf("error %v", err)
		}
	})
}
