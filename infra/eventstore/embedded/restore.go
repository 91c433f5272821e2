package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// Restored tells what a restore did.
type Restored struct {
	Manifest Manifest `json:"backup"`
	// Aside is where the store that was there before lies now; empty if there was none.
	Aside string `json:"aside,omitempty"`
}

// ErrOccupied says that a restore would take the place of a store.
var ErrOccupied = errors.New("an event store is there already")

// RestoreDir makes a store out of a backup, which stays as it is. Every file is
// compared with the manifest on its way, and the store is opened once before it
// takes its place. storeDir must be empty or missing, unless replace is set:
// then what is there is moved aside. report may be nil.
func RestoreDir(ctx context.Context, backup, storeDir string, replace bool, report func(BackupProgress)) (r Restored, err error) {
	if storeDir, err = filepath.Abs(storeDir); err != nil {
		return Restored{}, err
	}
	unlock, occupied, err := lockOld(storeDir)
	if err != nil {
		return Restored{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if occupied && !replace {
		return Restored{}, fmt.Errorf("%w: %s is not empty", ErrOccupied, storeDir)
	}
	// Before anything is written: a damaged backup costs nothing but the time to find out.
	if r.Manifest, err = CheckBackup(ctx, backup, report); err != nil {
		return Restored{}, err
	}
	part, err := claim(storeDir + ".restoring")
	if err != nil {
		return Restored{}, err
	}
	placing := false
	defer func() {
		if err != nil && !placing {
			err = errors.Join(err, os.RemoveAll(part.path))
		}
		err = errors.Join(err, part.release())
	}()
	m := &meter{ctx: ctx, step: "restore", total: r.Manifest.Bytes, report: report}
	for _, file := range r.Manifest.Files {
		if err := file.restore(filepath.Join(backup, backupEvents), part.path, m); err != nil {
			return Restored{}, err
		}
	}
	if err := tryOut(ctx, part.path, &r.Manifest); err != nil {
		return Restored{}, err
	}
	if err := syncDirectory(part.path); err != nil {
		return Restored{}, err
	}
	placing = true // from here on no name may be taken for leftovers
	if occupied {
		if r.Aside, err = putAside(part.path, storeDir, time.Now()); err != nil {
			return Restored{}, err
		}
	} else if err := os.Rename(part.path, storeDir); err != nil { // in the place of an empty one, too
		return Restored{}, err
	}
	return r, syncDirectory(filepath.Dir(storeDir))
}

// lockOld makes sure that nobody has a store open at a place, and that nobody
// opens it meanwhile.
func lockOld(dir string) (unlock func() error, occupied bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return func() error { return nil }, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	lock, err := pebble.LockDirectory(dir, vfs.Default)
	if err != nil {
		return nil, false, fmt.Errorf("the event store at %s is in use; stop its program first: %w", dir, err)
	}
	return lock.Close, true, nil
}

// putAside gives a fresh store the place of another, which it names anew. The
// two change places at once, so that there is a store at every moment and the
// old one never bears a name that is cleaned up.
func putAside(fresh, storeDir string, now time.Time) (aside string, err error) {
	aside = storeDir + ".replaced-" + now.UTC().Format("20060102T150405.000Z")
	if err := os.Rename(fresh, aside); err != nil {
		return "", err
	}
	err = unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, storeDir, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		// This file system can't; for a moment there is no store.
		err = errors.Join(os.Rename(aside, fresh), os.Rename(storeDir, aside))
		if err == nil {
			err = os.Rename(fresh, storeDir)
		}
	}
	if err != nil {
		return "", fmt.Errorf("put the restored store into its place; it may still lie at %s: %w", aside, err)
	}
	return aside, nil
}

// restore copies a file of a backup for good.
func (b BackupFile) restore(from, to string, m *meter) (err error) {
	f, err := os.OpenFile(filepath.Join(to, b.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // G304: a name without a directory, below one that the operator names
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := b.copyFrom(from, io.Writer(f), m); err != nil {
		return err
	}
	return f.Sync()
}

// tryOut opens a restored store and compares it with the manifest.
func tryOut(ctx context.Context, dir string, m *Manifest) (err error) {
	s, err := openStore(ctx, storeOptions{dir: dir, logger: slog.New(slog.DiscardHandler), clock: time.Now})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadBackup, err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if last := s.committed.Load(); s.id != m.Store || last != m.LastPosition {
		return fmt.Errorf("%w: it holds store %s up to position %d, where its %s says %s up to %d", ErrBadBackup, s.id, last, manifestFile, m.Store, m.LastPosition)
	}
	return nil
}
