package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fullRetry is how often a write that met a full disk is tried again.
const fullRetry = 100 * time.Millisecond

// storeFiles is the file system as Pebble gets it.
//
// To Pebble a full disk is the end: it can't take back what it has begun, and
// calls Fatalf. Here a write waits for room instead, so that a full disk costs
// time and no restart. What is told to be synced is never tried again: after a
// sync that failed nobody knows what is on the disk.
//
// Some errors make Pebble panic in a place where the panic can't be caught and
// the process ends: those of syncing the directory, those of the write-ahead log
// while the store is open, and while it is opened those behind the first flush,
// when it closes its cache of tables under a compaction. So they never come back
// to it: the store fails, and the goroutine is held, as with Fatalf.
//
// All of this is about the store's own directory; see own for files elsewhere.
type storeFiles struct {
	vfs.FS
	dir        string
	trap       *fatalTrap
	background *background
	quit       <-chan struct{}

	phase   atomic.Int32
	flushed atomic.Bool // a table has been begun
	// waiting counts the writes that wait for room.
	waiting atomic.Int64
	// fresh makes new write-ahead logs out of nothing instead of out of old
	// ones, which keep their old contents until they are written over.
	fresh atomic.Bool
	// outside is what writes outside of the directory now, if anything does.
	outside atomic.Pointer[outside]
}

// Phases of the files.
const (
	phaseOpening int32 = iota // nothing waits for room
	phaseOpen
	phaseClosing // nothing waits for room any more
)

// Unwrap is how Pebble looks for the disk below.
func (f *storeFiles) Unwrap() vfs.FS { return f.FS }

// withRoom does a write and, as long as the disk is full, does it again.
func (f *storeFiles) withRoom(write func() error) error {
	err := write()
	if !isFull(err) || f.phase.Load() != phaseOpen {
		return err
	}
	f.waiting.Add(1)
	defer f.waiting.Add(-1)
	for isFull(err) {
		if !f.sleep(fullRetry) {
			return err
		}
		err = write()
	}
	return err
}

// sleep is cut short by the end of the store.
func (f *storeFiles) sleep(d time.Duration) bool {
	if d == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-f.quit:
		return false
	}
}

// isFull tells whether a write failed for want of room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Create implements vfs.FS.
func (f *storeFiles) Create(name string, category vfs.DiskWriteCategory) (file vfs.File, err error) {
	if !f.own(name) {
		return f.outside.Load().create(func() (vfs.File, error) { return f.FS.Create(name, category) })
	}
	if strings.HasSuffix(name, tableSuffix) {
		f.flushed.Store(true)
		f.sleep(f.background.backoff())
	}
	// A marker names a file that was made just now. Should the power go, that
	// file must not be the one that is missing.
	if err := f.beforeMarker(name); err != nil {
		return nil, err
	}
	err = f.withRoom(func() error {
		file, err = f.FS.Create(name, category)
		return err
	})
	return f.wrap(name, file, err)
}

// ReuseForWrite implements vfs.FS.
func (f *storeFiles) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (file vfs.File, err error) {
	if !f.own(name) {
		return f.outside.Load().create(func() (vfs.File, error) { return f.FS.ReuseForWrite(old, name, category) })
	}
	if f.fresh.Load() {
		if err := f.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, f.fatal(name, err)
		}
		return f.Create(name, category)
	}
	err = f.withRoom(func() error {
		file, err = f.FS.ReuseForWrite(old, name, category)
		return err
	})
	return f.wrap(name, file, err)
}

// Link implements vfs.FS.
func (f *storeFiles) Link(old, name string) error {
	if !f.own(name) {
		return f.outside.Load().write(func() error { return f.FS.Link(old, name) })
	}
	return f.fatal(name, f.withRoom(func() error { return f.FS.Link(old, name) }))
}

// Rename implements vfs.FS.
func (f *storeFiles) Rename(old, name string) error {
	if !f.own(name) {
		return f.outside.Load().write(func() error { return f.FS.Rename(old, name) })
	}
	return f.fatal(name, f.withRoom(func() error { return f.FS.Rename(old, name) }))
}

// Remove implements vfs.FS.
func (f *storeFiles) Remove(name string) error {
	// The marker that takes its place must be there by then.
	if err := f.beforeMarker(name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

// beforeMarker makes everything in the directory of a marker outlive a crash
// before the marker changes.
func (f *storeFiles) beforeMarker(name string) error {
	if !strings.HasPrefix(f.PathBase(name), markerPrefix) {
		return nil
	}
	err := syncDir(f.FS, f.PathDir(name))
	if !f.own(name) {
		return err
	}
	return f.fatal(directory, err)
}

// List implements vfs.FS.
func (f *storeFiles) List(dir string) ([]string, error) {
	names, err := f.FS.List(dir)
	if !f.own(dir) {
		return names, err
	}
	return names, f.fatal(dir, err)
}

// OpenDir implements vfs.FS.
func (f *storeFiles) OpenDir(name string) (vfs.File, error) {
	dir, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	if !f.own(name) {
		return &outsideDir{File: dir, outside: f.outside.Load()}, nil
	}
	return f.wrap(directory, dir, nil)
}

const (
	// directory stands for the name of the directory. New write-ahead logs and
	// markers need it synced, and Pebble panics where that fails.
	directory   = "the directory"
	logSuffix   = ".log"
	tableSuffix = ".sst"
	// markerPrefix begins the names of the empty files by which Pebble tells
	// which of its manifests counts.
	markerPrefix = "marker."
)

// fatal holds the goroutine where an error must not come back.
func (f *storeFiles) fatal(name string, err error) error {
	if err == nil {
		return nil
	}
	var fatal bool
	switch phase := f.phase.Load(); {
	case name == directory:
		fatal = true
	case phase == phaseOpening:
		fatal = f.flushed.Load() && !strings.HasSuffix(name, tableSuffix)
	case phase == phaseOpen:
		fatal = strings.HasSuffix(name, logSuffix)
	}
	if !fatal {
		return err
	}
	f.trap.hold(fmt.Errorf("write the event store's files: %w", err))
	select {}
}

func (f *storeFiles) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, f.fatal(name, err)
	}
	return &storeFile{File: file, name: name, files: f}, nil
}

// storeFile is a file that is written, or a directory.
type storeFile struct {
	vfs.File
	name  string
	files *storeFiles
}

// Write implements vfs.File.
func (f *storeFile) Write(p []byte) (n int, err error) {
	err = f.files.withRoom(func() error {
		done, err := f.File.Write(p[n:])
		n += done
		return err
	})
	return n, f.files.fatal(f.name, err)
}

// Preallocate implements vfs.File.
func (f *storeFile) Preallocate(offset, length int64) error {
	return f.files.fatal(f.name, f.files.withRoom(func() error { return f.File.Preallocate(offset, length) }))
}

// Stat implements vfs.File.
func (f *storeFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	return info, f.files.fatal(f.name, err)
}

// Sync implements vfs.File.
func (f *storeFile) Sync() error { return f.files.fatal(f.name, f.File.Sync()) }

// SyncData implements vfs.File.
func (f *storeFile) SyncData() error { return f.files.fatal(f.name, f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f *storeFile) SyncTo(length int64) (fullSync bool, err error) {
	fullSync, err = f.File.SyncTo(length)
	return fullSync, f.files.fatal(f.name, err)
}

// Close implements vfs.File.
func (f *storeFile) Close() error { return f.files.fatal(f.name, f.File.Close()) }

// syncDir makes the names in a directory outlive a crash.
func syncDir(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
