package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tallyard/domain/fault"
)

// Trees of any shape, stopped any number of times at any file, changed in
// between or not: no file is copied twice unless it changed, and the end is the
// same as that of a copy in one go.
func TestCopyOutProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorldAt(t, t.TempDir(), t.TempDir())
		w.Store.syncAround = func(*dir) error { return nil }
		alg := filepath.Join(w.spaceDir, "alg")
		name := rapid.StringMatching(`[ab](/[ab数]){0,3}/f[0-9é]`)
		sizes := rapid.SampledFrom([]int{0, 1, 100, 64 << 10, 70_000, 200_000})
		draw := func(label string) {
			for range rapid.IntRange(1, 12).Draw(rt, label) {
				content := bytes.Repeat([]byte{byte(rapid.SampledFrom([]int{0, 'x', 'y'}).Draw(rt, "byte"))}, sizes.Draw(rt, "size"))
				w.write("alg/"+name.Draw(rt, "name"), string(content))
			}
		}
		draw("files")
		id := uuid.New()
		copied := map[string]int{}
		for range rapid.IntRange(0, 4).Draw(rt, "stops") {
			ctx, cancel := context.WithCancel(w.ctx)
			left := rapid.IntRange(1, 6).Draw(rt, "stopAfter")
			w.afterFile = func(p string) {
				copied[p]++
				if left--; left == 0 {
					cancel()
				}
			}
			_, err := w.CopyOut(ctx, w.tenant, w.space, path(t, "alg"), id, nil)
			cancel()
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "change") {
				time.Sleep(5 * time.Millisecond) // the kernel's clock for files ticks coarsely
				clear(copied)
				draw("more")
				victim := filepath.Join(alg, name.Draw(rt, "victim"))
				_ = os.RemoveAll(victim)
			}
		}
		w.afterFile = func(p string) { copied[p]++ }
		m, err := w.copyOut("alg", id)
		if fault.Is(err, fault.CodeInvalidState) { // everything was removed
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		for p, n := range copied {
			if n > 1 {
				rt.Fatalf("%s was copied %d times", p, n)
			}
		}
		again, err := w.copyOut("alg", uuid.New())
		if err != nil || again != m {
			rt.Fatalf("%+v, in one go %+v, %v", m, again, err)
		}
		if v, err := w.VerifyArtefact(w.ctx, w.tenant, id, nil); err != nil || v != m {
			rt.Fatalf("%+v %v", v, err)
		}
		equal(t, tree(t, filepath.Join(w.publishedDir, id.String())), tree(t, alg))
	})
}

// killEnv makes the test binary copy one folder and end: "<spaces>|<published>|<tenant>|<space>|<artefact>".
const killEnv = "TALLYARD_TEST_COPY"

// TestCopyHelper is the process that TestKill kills.
func TestCopyHelper(t *testing.T) {
	args := strings.Split(os.Getenv(killEnv), "|")
	if len(args) != 5 {
		t.Skip("only as a child of TestKill")
	}
	s, err := Open(Config{SpacesDir: args[0], PublishedDir: args[1]})
	check(t, err)
	s.syncAround = func(*dir) error { return nil } // what a killed program wrote is kept by the kernel
	_, err = s.CopyOut(context.Background(), uuid.MustParse(args[2]), uuid.MustParse(args[3]), path(t, "alg"), uuid.MustParse(args[4]), nil)
	check(t, errors.Join(err, s.Close()))
}

func TestKill(t *testing.T) {
	t.Run("OPS-02_killed_at_any_moment_and_continued", func(t *testing.T) {
		spaces, published := t.TempDir(), t.TempDir()
		w := newWorldAt(t, spaces, published)
		for i := range 1500 {
			w.write(fmt.Sprintf("alg/%d/%d", i%7, i), strings.Repeat("x", i))
		}
		id := uuid.New()
		exe, err := os.Executable()
		check(t, err)
		final := filepath.Join(w.publishedDir, id.String())
		kills := 0
		for wait := 20 * time.Millisecond; ; wait = wait * 13 / 10 {
			cmd := exec.Command(exe, "-test.run=^TestCopyHelper$")
			cmd.Env = append(os.Environ(), killEnv+"="+strings.Join([]string{spaces, published, w.tenant.String(), w.space.String(), id.String()}, "|"))
			check(t, cmd.Start())
			timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			timer.Stop()
			if err == nil {
				break
			}
			kills++
			if _, err := os.Lstat(final); err == nil { // killed between the rename and the end
				equal(t, tree(t, final), tree(t, w.spaceDir+"/alg"))
			}
		}
		t.Logf("killed %d times", kills)
		m, err := w.copyOut("alg", id)
		check(t, err)
		if v, err := w.VerifyArtefact(w.ctx, w.tenant, id, nil); err != nil || v != m {
			t.Fatalf("%+v %v", v, err)
		}
		equal(t, tree(t, final), tree(t, w.spaceDir+"/alg"))
		if got := names(t, w.publishedDir); len(got) != 2 {
			t.Fatalf("left %v", got)
		}
	})
}

