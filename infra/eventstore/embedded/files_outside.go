package embedded

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A backup is written by Pebble, through the same file system as the store. What
// goes wrong there concerns the backup alone: its errors go back to whoever asked
// for it, a full disk over there is not waited for, and nobody is held.

// own tells whether a file lies in the store's own directory.
func (f *storeFiles) own(name string) bool {
	name, dir := f.PathJoin(name), f.PathJoin(f.dir) // both in their shortest form
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// outside is a call of Pebble that writes outside of the store's directory.
type outside struct {
	ctx context.Context
	mu  sync.Mutex
	err error
}

// beginOutside lets a call of Pebble write outside until end, which tells what
// went wrong there. One at a time may, which the turns of upkeep see to.
func (f *storeFiles) beginOutside(ctx context.Context) (end func() error) {
	o := &outside{ctx: ctx}
	f.outside.Store(o)
	return func() error {
		f.outside.Store(nil)
		return o.cause()
	}
}

// cause is why nothing more may be written, nil if it may.
func (o *outside) cause() error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(o.err, context.Cause(o.ctx))
}

// fail lets nothing more be written.
func (o *outside) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.Join(o.err, err)
}

// write does a write outside of the store's directory.
func (o *outside) write(write func() error) error {
	if err := o.cause(); err != nil {
		return err
	}
	return write()
}

// create makes a file outside of the store's directory.
func (o *outside) create(create func() (vfs.File, error)) (file vfs.File, err error) {
	err = o.write(func() error {
		file, err = create()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &outsideFile{File: file, outside: o}, nil
}

// outsideFile is a file outside of the store's directory that is written.
type outsideFile struct {
	vfs.File
	outside *outside
}

// Write implements vfs.File.
func (f *outsideFile) Write(p []byte) (n int, err error) {
	err = f.outside.write(func() error {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

// outsideDir is a directory outside of the store's. Where one can't be synced
// Pebble panics, so it learns of that with the next thing that it writes.
type outsideDir struct {
	vfs.File
	outside *outside
}

// Sync implements vfs.File.
func (d *outsideDir) Sync() error {
	err := d.File.Sync()
	if err != nil && d.outside != nil {
		d.outside.fail(err)
		return nil
	}
	return err
}
