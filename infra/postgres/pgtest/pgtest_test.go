package pgtest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"tallyard/infra/postgres/pgtest"
)

// killMe makes the test binary start its cluster and wait to be killed.
const killMe = "TALLYARD_PGTEST_KILL_ME"

func TestMain(m *testing.M) {
	if os.Getenv(killMe) != "" {
		dir, pid, err := pgtest.Start()
		fmt.Println(dir, pid, err)
		time.Sleep(time.Minute)
		os.Exit(1)
	}
	pgtest.Main(m)
}

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

func TestNothingSurvivesAKilledTestBinary(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), killMe+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dir, failed string
	var pid int
	_, err = fmt.Fscan(out, &dir, &pid, &failed)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed: that is its error
	if err != nil || failed != "<nil>" {
		t.Fatal(err, failed)
	}
	deadline := time.Now().Add(10 * time.Second)
	for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		if time.Now().After(deadline) {
			t.Fatalf("the server %d still runs", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
	old := time.Now().Add(-2 * time.Minute)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	pgtest.Sweep(time.Minute)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s is left: %v", dir, err)
	}
}
