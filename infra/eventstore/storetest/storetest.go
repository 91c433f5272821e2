// Package storetest gives tests a real event store: an embedded server on a
// temporary directory and a connection to it.
package storetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
)

// openTimeout is generous: tests of many packages may share the machine.
const openTimeout = 30 * time.Second

// Open starts an empty event store and connects to it. Both are closed when the
// test ends.
func Open(t testing.TB) *eventstore.Log {
	t.Helper()
	server := Serve(t, embedded.Config{})
	return Connect(t, eventstore.Config{Address: server.Address()})
}

// Serve starts an event store, in temporary directories where the configuration
// names none. It is closed when the test ends.
func Serve(t testing.TB, cfg embedded.Config) *embedded.Server {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Socket == "" {
		cfg.Socket = Socket(t)
	}
	if cfg.DiskReserve == 0 {
		cfg.DiskReserve = -1 // a developer's full disk is not what the test is about
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	server, err := embedded.Open(ctx, cfg)
	if err != nil {
		t.Fatalf("start the event store: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Errorf("stop the event store: %v", err)
		}
	})
	return server
}

// Connect connects to an event store. The connection is closed when the test ends.
func Connect(t testing.TB, cfg eventstore.Config) *eventstore.Log {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	log, err := eventstore.Open(ctx, cfg)
	if err != nil {
		t.Fatalf("connect to the event store: %v", err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Errorf("close the connection to the event store: %v", err)
		}
	})
	return log
}

// Socket gives a path for a unix socket that is short enough, also where the
// test's name is long, and goes away with the test.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "es")
	if err != nil {
		t.Fatalf("create a directory for the socket: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the socket's directory: %v", err)
		}
	})
	return filepath.Join(dir, "s")
}
