package postgres_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
)

func files(sql ...string) fstest.MapFS {
	names := []string{"0001_one.sql", "0002_two.sql", "0003_three.sql"}
	m := fstest.MapFS{}
	for i, s := range sql {
		m[names[i]] = &fstest.MapFile{Data: []byte(s)}
	}
	return m
}

const (
	one = `CREATE TABLE tallyard.one (n int)`
	two = `CREATE TABLE tallyard.two (n int)`
)

func TestMigrate(t *testing.T) {
	t.Run("twice is once", func(t *testing.T) {
		pool := pgtest.NewEmpty(t)
		for range 2 {
			if err := postgres.Migrate(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("programs that start together wait for each other", func(t *testing.T) {
		pool := pgtest.NewEmpty(t)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if err := postgres.Migrate(t.Context(), pool); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	t.Run("goes on from where it is", func(t *testing.T) {
		pool := pgtest.NewEmpty(t)
		if err := postgres.MigrateFrom(t.Context(), pool, files(one)); err != nil {
			t.Fatal(err)
		}
		if err := postgres.MigrateFrom(t.Context(), pool, files(one, two)); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), `SELECT FROM tallyard.two`); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a newer database is refused", func(t *testing.T) {
		pool := pgtest.NewEmpty(t)
		if err := postgres.MigrateFrom(t.Context(), pool, files(one, two)); err != nil {
			t.Fatal(err)
		}
		err := postgres.MigrateFrom(t.Context(), pool, files(one))
		if !errors.Is(err, postgres.ErrNewerDatabase) || !strings.Contains(err.Error(), "0002_two") {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("a changed migration is refused", func(t *testing.T) {
		pool := pgtest.NewEmpty(t)
		if err := postgres.MigrateFrom(t.Context(), pool, files(one)); err != nil {
			t.Fatal(err)
		}
		if err := postgres.MigrateFrom(t.Context(), pool, files(one+" ", two)); !errors.Is(err, postgres.ErrMigrationChanged) {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("one that fails leaves nothing", func(t *testing.T) {
		pool := pgtest.NewEmpty(t)
		if err := postgres.MigrateFrom(t.Context(), pool, files(one, two+`; SELECT 1/0`)); err == nil {
			t.Fatal("no error")
		}
		if err := postgres.MigrateFrom(t.Context(), pool, files(one, two)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("numbers without a gap", func(t *testing.T) {
		m := files(one)
		m["0003_three.sql"] = m["0001_one.sql"]
		if err := postgres.MigrateFrom(t.Context(), nil, m); err == nil || !strings.Contains(err.Error(), "0002") {
			t.Fatalf("error %v", err)
		}
	})
}
