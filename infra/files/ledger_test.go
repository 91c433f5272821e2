package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/fault"
)

// book is a ledger of one space with a limit.
type book struct {
	w     *world
	mu    sync.Mutex
	holds int64
	limit int64
	most  int64 // that was ever held
}

func (b *book) add(bytes int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes > 0 && b.holds+bytes > b.limit {
		return fault.New(fault.Quota, fault.CodeQuotaExceeded, "Full.")
	}
	b.holds += bytes
	b.most = max(b.most, b.holds)
	return nil
}

func (b *book) Room(_ context.Context, _, _ uuid.UUID, bytes int64) error {
	if err := b.add(bytes); err != nil {
		return err
	}
	return b.add(-bytes)
}

func (b *book) Charge(_ context.Context, _, _ uuid.UUID, bytes int64) error { return b.add(bytes) }
func (b *book) Return(_ context.Context, _, _ uuid.UUID, bytes int64) error { return b.add(-bytes) }

func (b *book) Recount(ctx context.Context, tenant, space uuid.UUID) error {
	n, err := b.w.Measure(ctx, tenant, space)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds = n
	return err
}

// right compares the book with a count of everything.
func (b *book) right(t *testing.T) {
	t.Helper()
	n, err := b.w.Measure(b.w.ctx, b.w.tenant, b.w.space)
	if err != nil || n != b.holds {
		t.Fatalf("the book says %d, the space holds %d (%v)", b.holds, n, err)
	}
}

func counted(t *testing.T, limit int64) (*world, *book) {
	t.Helper()
	w := newWorld(t)
	b := &book{w: w, limit: limit}
	w.Account(b, nil)
	return w, b
}

func (w *world) receive(name string, offset, total int64, body io.Reader, sum []byte) (int64, error) {
	n, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(w.t, name), offset, total, body, sum)
	return n, err
}

