package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store in a temporary directory with one space.
type world struct {
	*Store
	t             testing.TB
	ctx           context.Context
	tenant, space uuid.UUID
	spaceDir      string // the space on disk
	publishedDir  string // the tenant's artefacts on disk
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldAt(t, t.TempDir(), t.TempDir())
}

func newWorldAt(t testing.TB, spaces, published string) *world {
	t.Helper()
	s, err := Open(Config{SpacesDir: spaces, PublishedDir: published})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Store: s, t: t, ctx: context.Background(), tenant: uuid.New(), space: uuid.New()}
	w.spaceDir = filepath.Join(spaces, w.tenant.String(), w.space.String())
	w.publishedDir = filepath.Join(published, w.tenant.String())
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		openUp(spaces)
		openUp(published)
	})
	if err := s.EnsureSpace(w.ctx, w.tenant, w.space); err != nil {
		t.Fatal(err)
	}
	return w
}

// openUp lets an ordinary user remove read-only folders.
func openUp(root string) {
	_ = filepath.WalkDir(root, func(p string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
}

func path(t testing.TB, text string) storage.Path {
	t.Helper()
	p, f := storage.ParseFolder(text)
	if f != nil {
		t.Fatalf("%q: %v", text, f)
	}
	return p
}

// write puts a file into the space behind the store's back, as a workload would.
func (w *world) write(name, content string) {
	w.t.Helper()
	file := filepath.Join(w.spaceDir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(name, content string) {
	w.t.Helper()
	n, sum, _, err := w.Receive(w.ctx, w.tenant, w.space, path(w.t, name), 0, int64(len(content)), strings.NewReader(content), nil)
	if err != nil || n != int64(len(content)) || sum == nil {
		w.t.Fatalf("put %s: %d %x %v", name, n, sum, err)
	}
}

func (w *world) get(name string) string {
	w.t.Helper()
	f, info, err := w.OpenRead(w.ctx, w.tenant, w.space, path(w.t, name))
	if err != nil {
		w.t.Fatalf("get %s: %v", name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil || int64(len(b)) != info.Size() {
		w.t.Fatalf("get %s: %d of %d: %v", name, len(b), info.Size(), err)
	}
	return string(b)
}

func (w *world) copyOut(folder string, artefact uuid.UUID) (Manifest, error) {
	w.t.Helper()
	return w.CopyOut(w.ctx, w.tenant, w.space, path(w.t, folder), artefact, nil)
}

// tree is what a directory holds: path → content, "DIR" for empty folders.
func tree(t testing.TB, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		if rel == storage.ReservedName {
			return fs.SkipDir
		}
		if e.IsDir() {
			kids, err := os.ReadDir(p)
			if len(kids) == 0 {
				found[rel] = "DIR"
			}
			return err
		}
		b, err := os.ReadFile(p)
		found[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// names lists a directory on disk.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// wantFault checks that the error is for people: code, a sentence, no path of this machine.
func (w *world) wantFault(err error, code fault.Code, mentions ...string) {
	w.t.Helper()
	faults, ok := fault.All(err)
	if !ok || faults[0].Code != code {
		w.t.Fatalf("got %v; want a fault %s", err, code)
	}
	msg := faults[0].Message
	if !strings.HasSuffix(msg, ".") || strings.Contains(msg, w.spaceDir) || strings.Contains(msg, os.TempDir()) {
		w.t.Fatalf("message %q", msg)
	}
	for _, m := range mentions {
		if !strings.Contains(msg, m) {
			w.t.Fatalf("message %q doesn't mention %q", msg, m)
		}
	}
}

func shaHex(b string) string {
	sum := sha256.Sum256([]byte(b))
	return hex.EncodeToString(sum[:])
}

func equal(t testing.TB, got, want map[string]string) {
	t.Helper()
	for p, c := range want {
		if g, ok := got[p]; !ok || !bytes.Equal([]byte(g), []byte(c)) {
			t.Errorf("%s: got %.40q (%v), want %.40q", p, g, ok, c)
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s is too much", p)
		}
	}
}
