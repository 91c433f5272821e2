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

func TestCopyOut(t *testing.T) {
	t.Run("ALG-05_copy_is_read_only_and_fingerprinted", func(t *testing.T) {
		w := newWorld(t)
		w.put("alg/train.py", "print('hi')\n")
		w.put("alg/lib/a/b.txt", "b")
		w.put("alg/run.sh", "#!/bin/sh\n")
		if err := os.Chmod(filepath.Join(w.spaceDir, "alg/run.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := w.MakeDir(w.ctx, w.tenant, w.space, path(t, "alg/empty")); err != nil {
			t.Fatal(err)
		}
		id := uuid.New()
		var last Progress
		m, err := w.CopyOut(w.ctx, w.tenant, w.space, path(t, "alg"), id, func(p Progress) { last = p })
		if err != nil {
			t.Fatal(err)
		}
		if m.Files != 3 || m.Bytes != 12+1+10 || last.DoneFiles != 3 || last.TotalFiles != 3 || last.DoneBytes != m.Bytes || last.TotalBytes != m.Bytes {
			t.Fatalf("%+v %+v", m, last)
		}
		text := "tallyard-manifest-v1\n" +
			"- 0 d empty\n" +
			shaHex("b") + " 1 - lib/a/b.txt\n" +
			shaHex("#!/bin/sh\n") + " 10 x run.sh\n" +
			shaHex("print('hi')\n") + " 12 - train.py\n"
		if m.Fingerprint != shaHex(text) {
			t.Fatalf("fingerprint %s isn't that of\n%s", m.Fingerprint, text)
		}
		dir := filepath.Join(w.publishedDir, id.String())
		equal(t, tree(t, dir), map[string]string{"train.py": "print('hi')\n", "lib/a/b.txt": "b", "run.sh": "#!/bin/sh\n", "empty": "DIR"})
		for name, mode := range map[string]os.FileMode{".": 0o555, "lib/a": 0o555, "train.py": 0o444, "run.sh": 0o555} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v %v", name, info.Mode(), err)
			}
		}
		if got := names(t, w.publishedDir); len(got) != 2 { // artefact and manifest
			t.Errorf("left behind: %v", got)
		}
		again, err := w.copyOut("alg", id)
		if err != nil || again != m {
			t.Fatalf("again: %+v %v", again, err)
		}
		if v, err := w.VerifyArtefact(w.ctx, w.tenant, id, nil); err != nil || v != m {
			t.Fatalf("verify: %+v %v", v, err)
		}
	})

	t.Run("OPS-02_retry_does_not_repeat", func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"a", "b", "c", "d/e", "d/f"} {
			w.put("alg/"+name, "content of "+name)
		}
		id := uuid.New()
		ctx, cancel := context.WithCancel(w.ctx)
		var copied []string
		w.afterFile = func(p string) {
			copied = append(copied, p)
			if p == "c" {
				cancel()
			}
		}
		if _, err := w.CopyOut(ctx, w.tenant, w.space, path(t, "alg"), id, nil); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(w.publishedDir, id.String())); !errors.Is(err, os.ErrNotExist) {
			t.Fatal("a half copy is visible")
		}
		var last Progress
		if _, err := w.CopyOut(w.ctx, w.tenant, w.space, path(t, "alg"), id, func(p Progress) { last = p }); err != nil {
			t.Fatal(err)
		}
		if len(copied) != 5 || last.ReusedFiles != 3 || last.DoneFiles != 5 {
			t.Fatalf("copied %v, %+v", copied, last)
		}
	})

	t.Run("ALG-11_source_removed_then_put_back", func(t *testing.T) {
		w := newWorld(t)
		w.put("alg/a", "1")
		w.put("alg/b", "2")
		id := uuid.New()
		w.afterFile = func(string) { _ = os.RemoveAll(filepath.Join(w.spaceDir, "alg")) }
		_, err := w.copyOut("alg", id)
		if !errors.Is(err, ErrSourceGone) {
			t.Fatal(err)
		}
		w.wantFault(err, fault.CodeInvalidState, `"alg"`)
		w.afterFile = nil
		if _, err = w.copyOut("alg", id); !errors.Is(err, ErrSourceGone) {
			t.Fatal(err)
		}
		w.put("alg/a", "1")
		w.put("alg/b", "2")
		if _, err = w.copyOut("alg", id); err != nil {
			t.Fatal(err)
		}
	})
}