func TestLedger(t *testing.T) {
	t.Run("STO-01_everything_that_is_done_is_counted", func(t *testing.T) {
		w, b := counted(t, 1<<30)
		w.put("a", "12345")
		b.right(t)
		w.put("a", "123") // replaced by a smaller one
		b.right(t)
		if _, err := w.receive("part", 0, 100, strings.NewReader("0123456789"), nil); err != nil {
			t.Fatal(err)
		}
		b.right(t)
		if _, err := w.receive("part", 0, 100, strings.NewReader("01"), nil); err != nil { // begun anew
			t.Fatal(err)
		}
		b.right(t)
		if _, err := w.receive("part", 2, 100, strings.NewReader("234"), nil); err != nil {
			t.Fatal(err)
		}
		b.right(t)
		if err := w.DiscardUpload(w.ctx, w.tenant, w.space, path(t, "part")); err != nil {
			t.Fatal(err)
		}
		b.right(t)
		if _, err := w.receive("bad", 0, 2, strings.NewReader("xy"), make([]byte, 32)); !fault.Is(err, fault.CodeInvalidValue) {
			t.Fatal(err)
		}
		b.right(t)
		if _, err := w.receive("more", 0, 2, strings.NewReader("xyz"), nil); err == nil {
			t.Fatal("more bytes than announced")
		}
		b.right(t)
		broken := io.MultiReader(strings.NewReader("abc"), errReader{})
		if _, err := w.receive("cut", 0, UnknownTotal, broken, nil); err == nil {
			t.Fatal("a body that broke")
		}
		b.right(t)
		w.put("d/e/f", "abcdef")
		artefact := uuid.New()
		if _, err := w.copyOut("d", artefact); err != nil {
			t.Fatal(err)
		}
		b.right(t)
		if _, err := w.CopyIn(w.ctx, w.tenant, artefact, w.space, path(t, "copy"), uuid.New(), nil); err != nil {
			t.Fatal(err)
		}
		b.right(t)
		if _, err := w.delete("d"); err != nil {
			t.Fatal(err)
		}
		w.removeDirectory("copy", w.directory("copy"), uuid.New())
		b.right(t)
		if b.holds != 3 {
			t.Errorf("%d bytes are left", b.holds)
		}
	})
	t.Run("STO-01_what_does_not_fit_is_refused_before_a_byte_is_taken", func(t *testing.T) {
		w, b := counted(t, 10)
		w.put("a", "123456")
		body := strings.NewReader("78901")
		if _, err := w.receive("b", 0, 5, body, nil); !fault.Is(err, fault.CodeQuotaExceeded) || body.Len() != 5 {
			t.Fatalf("%v, %d bytes are left of the body", err, body.Len())
		}
		b.right(t)
		if _, err := w.receive("b", 0, UnknownTotal, strings.NewReader("78901"), nil); !fault.Is(err, fault.CodeQuotaExceeded) {
			t.Fatal(err)
		}
		b.right(t)
		w.put("b", "7890")
		b.right(t)
		if err := os.Remove(filepath.Join(w.spaceDir, "a")); err != nil { // by a workload
			t.Fatal(err)
		}
		if err := b.Recount(w.ctx, w.tenant, w.space); err != nil || b.holds != 4 {
			t.Fatal(b.holds, err)
		}
	})
	t.Run("STO-02_an_upload_without_room_leaves_the_earlier_one_to_be_continued", func(t *testing.T) {
		w, b := counted(t, 10)
		if _, err := w.receive("f", 0, 9, strings.NewReader("01234567"), nil); err != nil {
			t.Fatal(err)
		}
		for _, total := range []int64{11, 100} {
			if n, err := w.receive("f", 0, total, strings.NewReader("x"), nil); !fault.Is(err, fault.CodeQuotaExceeded) || n != 8 {
				t.Fatalf("%d, %v", n, err)
			}
			b.right(t)
		}
		if err := w.Accepts(w.ctx, w.tenant, w.space, path(t, "f"), 0, 11); !fault.Is(err, fault.CodeQuotaExceeded) {
			t.Errorf("it would be accepted: %v", err)
		}
		if n, err := w.receive("f", 8, 9, strings.NewReader("8"), nil); err != nil || n != 9 {
			t.Fatalf("%d, %v", n, err)
		}
		b.right(t)
	})
	t.Run("STO-02_an_upload_that_starts_anew_has_the_room_of_the_earlier_one", func(t *testing.T) {
		w, b := counted(t, 10)
		if _, err := w.receive("f", 0, 9, strings.NewReader("01234567"), nil); err != nil {
			t.Fatal(err)
		}
		if err := w.Accepts(w.ctx, w.tenant, w.space, path(t, "f"), 0, 10); err != nil {
			t.Error(err)
		}
		if n, err := w.receive("f", 0, 10, strings.NewReader("abcdefghij"), nil); err != nil || n != 10 {
			t.Fatalf("%d, %v", n, err)
		}
		b.right(t)
	})
	t.Run("STO-01_many_at_once_never_hold_more_than_they_may", func(t *testing.T) {
		w, b := counted(t, 20<<20)
		var wg sync.WaitGroup
		var mu sync.Mutex
		done := 0
		for i := range 12 {
			wg.Go(func() {
				_, err := w.receive(fmt.Sprint("f", i), 0, 3<<20, io.LimitReader(nothings{}, 3<<20), nil)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					done++
				} else if !fault.Is(err, fault.CodeQuotaExceeded) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		b.right(t)
		if b.most > b.limit || done == 0 || done > 6 {
			t.Errorf("%d of %d bytes, %d uploads", b.most, b.limit, done)
		}
	})
	t.Run("STO-01_a_deep_tree_is_measured", func(t *testing.T) {
		w, b := counted(t, 1<<30)
		w.write(strings.Repeat("d/", 60)+"f", "deep")
		if err := os.Symlink("/etc", filepath.Join(w.spaceDir, "link")); err != nil {
			t.Fatal(err)
		}
		if err := b.Recount(w.ctx, w.tenant, w.space); err != nil || b.holds != 4 {
			t.Fatal(b.holds, err)
		}
	})
}

type nothings struct{}

func (nothings) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("cut") }
