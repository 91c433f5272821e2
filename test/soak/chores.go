package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tallyard/infra/eventstore/embedded"
)

// chores are what goes on beside the writers. The upkeep is done far more often
// than an operator would.
func (s *soak) chores() []chore {
	return []chore{
		{"write and delete a stream", time.Second, s.waste},
		{"back the store up", s.time / 20, s.backup},
		{"verify the store", s.time / 15, s.verify},
		{"scavenge the store", s.time / 12, s.scavenge},
	}
}

// backup makes a backup and takes it away again.
func (s *soak) backup(ctx context.Context) error {
	dir := filepath.Join(s.dir, "backup")
	if _, err := s.server.Backup(ctx, dir, embedded.BackupOptions{}); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// verify compares everything in the store with everything else.
func (s *soak) verify(ctx context.Context) error {
	r, err := s.server.Verify(ctx, nil)
	if err == nil && r.Damaged > 0 {
		err = fmt.Errorf("the store is damaged: %+v", r.Damage)
	}
	return err
}

// scavenge removes what waste has deleted.
func (s *soak) scavenge(ctx context.Context) error {
	out, err := s.server.Scavenge(ctx, nil)
	s.scavenged.Add(int64(out.Removed)) //nolint:gosec // G115: no store has that many
	return err
}
