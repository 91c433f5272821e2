// Package pgtest gives tests a real PostgreSQL: one private cluster per test
// binary, started by the first test that asks for it, and a fresh database for
// each.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// which stops the cluster after the last test and fails when a goroutine was
// left running. Nothing survives the test binary, also when it is killed.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"tallyard/infra/postgres"
)

const template = "tallyard_template"

// shared is the cluster of this test binary.
var shared struct {
	mu      sync.Mutex
	err     error
	dir     string
	cluster *postgres.Cluster
	admin   *pgxpool.Pool
	// Databases are made one after the other: the template takes no company.
	making sync.Mutex
	serial atomic.Int64
}

// Main runs the tests, ends the cluster, looks for leaked goroutines and exits.
func Main(m *testing.M) {
	os.Exit(Run(m))
}

// Run is Main without the exit, for a TestMain that has more to do.
func Run(m *testing.M) int {
	code := m.Run()
	if err := Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
	}
	return code
}

// New returns a pool on a fresh database with the operational tables in it.
// Pool and database go when the test ends.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, URL(t))
}

// NewEmpty is New without any tables.
func NewEmpty(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return open(t, create(t, "template1"))
}

// URL is the address of a fresh database with the operational tables in it,
// for tests of whole programs. The database goes when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, template)
}

// Cluster is the cluster of this test binary. Tests that disturb it start
// their own with TempDir and Config.
func Cluster(t testing.TB) *postgres.Cluster {
	t.Helper()
	if err := start(); err != nil {
		t.Fatal(err)
	}
	return shared.cluster
}

// Config is that of a cluster for tests: quick, and not meant to be kept.
func Config(dir string) postgres.ClusterConfig {
	return postgres.ClusterConfig{
		Dir:    filepath.Join(dir, "pg"),
		Logger: slog.New(slog.DiscardHandler),
		Settings: map[string]string{
			"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
			"shared_buffers": "32MB", "max_wal_size": "256MB",
		},
		InitArgs:     []string{"--no-sync"},
		OrphanSignal: syscall.SIGQUIT,
	}
}

// TempDir is a short directory that the user Postgres runs as can reach, also
// when the tests run as root (a directory of t.TempDir is closed to others).
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := tempDir("tallyard-t-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func tempDir(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711) //nolint:gosec // G302: others pass through, none looks in
}

func start() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster != nil || shared.err != nil {
		return shared.err
	}
	shared.err = startLocked()
	return shared.err
}

func startLocked() error {
	sweep(time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir, err := tempDir(dirPrefix)
	if err != nil {
		return err
	}
	shared.dir = dir
	cluster, err := postgres.StartCluster(ctx, Config(dir))
	if err != nil {
		return err
	}
	shared.cluster = cluster
	if shared.admin, err = postgres.Open(ctx, cluster.URL(), postgres.Options{Name: "pgtest", MaxConns: 4}); err != nil {
		return err
	}
	if _, err := shared.admin.Exec(ctx, "CREATE DATABASE "+template); err != nil {
		return err
	}
	pool, err := postgres.Open(ctx, cluster.DatabaseURL(template), postgres.Options{Name: "pgtest", MaxConns: 1})
	if err != nil {
		return err
	}
	defer pool.Close()
	return postgres.Migrate(ctx, pool)
}

// Stop ends the cluster of this test binary and removes its directory.
func Stop() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.admin != nil {
		shared.admin.Close()
		shared.admin = nil
	}
	var err error
	if shared.cluster != nil {
		// The data is thrown away: no need to write it out.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err = shared.cluster.Stop(ctx)
		shared.cluster = nil
	}
	if shared.dir != "" {
		if rmErr := os.RemoveAll(shared.dir); err == nil {
			err = rmErr
		}
		shared.dir = ""
	}
	return err
}

func create(t testing.TB, from string) string {
	t.Helper()
	cluster := Cluster(t)
	name := fmt.Sprintf("test_%d", shared.serial.Add(1))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	shared.making.Lock()
	_, err := shared.admin.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, from))
	shared.making.Unlock()
	if err != nil {
		t.Fatal("pgtest:", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := drop(ctx, name); err != nil {
			t.Error("pgtest:", err)
		}
	})
	return cluster.DatabaseURL(name)
}

// drop removes a database. While Postgres itself is at work in it, which only a
// superuser may interrupt, it is tried again.
func drop(ctx context.Context, name string) error {
	for {
		_, err := shared.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		var pg *pgconn.PgError
		if err == nil || !errors.As(err, &pg) || pg.Code != "42501" {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func open(t testing.TB, address string) *pgxpool.Pool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pool, err := postgres.Open(ctx, address, postgres.Options{Name: "test", MaxConns: 8})
	if err != nil {
		t.Fatal("pgtest:", err)
	}
	t.Cleanup(pool.Close)
	return pool
}
