package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// files checks the checksum of every block of every table, read from disk and
// not from the cache.
func (v *verifier) files() error {
	levels, err := v.store.db.SSTables()
	if err != nil {
		return fmt.Errorf("list the store's tables: %w", err)
	}
	options := v.store.pebbleOptions()
	options.EnsureDefaults()
	var names []string
	seen := map[string]bool{}
	for _, tables := range levels {
		for _, t := range tables {
			// Several virtual tables may share one file.
			if name := t.BackingSSTNum.String() + ".sst"; !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	for i, name := range names {
		if v.report != nil {
			v.report(VerifyProgress{Step: "files", Done: uint64(i), Total: uint64(len(names))})
		}
		if err := context.Cause(v.ctx); err != nil {
			return err
		}
		err := checkTable(v.ctx, v.store.opt.fs, v.store.opt.fs.PathJoin(v.store.opt.dir, name), options)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			// Compacted into others meanwhile; the log is read through those.
			continue
		case err != nil:
			v.damage("file "+name, "%v", err)
			v.unsound = true
		}
		v.rep.Files++
	}
	return nil
}

// checkTable reads a whole table and compares the checksums of its blocks.
func checkTable(ctx context.Context, files vfs.FS, path string, options *pebble.Options) (err error) {
	f, err := files.Open(path)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(ctx, readable, options.MakeReaderOptions())
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.ValidateBlockChecksums()
}
