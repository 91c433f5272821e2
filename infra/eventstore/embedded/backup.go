package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// lockFile is what Pebble locks a directory by.
const lockFile = "LOCK"

// BackupOptions tell how a backup is made.
type BackupOptions struct {
	// Copy makes copies of all files, also where they could be shared.
	Copy bool
	// Report, which may be nil, is told how far it is.
	Report func(BackupProgress)
}

func (o BackupOptions) tell(step string) {
	if o.Report != nil {
		o.Report(BackupProgress{Step: step})
	}
}

// Backup writes the store as it is at one moment into a new directory, while
// it goes on. The directory is there completely or not at all. Files that never
// change again are shared with the store (hard links) where both lie in one
// file system, unless told otherwise, and copied else; appends wait for neither.
func (s *Server) Backup(ctx context.Context, dir string, opt BackupOptions) (Manifest, error) {
	return s.store.backup(ctx, dir, opt)
}

// BackupDir is Backup for the directory of a store that nobody has open.
func BackupDir(ctx context.Context, storeDir, dir string, opt BackupOptions) (m Manifest, err error) {
	if err := storeThere(storeDir); err != nil {
		return Manifest{}, err
	}
	s, err := openStore(ctx, storeOptions{dir: storeDir, logger: slog.New(slog.DiscardHandler), clock: time.Now})
	if err != nil {
		return Manifest{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.backup(ctx, dir, opt)
}

// storeThere refuses a directory without a store: opening it would make one.
func storeThere(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return fmt.Errorf("there is no event store at %s", dir)
	}
	return err
}

func (s *store) backup(ctx context.Context, dir string, opt BackupOptions) (m Manifest, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return Manifest{}, err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s is there already; a backup goes into a directory that it makes", dir)
		}
		return Manifest{}, err
	}
	if err := s.checkTarget(dir); err != nil {
		return Manifest{}, err
	}
	part, err := claim(dir + ".partial")
	if err != nil {
		return Manifest{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part.path))
		}
		err = errors.Join(err, part.release())
	}()
	opt.tell("copy")
	taken := s.opt.clock()
	files := filepath.Join(part.path, backupEvents)
	if err := s.checkpoint(ctx, files); err != nil {
		return Manifest{}, fmt.Errorf("copy the event store: %w", err)
	}
	if opt.Copy {
		if err := unshare(ctx, files); err != nil {
			return Manifest{}, fmt.Errorf("copy the event store: %w", err)
		}
	}
	opt.tell("count")
	if m, err = describe(ctx, files); err != nil {
		return Manifest{}, fmt.Errorf("read the copy of the event store: %w", err)
	}
	m.Taken = taken.UTC()
	if m.Files, m.Bytes, err = sumFiles(files, &meter{ctx: ctx, step: "sum", report: opt.Report}); err != nil {
		return Manifest{}, err
	}
	if err := m.write(part.path); err != nil {
		return Manifest{}, err
	}
	if err := errors.Join(syncDirectory(files), syncDirectory(part.path)); err != nil {
		return Manifest{}, err
	}
	if err := os.Rename(part.path, dir); err != nil {
		return Manifest{}, fmt.Errorf("name the backup %s: %w", dir, err)
	}
	return m, syncDirectory(filepath.Dir(dir))
}

// checkTarget refuses to write a backup into the store itself, and into a
// directory that isn't there: perhaps a disk is missing that it was meant for.
func (s *store) checkTarget(dir string) error {
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("the directory that the backup is to lie in: %w", err)
	}
	own, err := filepath.Abs(s.opt.dir)
	if err != nil {
		return err
	}
	if resolved, err := filepath.EvalSymlinks(own); err == nil {
		own = resolved
	}
	if rel, err := filepath.Rel(own, parent); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("%s lies inside the event store; a backup goes elsewhere", dir)
	}
	return nil
}

// checkpoint makes a copy of the files.
func (s *store) checkpoint(ctx context.Context, dir string) error {
	// Closing the store waits for it.
	ctx, end, err := s.beginUpkeep(ctx)
	if err != nil {
		return err
	}
	defer end()
	endOutside := s.files.beginOutside(ctx)
	err = s.trap.guard(context.WithoutCancel(ctx), func() error { return s.db.Checkpoint(dir) })
	if wrong := endOutside(); wrong != nil {
		err = errors.Join(wrong, s.opt.fs.RemoveAll(dir)) // what Pebble makes of it says less
	}
	if err != nil {
		return err
	}
	return errors.Join(context.Cause(ctx), os.Chmod(dir, 0o700)) //nolint:gosec // G302: a directory
}

// unshare puts copies in the place of files that have other names, too.
func unshare(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		var info unix.Stat_t
		name := filepath.Join(dir, e.Name())
		if err := unix.Lstat(name, &info); err != nil {
			return err
		}
		if info.Nlink < 2 || !e.Type().IsRegular() {
			continue
		}
		if err := errors.Join(vfs.Copy(vfs.Default, name, name+".copy"), os.Rename(name+".copy", name)); err != nil {
			return err
		}
	}
	return nil
}

// describe reads what the files of a store hold, without changing them.
func describe(ctx context.Context, dir string) (m Manifest, err error) {
	s := newStore(storeOptions{dir: dir, logger: slog.New(slog.DiscardHandler), clock: time.Now})
	if err := s.openFiles(true); err != nil {
		return Manifest{}, err
	}
	defer func() {
		err = errors.Join(err, s.closeFiles(context.WithoutCancel(ctx)), os.Remove(filepath.Join(dir, lockFile)))
	}()
	id, found, err := readDescription(s.db)
	if err != nil || !found {
		return Manifest{}, errors.Join(errors.New("its description can't be read"), err)
	}
	m = Manifest{Kind: backupKind, Version: backupVersion, StoreFormat: storeFormat, Store: id}
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: []byte{keyEvent}, UpperBound: eventUpperBound()})
	if err != nil {
		return Manifest{}, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if m.LastPosition, err = positionOfKey(it.Key()); err != nil {
			return Manifest{}, err
		}
		if m.Events++; m.Events%4096 == 0 && ctx.Err() != nil {
			return Manifest{}, context.Cause(ctx)
		}
	}
	return m, it.Error()
}

// claimed is a directory under way that only one process works on.
type claimed struct {
	path string
	dir  *os.File
}

// claim makes a directory, in the place of one that a process which is gone
// has left there unfinished.
func claim(path string) (*claimed, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := os.Open(path) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another process is at work in %s: %w", path, err), dir.Close())
	}
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, e.Name())))
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &claimed{path: path, dir: dir}, nil
}

func (c *claimed) release() error { return c.dir.Close() }

func syncDirectory(path string) error {
	d, err := os.Open(path) //nolint:gosec // G304: below what the operator names
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
