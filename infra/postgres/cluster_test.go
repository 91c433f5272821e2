package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
)

func TestStartCluster(t *testing.T) {
	dir := pgtest.TempDir(t)
	c := start(t, postgres.ClusterConfig{Dir: filepath.Join(dir, "pg")})
	pool, err := postgres.Open(t.Context(), c.URL(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	show := func(name string) (v string) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `SELECT current_setting($1)`, name).Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}

	t.Run("settings", func(t *testing.T) {
		for name, want := range map[string]string{
			"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "data_checksums": "on",
			"listen_addresses": "", "max_connections": "100", "server_encoding": "UTF8", "jit": "off",
			"TimeZone": "UTC", "statement_timeout": "30s", "application_name": "tallyard",
			"shared_preload_libraries": "pg_stat_statements", "autovacuum": "on",
		} {
			if got := show(name); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
	})
	t.Run("keys sort bytewise and letters are Unicode's", func(t *testing.T) {
		var ok bool
		var upper string
		err := pool.QueryRow(t.Context(), `SELECT 'B' < 'a' AND 'z' < 'é', upper('é')`).Scan(&ok, &upper)
		if err != nil || !ok || upper != "É" {
			t.Fatalf("order %v, upper %q, error %v", ok, upper, err)
		}
	})
	t.Run("the program's role is no superuser", func(t *testing.T) {
		if got := show("is_superuser"); got != "off" {
			t.Fatalf("is_superuser = %s", got)
		}
	})
	t.Run("nobody else reaches data or socket", func(t *testing.T) {
		for _, path := range []string{c.DataDir(), c.SocketDir()} {
			fi, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if fi.Mode().Perm() != 0o700 {
				t.Errorf("%s has mode %o", path, fi.Mode().Perm())
			}
		}
	})
	t.Run("an unknown role is not let in", func(t *testing.T) {
		address := strings.Replace(c.URL(), "tallyard@", "somebody@", 1)
		_, err := postgres.Open(t.Context(), address, postgres.Options{})
		if err == nil || !strings.Contains(err.Error(), "28000") {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("a second start on a live directory is refused", func(t *testing.T) {
		_, err := postgres.StartCluster(t.Context(), postgres.ClusterConfig{Dir: filepath.Join(dir, "pg")})
		if !errors.Is(err, postgres.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("stop is clean and can be repeated", func(t *testing.T) {
		pool.Close()
		pid := c.PID()
		stop(t, c)
		stop(t, c)
		if alive(pid) {
			t.Fatal("the server still runs")
		}
		if _, err := os.Stat(filepath.Join(c.DataDir(), "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("pid file: %v", err)
		}
	})
}

func TestAServerThatDiesIsStartedAgain(t *testing.T) {
	// E14 marten#3503: Postgres goes away, work goes on without a restart.
	c := start(t, pgtest.Config(pgtest.TempDir(t)))
	pool, err := postgres.Open(t.Context(), c.URL(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for i := range 3 {
		pid := c.PID()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) error {
			if c.Restarts() != i+1 {
				return fmt.Errorf("%d restarts", c.Restarts())
			}
			return pool.Ping(ctx)
		})
		if c.PID() == pid || c.PID() == 0 {
			t.Fatalf("process %d", c.PID())
		}
	}
}

func TestABackendThatDiesTakesNothingWithIt(t *testing.T) {
	c := start(t, pgtest.Config(pgtest.TempDir(t)))
	pool, err := postgres.Open(t.Context(), c.URL(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var backend int
	if err := pool.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(backend, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, pool.Ping)
	if c.Restarts() != 0 {
		t.Fatal("the server mends this by itself")
	}
}

func TestStaleOrDamagedPidFile(t *testing.T) {
	cfg := pgtest.Config(pgtest.TempDir(t))
	c := start(t, cfg)
	stop(t, c)
	pidFile := filepath.Join(c.DataDir(), "postmaster.pid")

	// A process of the same user whose number stands in the file.
	stranger := exec.Command("sleep", "60")
	uid, gid := ownerIDs(t, c.DataDir())
	if os.Geteuid() == 0 {
		stranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = stranger.Process.Kill(), stranger.Wait() }()

	for name, content := range map[string]string{
		"empty":             "",
		"garbage":           "\x00\xff no number\n",
		"cut":               "12",
		"a stranger":        fmt.Sprintf("%d\n%s\n1700000000\n5432\n%s\n\n", stranger.Process.Pid, c.DataDir(), c.SocketDir()),
		"this program":      fmt.Sprintf("%d\n", os.Getpid()),
		"nobody any more":   fmt.Sprintf("4194303\n%s\n1700000000\n5432\n%s\n\n  1234567 99\n", c.DataDir(), c.SocketDir()),
		"a negative number": "-1\n",
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(pidFile, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(pidFile, int(uid), int(gid)); err != nil {
				t.Fatal(err)
			}
			stop(t, start(t, cfg))
			if !alive(stranger.Process.Pid) {
				t.Fatal("a stranger was ended")
			}
		})
	}
}

func TestWordsForWhatIsMissing(t *testing.T) {
	t.Run("binaries", func(t *testing.T) {
		cfg := postgres.ClusterConfig{Dir: filepath.Join(pgtest.TempDir(t), "pg"), BinDir: t.TempDir()}
		_, err := postgres.StartCluster(t.Context(), cfg)
		var missing *postgres.MissingError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), postgres.InstallLine) {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("binaries of the version that made the data", func(t *testing.T) {
		cfg := pgtest.Config(pgtest.TempDir(t))
		c := start(t, cfg)
		stop(t, c)
		if err := os.WriteFile(filepath.Join(c.DataDir(), "PG_VERSION"), []byte("99\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := postgres.StartCluster(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 99") || !strings.Contains(err.Error(), "apt-get install -y postgresql-99") {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("user", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root needs another user")
		}
		cfg := postgres.ClusterConfig{Dir: filepath.Join(pgtest.TempDir(t), "pg"), Account: "no-such-user"}
		_, err := postgres.StartCluster(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), "useradd --system") {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("a way to the data", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root runs Postgres as another user")
		}
		closed := pgtest.TempDir(t)
		if err := os.Chmod(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := postgres.StartCluster(t.Context(), postgres.ClusterConfig{Dir: filepath.Join(closed, "data", "pg")})
		if err == nil || !strings.Contains(err.Error(), "chmod o+x "+closed) {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("a data directory that is none", func(t *testing.T) {
		dir := filepath.Join(pgtest.TempDir(t), "pg")
		if err := os.MkdirAll(filepath.Join(dir, "pgdata"), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := postgres.StartCluster(t.Context(), postgres.ClusterConfig{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "is no Postgres data directory") {
			t.Fatalf("error %v", err)
		}
	})
	t.Run("a setting that Postgres refuses", func(t *testing.T) {
		cfg := pgtest.Config(pgtest.TempDir(t))
		cfg.Settings["max_connections"] = "many"
		_, err := postgres.StartCluster(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "max_connections"`) {
			t.Fatalf("error %v", err)
		}
	})
}

func TestALongDirectoryGetsAShortSocket(t *testing.T) {
	dir := filepath.Join(pgtest.TempDir(t), strings.Repeat("long-", 20))
	cfg := pgtest.Config(dir)
	c := start(t, cfg)
	t.Cleanup(func() { _ = os.RemoveAll(c.SocketDir()) })
	if strings.HasPrefix(c.SocketDir(), dir) || len(c.SocketDir()) > 80 {
		t.Fatalf("socket in %s", c.SocketDir())
	}
	pool, err := postgres.Open(t.Context(), c.URL(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()

	t.Run("and too long a one asked for is refused", func(t *testing.T) {
		cfg := pgtest.Config(pgtest.TempDir(t))
		cfg.SocketDir = dir
		if _, err := postgres.StartCluster(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "107 bytes") {
			t.Fatalf("error %v", err)
		}
	})
}

func TestASocketDirectoryOfSomebodyElseIsRefused(t *testing.T) {
	dir := pgtest.TempDir(t)
	cfg := pgtest.Config(dir)
	cfg.SocketDir = filepath.Join(dir, "s")
	if err := os.Symlink(t.TempDir(), cfg.SocketDir); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.StartCluster(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "is not a directory of") {
		t.Fatalf("error %v", err)
	}
}

func alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func ownerIDs(t *testing.T, path string) (uid, gid uint32) {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no owner")
	}
	return st.Uid, st.Gid
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, func(context.Context) error {
		if alive(pid) {
			return fmt.Errorf("process %d still runs", pid)
		}
		return nil
	})
}