func TestJournal(t *testing.T) {
	t.Run("OPS-02_torn_last_line", func(t *testing.T) {
		w := newWorld(t)
		for _, n := range []string{"a", "b", "c"} {
			w.write("alg/"+n, n)
		}
		id := uuid.New()
		ctx, cancel := context.WithCancel(w.ctx)
		w.afterFile = func(p string) {
			if p == "b" {
				cancel()
			}
		}
		if _, err := w.CopyOut(ctx, w.tenant, w.space, path(t, "alg"), id, nil); err == nil {
			t.Fatal("not stopped")
		}
		file := filepath.Join(w.publishedDir, id.String()+".journal")
		text, err := os.ReadFile(file)
		check(t, err)
		check(t, os.WriteFile(file, text[:len(text)-10], 0o600))
		var last Progress
		w.afterFile = nil
		_, err = w.CopyOut(w.ctx, w.tenant, w.space, path(t, "alg"), id, func(p Progress) { last = p })
		if err != nil || last.ReusedFiles != 1 || last.DoneFiles != 3 {
			t.Fatalf("%+v %v", last, err)
		}
	})

	t.Run("OPS-02_a_copied_file_that_is_lost_is_copied_again", func(t *testing.T) {
		w := newWorld(t)
		w.write("alg/a", "a")
		w.write("alg/b", "b")
		id := uuid.New()
		ctx, cancel := context.WithCancel(w.ctx)
		w.afterFile = func(string) { cancel() }
		if _, err := w.CopyOut(ctx, w.tenant, w.space, path(t, "alg"), id, nil); err == nil {
			t.Fatal("not stopped")
		}
		check(t, os.Remove(filepath.Join(w.publishedDir, id.String()+".partial", "a")))
		w.afterFile = nil
		_, err := w.copyOut("alg", id)
		check(t, err)
		equal(t, tree(t, filepath.Join(w.publishedDir, id.String())), map[string]string{"a": "a", "b": "b"})
	})

	t.Run("OPS-02_a_copied_file_that_changed_since_is_copied_again", func(t *testing.T) {
		w := newWorld(t)
		w.write("alg/a", "old")
		w.write("alg/b", "b")
		id := uuid.New()
		ctx, cancel := context.WithCancel(w.ctx)
		w.afterFile = func(string) { cancel() }
		if _, err := w.CopyOut(ctx, w.tenant, w.space, path(t, "alg"), id, nil); err == nil {
			t.Fatal("not stopped")
		}
		w.afterFile = nil
		at := filepath.Join(w.spaceDir, "alg/a")
		info, err := os.Stat(at)
		check(t, err)
		time.Sleep(10 * time.Millisecond)                        // the kernel's clock for files ticks coarsely
		check(t, os.WriteFile(at, []byte("new"), 0))             // of the same size
		check(t, os.Chtimes(at, info.ModTime(), info.ModTime())) // and, it says, of the same time
		_, err = w.copyOut("alg", id)
		check(t, err)
		equal(t, tree(t, filepath.Join(w.publishedDir, id.String())), map[string]string{"a": "new", "b": "b"})
	})

	t.Run("OPS-02_one_copy_at_a_time", func(t *testing.T) {
		w := newWorld(t)
		w.write("alg/a", "a")
		id := uuid.New()
		inside, leave := make(chan struct{}), make(chan struct{})
		w.afterFile = func(string) { close(inside); <-leave }
		done := make(chan error)
		go func() {
			_, err := w.copyOut("alg", id)
			done <- err
		}()
		<-inside
		_, err := w.copyOut("alg", id)
		w.wantFault(err, fault.CodeConflict, "under way")
		w.wantFault(w.DiscardPartial(w.ctx, w.tenant, id), fault.CodeConflict)
		_, err = w.RemoveArtefact(w.ctx, w.tenant, id, nil)
		w.wantFault(err, fault.CodeConflict)
		close(leave)
		check(t, <-done)
	})
}

