package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/fault"
)

// cachedWorld is a world with a cache of the folder "data".
type cachedWorld struct {
	*world
	dataSet  uuid.UUID
	cacheDir string
}

func newCachedWorld(t testing.TB) *cachedWorld {
	t.Helper()
	spaces, caches := t.TempDir(), t.TempDir()
	s, err := Open(Config{SpacesDir: spaces, PublishedDir: t.TempDir(), CacheDir: caches})
	if err != nil {
		t.Fatal(err)
	}
	w := &cachedWorld{world: &world{Store: s, t: t, ctx: context.Background(), tenant: uuid.New(), space: uuid.New()}, dataSet: uuid.New()}
	w.spaceDir = filepath.Join(spaces, w.tenant.String(), w.space.String())
	w.cacheDir = filepath.Join(caches, w.tenant.String(), w.dataSet.String())
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		openUp(spaces)
		openUp(caches)
	})
	if err := s.EnsureSpace(w.ctx, w.tenant, w.space); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *cachedWorld) fill() (files, reused int64) {
	w.t.Helper()
	var last Progress
	files, _, err := w.FillCache(w.ctx, w.tenant, w.dataSet, w.space, path(w.t, "data"), func(p Progress) { last = p })
	if err != nil {
		w.t.Fatal(err)
	}
	return files, last.ReusedFiles
}

func (w *cachedWorld) unpack() error {
	_, err := w.UnpackCache(w.ctx, w.tenant, w.dataSet, uuid.New(), nil)
	return err
}

func TestCache(t *testing.T) {
	t.Run("STO-04_only_what_changed_is_copied_again", func(t *testing.T) {
		w := newCachedWorld(t)
		for i := range 20 {
			w.write(fmt.Sprintf("data/d%d/f%d", i%3, i), fmt.Sprint("content ", i))
		}
		if n, reused := w.fill(); n != 20 || reused != 0 {
			t.Fatal(n, reused)
		}
		equal(t, tree(t, w.cacheDir), tree(t, filepath.Join(w.spaceDir, "data")))
		w.write("data/d0/f0", "changed")
		w.write("data/new", "new")
		if err := os.Remove(filepath.Join(w.spaceDir, "data/d1/f1")); err != nil {
			t.Fatal(err)
		}
		if n, reused := w.fill(); n != 20 || reused != 18 {
			t.Fatalf("%d files, %d taken over", n, reused)
		}
		equal(t, tree(t, w.cacheDir), tree(t, filepath.Join(w.spaceDir, "data")))
		if n, reused := w.fill(); n != 20 || reused != 20 {
			t.Fatalf("%d files, %d taken over", n, reused)
		}
	})
	t.Run("OPS-02_a_fill_that_was_stopped_goes_on", func(t *testing.T) {
		w := newCachedWorld(t)
		for i := range 30 {
			w.write(fmt.Sprintf("data/f%02d", i), "x")
		}
		ctx, cancel := context.WithCancel(w.ctx)
		done := 0
		w.afterFile = func(string) {
			if done++; done == 12 {
				cancel()
			}
		}
		if _, _, err := w.FillCache(ctx, w.tenant, w.dataSet, w.space, path(t, "data"), nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := os.Stat(w.cacheDir); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal("half a cache can be used")
		}
		w.afterFile = nil
		if n, reused := w.fill(); n != 30 || reused != 12 {
			t.Errorf("%d files, %d taken over", n, reused)
		}
	})
	t.Run("OPS-02_cleared_nothing_is_left", func(t *testing.T) {
		w := newCachedWorld(t)
		w.write("data/a.tar", string(tarOf(t, map[string]string{"x": "1"})))
		w.fill()
		if err := w.unpack(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := w.ClearCache(w.ctx, w.tenant, w.dataSet, nil); err != nil {
				t.Fatal(err)
			}
		}
		if left := names(t, filepath.Dir(w.cacheDir)); len(left) != 0 {
			t.Error(left)
		}
	})
	t.Run("STO-04_a_link_is_refused_and_a_missing_folder_told", func(t *testing.T) {
		w := newCachedWorld(t)
		if _, _, err := w.FillCache(w.ctx, w.tenant, w.dataSet, w.space, path(t, "data"), nil); !errors.Is(err, ErrSourceGone) {
			t.Fatal(err)
		}
		w.write("data/f", "x")
		if err := os.Symlink("/etc/passwd", filepath.Join(w.spaceDir, "data/link")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.FillCache(w.ctx, w.tenant, w.dataSet, w.space, path(t, "data"), nil); !fault.Is(err, fault.CodeInvalidState) {
			t.Fatal(err)
		}
	})
}
