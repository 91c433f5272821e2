package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/fault"
)

func TestCopyIn(t *testing.T) {
	published := func(t *testing.T) (*world, uuid.UUID, Manifest) {
		t.Helper()
		w := newWorld(t)
		w.put("alg/train.py", "x")
		w.put("alg/lib/b", "y")
		w.put("alg/lib/run", "z")
		if err := os.Chmod(filepath.Join(w.spaceDir, "alg/lib/run"), 0o755); err != nil {
			t.Fatal(err)
		}
		id := uuid.New()
		m, err := w.copyOut("alg", id)
		if err != nil {
			t.Fatal(err)
		}
		return w, id, m
	}
	want := map[string]string{"train.py": "x", "lib/b": "y", "lib/run": "z"}

	t.Run("ALG-03_published_folder_comes_into_the_space", func(t *testing.T) {
		w, artefact, m := published(t)
		got, err := w.CopyIn(w.ctx, w.tenant, artefact, w.space, path(t, "mine/name_1"), uuid.New(), nil)
		if err != nil || got != m {
			t.Fatalf("%+v %v", got, err)
		}
		equal(t, tree(t, filepath.Join(w.spaceDir, "mine/name_1")), want)
		info, err := os.Stat(filepath.Join(w.spaceDir, "mine/name_1/lib/run"))
		if err != nil || info.Mode().Perm() != programMode {
			t.Fatalf("%v %v", info.Mode(), err)
		}
		w.put("mine/name_1/lib/new", "writable")
	})

	t.Run("ALG-03_existing_folder_is_not_touched", func(t *testing.T) {
		w, artefact, _ := published(t)
		w.put("mine/own.py", "own")
		_, err := w.CopyIn(w.ctx, w.tenant, artefact, w.space, path(t, "mine"), uuid.New(), nil)
		w.wantFault(err, fault.CodeNameTaken, "mine")
		equal(t, tree(t, filepath.Join(w.spaceDir, "mine")), map[string]string{"own.py": "own"})
	})

	t.Run("OPS-02_retry_does_not_repeat_and_a_finished_one_is_known", func(t *testing.T) {
		w, artefact, m := published(t)
		id := uuid.New()
		ctx, cancel := context.WithCancel(w.ctx)
		n := 0
		w.afterFile = func(string) { n++; cancel() }
		if _, err := w.CopyIn(ctx, w.tenant, artefact, w.space, path(t, "mine"), id, nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for range 2 {
			got, err := w.CopyIn(w.ctx, w.tenant, artefact, w.space, path(t, "mine"), id, nil)
			if err != nil || got != m || n != 3 {
				t.Fatalf("%+v %d %v", got, n, err)
			}
		}
		_, err := w.CopyIn(w.ctx, w.tenant, artefact, w.space, path(t, "mine"), uuid.New(), nil)
		w.wantFault(err, fault.CodeNameTaken)
	})

	t.Run("OPS-02_cancel_leaves_nothing_behind", func(t *testing.T) {
		w, artefact, _ := published(t)
		id := uuid.New()
		ctx, cancel := context.WithCancel(w.ctx)
		w.afterFile = func(string) { cancel() }
		if _, err := w.CopyIn(ctx, w.tenant, artefact, w.space, path(t, "mine"), id, nil); err == nil {
			t.Fatal("not cancelled")
		}
		if err := w.DiscardCopyIn(w.ctx, w.tenant, w.space, id); err != nil {
			t.Fatal(err)
		}
		if left := names(t, filepath.Join(w.spaceDir, ".tallyard/copies")); len(left) != 0 {
			t.Fatal(left)
		}
	})

	t.Run("ALG-05_changed_published_files_are_not_handed_out", func(t *testing.T) {
		w, artefact, _ := published(t)
		file := filepath.Join(w.publishedDir, artefact.String(), "train.py")
		if err := errors.Join(os.Chmod(file, 0o644), os.WriteFile(file, []byte("evil"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.CopyIn(w.ctx, w.tenant, artefact, w.space, path(t, "mine"), uuid.New(), nil); !errors.Is(err, ErrArtefactChanged) {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(w.spaceDir, "mine")); !errors.Is(err, os.ErrNotExist) {
			t.Fatal("it was handed out")
		}
		if _, err := w.VerifyArtefact(w.ctx, w.tenant, artefact, nil); !errors.Is(err, ErrArtefactChanged) {
			t.Fatal(err)
		}
	})
}
