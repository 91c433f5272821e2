package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
)

func (w *world) directory(name string) string {
	w.t.Helper()
	id, err := w.Directory(w.ctx, w.tenant, w.space, path(w.t, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) removeDirectory(name, identity string, id uuid.UUID) Progress {
	w.t.Helper()
	p, err := w.RemoveDirectory(w.ctx, w.tenant, w.space, path(w.t, name), identity, id, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func TestRemoveDirectory(t *testing.T) {
	t.Run("OPS-01_with_everything_in_it", func(t *testing.T) {
		w := newWorld(t)
		w.write("d/a", "12")
		w.write("d/b/c", "345")
		w.write("stays", "x")
		if got := w.removeDirectory("d", w.directory("d"), uuid.New()); got.DoneFiles != 4 || got.DoneBytes != 5 {
			t.Errorf("%+v", got)
		}
		equal(t, tree(t, w.spaceDir), map[string]string{"stays": "x"})
		if left := w.trash(); len(left) != 0 {
			t.Error(left)
		}
	})
	t.Run("OPS-02_one_that_came_to_the_same_path_later_stays", func(t *testing.T) {
		w := newWorld(t)
		// A number of an inode is used again at once on many file systems.
		for range 20 {
			w.write("d/old", "1")
			was := w.directory("d")
			if err := os.RemoveAll(filepath.Join(w.spaceDir, "d")); err != nil {
				t.Fatal(err)
			}
			w.write("d/new", "2")
			if is := w.directory("d"); is == was {
				t.Fatalf("two directories are %s", is)
			}
			if got := w.removeDirectory("d", was, uuid.New()); got.DoneFiles != 0 {
				t.Fatalf("%+v", got)
			}
			equal(t, tree(t, w.spaceDir), map[string]string{"d/new": "2"})
			w.removeDirectory("d", w.directory("d"), uuid.New())
		}
	})
	t.Run("OPS-02_what_was_moved_away_before_a_crash_is_freed", func(t *testing.T) {
		w := newWorld(t)
		id := uuid.New()
		w.write(".tallyard/trash/"+id.String()+".x/a", "123")
		w.write("d/new", "2")
		if got := w.removeDirectory("d", "gone", id); got.DoneFiles != 2 || got.DoneBytes != 3 {
			t.Errorf("%+v", got)
		}
		equal(t, tree(t, w.spaceDir), map[string]string{"d/new": "2"})
	})
	t.Run("STO-01_files_and_links_are_no_directories", func(t *testing.T) {
		w := newWorld(t)
		w.write("f", "1")
		w.write("d/f", "1")
		if err := os.Symlink("d", filepath.Join(w.spaceDir, "link")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"f", "link", "none", "f/below", "link/f"} {
			if id := w.directory(name); id != "" {
				t.Errorf("%s is directory %s", name, id)
			}
		}
		w.removeDirectory("link", w.directory("d"), uuid.New())
		if _, err := os.Lstat(filepath.Join(w.spaceDir, "link")); err != nil || w.get("d/f") != "1" {
			t.Error("a link was followed or removed: ", err)
		}
	})
}
