package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/keys"
	"tallyard/infra/postgres"
)

// stores are the outside systems of a program: their addresses, and those of
// them that it runs itself.
type stores struct {
	eventStore string
	database   string
	server     *embedded.Server
	cluster    *postgres.Cluster
	sockets    string // directory of our sockets
	madeTemp   bool
}

// maxSocketPath is what the kernel takes, less the longest name that we put there.
const maxSocketPath = 107 - len("/events.sock")

// startStores starts what is embedded, both at once.
func startStores(ctx context.Context, c config, logger *slog.Logger) (*stores, error) {
	s := &stores{eventStore: c.eventStore, database: c.database}
	if err := os.MkdirAll(c.dataDir, 0o711); err != nil { //nolint:gosec // G301: the user that Postgres runs as passes through it
		return nil, fmt.Errorf("the data directory can't be made: %w", err)
	}
	if err := s.socketDir(c.dataDir); err != nil {
		return nil, err
	}
	var g errgroup.Group
	if s.eventStore == "" {
		network, err := c.network.open(c.dataDir)
		if err != nil {
			return nil, err
		}
		g.Go(func() (err error) {
			socket := filepath.Join(s.sockets, "events.sock")
			s.server, err = embedded.Open(ctx, embedded.Config{
				Dir: filepath.Join(c.dataDir, "events"), Socket: socket, Logger: logger, Network: network,
				MaxBytes: c.room.maxBytes, ScavengeEvery: c.room.scavengeEvery,
			})
			s.eventStore = "unix:" + socket
			return err
		})
	}
	if s.database == "" {
		g.Go(func() (err error) {
			s.cluster, err = postgres.StartCluster(ctx, postgres.ClusterConfig{Dir: filepath.Join(c.dataDir, "postgres"), Logger: logger})
			if err == nil {
				s.database = s.cluster.URL()
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, s.stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// socketDir finds a directory for our sockets that is short enough for the kernel.
func (s *stores) socketDir(dataDir string) error {
	s.sockets = filepath.Join(dataDir, "run")
	if len(s.sockets) > maxSocketPath {
		dir, err := os.MkdirTemp("", "tallyard-")
		if err != nil {
			return fmt.Errorf("a directory for sockets: %w", err)
		}
		s.sockets, s.madeTemp = dir, true
		return nil
	}
	return os.MkdirAll(s.sockets, 0o700)
}

// stop stops what is embedded; the event store last, since it is the truth.
func (s *stores) stop(ctx context.Context) error {
	var errs []error
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop(ctx))
	}
	if s.server != nil {
		errs = append(errs, s.server.Close(ctx))
	}
	if s.madeTemp {
		errs = append(errs, os.RemoveAll(s.sockets))
	}
	return errors.Join(errs...)
}

// masterKey reads the installation's key; on one machine it is made when there is none.
func masterKey(c config) (*keys.Master, error) {
	if c.masterKey != "" {
		return keys.Load(c.masterKey)
	}
	path := masterKeyPath(c.dataDir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("a directory for keys: %w", err)
	}
	return keys.LoadOrCreate(path)
}

// masterKeyPath is where the installation's key lies unless it is elsewhere.
func masterKeyPath(dataDir string) string { return filepath.Join(dataDir, "keys", "master.key") }