func TestDiscardAndRemove(t *testing.T) {
	t.Run("OPS-02_cancel_leaves_nothing_behind", func(t *testing.T) {
		w := newWorld(t)
		for _, n := range []string{"a", "d/b", "d/c"} {
			w.write("alg/"+n, n)
		}
		id := uuid.New()
		ctx, cancel := context.WithCancel(w.ctx)
		w.afterFile = func(p string) {
			if p == "d/b" {
				cancel()
			}
		}
		if _, err := w.CopyOut(ctx, w.tenant, w.space, path(t, "alg"), id, nil); err == nil {
			t.Fatal("not stopped")
		}
		for range 2 {
			check(t, w.DiscardPartial(w.ctx, w.tenant, id))
			if left := names(t, w.publishedDir); len(left) != 0 {
				t.Fatal(left)
			}
		}
		check(t, w.DiscardPartial(w.ctx, uuid.New(), id))
	})

	t.Run("OPS-02_discard_keeps_what_is_complete", func(t *testing.T) {
		w := newWorld(t)
		w.write("alg/a", "a")
		id := uuid.New()
		m, err := w.copyOut("alg", id)
		check(t, err)
		check(t, w.DiscardPartial(w.ctx, w.tenant, id))
		if v, err := w.VerifyArtefact(w.ctx, w.tenant, id, nil); err != nil || v != m {
			t.Fatalf("%+v %v", v, err)
		}
	})

	t.Run("ALG-08_removed_artefact_is_gone_and_removing_goes_on", func(t *testing.T) {
		w := newWorld(t)
		for i := range 30 {
			w.write(fmt.Sprintf("alg/%d/f", i), "x")
		}
		id := uuid.New()
		_, err := w.copyOut("alg", id)
		check(t, err)
		ctx, cancel := context.WithCancel(w.ctx)
		if _, err := w.RemoveArtefact(ctx, w.tenant, id, func(Progress) { cancel() }); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		_, _, err = w.OpenArtefact(w.ctx, w.tenant, id, path(t, "1/f"))
		w.wantFault(err, fault.CodeNotFound)
		got, err := w.RemoveArtefact(w.ctx, w.tenant, id, nil)
		if err != nil || got.DoneFiles != 59 || got.DoneBytes != 29 {
			t.Fatalf("%+v %v", got, err)
		}
		if got, err = w.RemoveArtefact(w.ctx, w.tenant, id, nil); err != nil || got.DoneFiles != 0 {
			t.Fatalf("%+v %v", got, err)
		}
		if left := names(t, w.publishedDir); len(left) != 0 {
			t.Fatal(left)
		}
	})

	t.Run("ALG-07_published_files_are_read_and_listed", func(t *testing.T) {
		w := newWorld(t)
		w.write("alg/d/a.py", "x")
		id := uuid.New()
		m, err := w.copyOut("alg", id)
		check(t, err)
		if got, err := w.ArtefactManifest(w.ctx, w.tenant, id); err != nil || got != m {
			t.Fatalf("%+v %v", got, err)
		}
		page, err := w.ListArtefact(w.ctx, w.tenant, id, path(t, "d"), "", 10)
		if err != nil || len(page.Entries) != 1 || page.Entries[0].Path.String() != "d/a.py" {
			t.Fatalf("%+v %v", page, err)
		}
		f, info, err := w.OpenArtefact(w.ctx, w.tenant, id, path(t, "d/a.py"))
		if err != nil || info.Size() != 1 {
			t.Fatal(err)
		}
		check(t, f.Close())
		_, _, err = w.OpenArtefact(w.ctx, uuid.New(), id, path(t, "d/a.py"))
		w.wantFault(err, fault.CodeNotFound)
	})
}

func TestSweep(t *testing.T) {
	w := newWorld(t)
	if _, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "half"), 0, 2, strings.NewReader("x"), nil); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Sweep(w.ctx, w.tenant, w.space, time.Now().Add(-time.Hour)); err != nil || n != 0 {
		t.Fatalf("%d %v", n, err)
	}
	if n, err := w.Sweep(w.ctx, w.tenant, w.space, time.Now().Add(time.Hour)); err != nil || n != 2 {
		t.Fatalf("%d %v", n, err)
	}
	if _, _, err := w.Received(w.ctx, w.tenant, w.space, path(t, "half")); !fault.Is(err, fault.CodeNotFound) {
		t.Fatal(err)
	}
}
