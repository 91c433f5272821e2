package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
)

// kills is how often TestKilledAtAnyMoment kills.
const kills = 12

func TestKilledAtAnyMoment(t *testing.T) {
	// From the first moment of initdb to a running server: whatever is left,
	// the next start works, and rows that were committed are there.
	dir := filepath.Join(pgtest.TempDir(t), "pg")
	written := 0
	for i := range kills {
		c := startChild(t, dir)
		if i%3 == 2 { // every third gets to run and to write
			c.ready(t)
			written++
			writeRow(t, dir, written)
			c.kill()
			continue
		}
		// A start takes 1.5 s with initdb and 0.3 s without.
		span := 300 * time.Millisecond
		if written == 0 {
			span = 1500 * time.Millisecond
		}
		time.Sleep(rand.N(span))
		c.kill()
	}
	cl := start(t, postgres.ClusterConfig{Dir: dir})
	conn := connect(t, cl.URL())
	var n int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM kept`).Scan(&n); err != nil || n != written {
		t.Fatalf("%d rows of %d, error %v", n, written, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "initdb-*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestTheServerEndsWithItsProgram(t *testing.T) {
	dir := filepath.Join(pgtest.TempDir(t), "pg")
	c := startChild(t, dir)
	c.ready(t)
	pid := serverPID(t, dir)
	c.kill()
	gone(t, pid)
}

func TestAServerThatOutlivedItsProgramIsEnded(t *testing.T) {
	dir := filepath.Join(pgtest.TempDir(t), "pg")
	c := startChild(t, dir, childLeavesServer+"=1")
	c.ready(t)
	writeRow(t, dir, 1)
	old := serverPID(t, dir)
	busy := connect(t, address(dir)) // a session keeps nobody from ending it
	c.kill()
	time.Sleep(100 * time.Millisecond)
	if !alive(old) {
		t.Fatal("the test wants a server that stays")
	}

	t.Run("also when its pid file is damaged", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(dir, "pgdata", "postmaster.pid"), []byte("?"), 0o600); err != nil {
			t.Fatal(err)
		}
		cl := start(t, postgres.ClusterConfig{Dir: dir})
		gone(t, old)
		if err := busy.Ping(t.Context()); err == nil {
			t.Error("the old session still works")
		}
		var n int
		if err := connect(t, cl.URL()).QueryRow(t.Context(), `SELECT count(*) FROM kept`).Scan(&n); err != nil || n != 1 {
			t.Fatalf("%d rows, error %v", n, err)
		}
	})
}

func TestOrphanedBackendsAreEnded(t *testing.T) {
	// The postmaster alone is killed (out of memory): its children hold the
	// shared memory for a moment, in which a new server would refuse to start.
	dir := filepath.Join(pgtest.TempDir(t), "pg")
	c := startChild(t, dir, childLeavesServer+"=1")
	c.ready(t)
	conn := connect(t, address(dir))
	go func() { _, _ = conn.Exec(context.Background(), `SELECT pg_sleep(30)`) }() // ends with its backend
	time.Sleep(100 * time.Millisecond)
	pid := serverPID(t, dir)
	c.kill()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	start(t, postgres.ClusterConfig{Dir: dir})
	t.Logf("started %v after the kill", time.Since(began))
}

func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("every other test does this")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("no user nobody")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	dir := pgtest.TempDir(t)
	// The test binary lies where only root can reach it.
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, b, 0o755); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, uid, gid); err != nil {
		t.Fatal(err)
	}
	pg := filepath.Join(data, "pg")
	run := func() {
		t.Helper()
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), childDir+"="+pg)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		var errors strings.Builder
		cmd.Stderr = &errors
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 6)
		n, _ := out.Read(line)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || string(line[:n]) != "ready\n" {
			t.Fatalf("child says %q, %v: %s", line[:n], err, errors.String())
		}
	}
	run()
	run()
	if owner, _ := ownerIDs(t, filepath.Join(pg, "pgdata")); int(owner) != uid {
		t.Fatalf("the data belongs to %d", owner)
	}

	t.Run("and root goes on with that user's data", func(t *testing.T) {
		cl := start(t, postgres.ClusterConfig{Dir: pg})
		if owner, _ := ownerIDs(t, fmt.Sprintf("/proc/%d", cl.PID())); int(owner) != uid {
			t.Fatalf("the server runs as %d", owner)
		}
	})
}

// address is that of the cluster in dir, seen from outside its program.
func address(dir string) string {
	return fmt.Sprintf("host=%s port=5432 user=tallyard dbname=tallyard sslmode=disable", filepath.Join(dir, "socket"))
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // its server may be gone
	})
	return conn
}

func writeRow(t *testing.T, dir string, n int) {
	t.Helper()
	conn := connect(t, address(dir))
	if _, err := conn.Exec(t.Context(), `CREATE TABLE IF NOT EXISTS kept (n int PRIMARY KEY)`); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `INSERT INTO kept VALUES ($1)`, n); err != nil {
		t.Fatal(err)
	}
}

func serverPID(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "pgdata", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
