package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func (w *world) delete(name string) (Progress, error) {
	w.t.Helper()
	return w.Delete(w.ctx, w.tenant, w.space, path(w.t, name), nil)
}

func (w *world) trash() []string {
	w.t.Helper()
	return names(w.t, filepath.Join(w.spaceDir, ".tallyard/trash"))
}

func TestDelete(t *testing.T) {
	t.Run("STO-02_folder_with_everything_in_it", func(t *testing.T) {
		w := newWorld(t)
		outside := filepath.Join(t.TempDir(), "outside")
		if err := os.WriteFile(outside, []byte("stays"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.write("d/a", "12")
		w.write("d/b/c", "345")
		w.write("d/bad\xff/x", "6")
		w.write("stays", "x")
		if err := errors.Join(
			os.Symlink(outside, filepath.Join(w.spaceDir, "d/link")),
			os.Symlink(filepath.Dir(outside), filepath.Join(w.spaceDir, "d/dirlink")),
			unix.Mkfifo(filepath.Join(w.spaceDir, "d/fifo"), 0o600),
			os.Mkdir(filepath.Join(w.spaceDir, "d/closed"), 0),
		); err != nil {
			t.Fatal(err)
		}
		got, err := w.delete("d")
		if err != nil || got.DoneFiles != 10 || got.TotalFiles != 10 || got.DoneBytes != 6 || got.TotalBytes != 6 {
			t.Fatalf("%+v %v", got, err)
		}
		equal(t, tree(t, w.spaceDir), map[string]string{"stays": "x"})
		if b, err := os.ReadFile(outside); err != nil || string(b) != "stays" {
			t.Fatal("a link was followed")
		}
		if left := w.trash(); len(left) != 0 {
			t.Fatal(left)
		}
	})

	t.Run("OPS-02_again_is_no_error_and_does_nothing", func(t *testing.T) {
		w := newWorld(t)
		w.write("f", "x")
		for i := range 3 {
			got, err := w.delete("f")
			if err != nil || (got.DoneFiles == 1) != (i == 0) {
				t.Fatalf("%+v %v", got, err)
			}
		}
		if _, err := w.delete("no/such/folder"); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("STO-01_a_link_goes_itself", func(t *testing.T) {
		w := newWorld(t)
		w.write("f/x", "x")
		_ = os.Symlink("f", filepath.Join(w.spaceDir, "link"))
		if _, err := w.delete("link"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.delete("link/x"); err != nil { // not there: nothing is done
			t.Fatal(err)
		}
		equal(t, tree(t, w.spaceDir), map[string]string{"f/x": "x"})
	})

	t.Run("OPS-02_cancelled_deletion_is_out_of_sight_and_is_finished_later", func(t *testing.T) {
		w := newWorld(t)
		for i := range 50 {
			w.write(fmt.Sprintf("d/%d", i), "x")
		}
		ctx, cancel := context.WithCancel(w.ctx)
		got, err := w.Delete(ctx, w.tenant, w.space, path(t, "d"), func(p Progress) {
			if p.DoneFiles == 20 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || got.DoneFiles != 20 {
			t.Fatalf("%+v %v", got, err)
		}
		if len(tree(t, w.spaceDir)) != 0 {
			t.Fatal("half a folder is visible")
		}
		w.write("d/new", "of the same name since")
		if got, err = w.delete("d"); err != nil || got.DoneFiles != 31+2 || len(w.trash()) != 0 {
			t.Fatalf("%+v %v %v", got, err, w.trash())
		}
	})

	t.Run("STO-01_depth_that_no_path_reaches", func(t *testing.T) {
		w := newWorld(t)
		const depth = 1500
		makeDeep(t, filepath.Join(w.spaceDir, "deep"), depth)
		var before, after unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		after = before
		after.Cur = 200 // fewer open files than levels
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &after); err != nil {
			t.Fatal(err)
		}
		got, err := w.delete("deep")
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		if err != nil || got.DoneFiles != depth || len(w.trash()) != 0 {
			t.Fatalf("%+v %v", got, err)
		}
	})
}

// makeDeep makes folders inside each other, deeper than the kernel takes as one path.
func makeDeep(t testing.TB, at string, depth int) {
	t.Helper()
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := os.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	for range depth - 1 {
		if err := d.Mkdir("d", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := d.OpenRoot("d")
		if err != nil {
			t.Fatal(err)
		}
		_ = d.Close()
		d = next
	}
	_ = d.Close()
}
