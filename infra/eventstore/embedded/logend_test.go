package embedded

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Damage that Pebble takes for a write that a crash cut off, and goes on
// without, is noticed by the note of where the log ended.
func TestLogEnd(t *testing.T) {
	prepare := func(t *testing.T) (*vfs.MemFS, []event) {
		fs := newMemFS(t)
		s := newTestStore(t, memOptions(fs))
		put(t, s, "s", expectation{}, 1)
		put(t, s, "s", expectation{}, 2)
		log := whole(t, s)
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		return fs, log
	}
	change := func(t *testing.T, fs *vfs.MemFS, f func(*pebble.DB) error) {
		t.Helper()
		opt := memOptions(fs)
		db, err := pebble.Open(memDir, &pebble.Options{FS: opt.fs, Logger: newFatalTrap(discard()), FormatMajorVersion: pebble.FormatValueSeparation})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f(db), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(t *testing.T, fs *vfs.MemFS, text string) {
		t.Helper()
		s, err := openStore(context.Background(), memOptions(fs))
		if err == nil {
			abandon(t, s)
			t.Fatal("opened")
		}
		if !strings.Contains(err.Error(), text) {
			t.Fatal(err)
		}
	}
	t.Run("an end that was safe and is gone is refused", func(t *testing.T) {
		fs, log := prepare(t)
		change(t, fs, func(db *pebble.DB) error { return db.Delete(eventKey(log[2].position), pebble.Sync) })
		refused(t, fs, "acknowledged events are lost")
		rep, err := verifyDir(context.Background(), memOptions(fs), nil)
		if err != nil || rep.Damaged == 0 {
			t.Fatalf("%+v, %v", rep, err)
		}
		// The operator's way out.
		if err := fs.Remove(fs.PathJoin(memDir, logEndFile)); err != nil {
			t.Fatal(err)
		}
		s := newTestStore(t, memOptions(fs))
		defer abandon(t, s)
		if got := whole(t, s); len(got) != 2 {
			t.Fatalf("%d events", len(got))
		}
	})
	t.Run("a damaged end that was safe is not cut off", func(t *testing.T) {
		fs, log := prepare(t)
		change(t, fs, func(db *pebble.DB) error { return db.Set(eventKey(log[2].position), []byte("torn"), pebble.Sync) })
		refused(t, fs, "acknowledged events are lost")
	})
	t.Run("an empty store where one was is refused", func(t *testing.T) {
		fs, _ := prepare(t)
		change(t, fs, func(db *pebble.DB) error { return db.DeleteRange([]byte{0}, []byte{0xff}, pebble.Sync) })
		refused(t, fs, "acknowledged events are lost")
	})
	t.Run("a hole near the end is refused", func(t *testing.T) {
		fs, log := prepare(t)
		change(t, fs, func(db *pebble.DB) error { return db.Delete(eventKey(log[1].position), pebble.Sync) })
		refused(t, fs, "hole")
	})
	t.Run("a note that is cut off leaves the one before", func(t *testing.T) {
		fs, log := prepare(t)
		f, err := fs.OpenReadWrite(fs.PathJoin(memDir, logEndFile), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("half"), logEndSlot); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := readLogEnd(fs, memDir); err != nil || got != log[2].position {
			t.Fatal(got, err)
		}
	})
	t.Run("nothing noted", func(t *testing.T) {
		if got, err := readLogEnd(newMemFS(t), memDir); err != nil || got != 0 {
			t.Fatal(got, err)
		}
	})
}
