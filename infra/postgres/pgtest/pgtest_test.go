package pgtest_test

import (
	"testing"

	"tallyard/infra/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestNewGivesADatabaseOfItsOwnWithTheOperationalTables(t *testing.T) {
	a, b := pgtest.New(t), pgtest.New(t)
	if _, err := a.Exec(t.Context(), `INSERT INTO tallyard.snapshots VALUES ('s', 1, 2, 'x')`); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := b.QueryRow(t.Context(), `SELECT count(*) FROM tallyard.snapshots`).Scan(&n); err != nil || n != 0 {
		t.Fatalf("the other database has %d rows, error %v", n, err)
	}
	if err := b.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_statements`).Scan(&n); err != nil {
		t.Fatalf("statements cannot be counted: %v", err)
	}
}

func TestNewEmptyHasNoTables(t *testing.T) {
	var n int
	err := pgtest.NewEmpty(t).QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'tallyard'`).Scan(&n)
	if err != nil || n != 0 {
		t.Fatalf("%d tables, error %v", n, err)
	}
}
