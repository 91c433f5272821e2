package files

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"tallyard/domain/fault"
)

func TestUpload(t *testing.T) {
	t.Run("STO-02_parts_become_a_whole_at_the_end", func(t *testing.T) {
		w := newWorld(t)
		p := path(t, "data/新/file.bin")
		content := bytes.Repeat([]byte("0123456789"), 100_000)
		sum := sha256.Sum256(content)
		for at := 0; at < len(content); at += 300_000 {
			end := min(at+300_000, len(content))
			n, got, created, err := w.Receive(w.ctx, w.tenant, w.space, p, int64(at), int64(len(content)), bytes.NewReader(content[at:end]), sum[:])
			if err != nil || n != int64(end) || (got != nil) != (end == len(content)) || created != (end == len(content)) {
				t.Fatalf("%d: %d %x %v %v", at, n, got, created, err)
			}
			if end < len(content) {
				if _, err := w.Stat(w.ctx, w.tenant, w.space, p); !fault.Is(err, fault.CodeNotFound) {
					t.Fatalf("a half file is visible: %v", err)
				}
				off, total, err := w.Received(w.ctx, w.tenant, w.space, p)
				if err != nil || off != int64(end) || total != int64(len(content)) {
					t.Fatalf("%d %d %v", off, total, err)
				}
			}
		}
		if w.get("data/新/file.bin") != string(content) {
			t.Fatal("content")
		}
		if left := names(t, filepath.Join(w.spaceDir, ".tallyard/uploads")); len(left) != 0 {
			t.Fatal(left)
		}
	})

	t.Run("STO-02_cut_body_keeps_its_offset", func(t *testing.T) {
		w := newWorld(t)
		p := path(t, "f")
		body := io.MultiReader(strings.NewReader("hello "), iotest.ErrReader(io.ErrUnexpectedEOF))
		n, _, _, err := w.Receive(w.ctx, w.tenant, w.space, p, 0, 11, body, nil)
		if !errors.Is(err, io.ErrUnexpectedEOF) || n != 6 {
			t.Fatalf("%d %v", n, err)
		}
		_, _, _, err = w.Receive(w.ctx, w.tenant, w.space, p, 3, 11, strings.NewReader("lo world"), nil)
		w.wantFault(err, fault.CodeConflict, "6")
		if fs, _ := fault.All(err); fs[0].Details[DetailUploadOffset] != "6" {
			t.Fatal(fs[0].Details)
		}
		if _, sum, _, err := w.Receive(w.ctx, w.tenant, w.space, p, 6, 11, strings.NewReader("world"), nil); err != nil || sum == nil {
			t.Fatal(err)
		}
		if w.get("f") != "hello world" {
			t.Fatal(w.get("f"))
		}
	})

	t.Run("STO-02_unknown_length_is_not_kept_when_cut", func(t *testing.T) {
		w := newWorld(t)
		body := io.MultiReader(strings.NewReader("hello "), iotest.ErrReader(io.ErrUnexpectedEOF))
		if n, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), 0, UnknownTotal, body, nil); err == nil || n != 0 {
			t.Fatalf("%d %v", n, err)
		}
		if _, _, err := w.Received(w.ctx, w.tenant, w.space, path(t, "f")); !fault.Is(err, fault.CodeNotFound) {
			t.Fatal(err)
		}
		if _, _, created, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), 0, UnknownTotal, strings.NewReader(""), nil); err != nil || !created {
			t.Fatal(err)
		}
	})

	t.Run("STO-02_wrong_checksum_is_refused_and_the_old_file_stays", func(t *testing.T) {
		w := newWorld(t)
		w.put("f", "old")
		_, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), 0, 3, strings.NewReader("new"), make([]byte, 32))
		w.wantFault(err, fault.CodeInvalidValue, "SHA-256")
		if w.get("f") != "old" {
			t.Fatal("replaced")
		}
	})

	t.Run("STO-02_refusals", func(t *testing.T) {
		w := newWorld(t)
		w.put("file", "x")
		w.put("dir/f", "x")
		if err := os.Symlink("file", filepath.Join(w.spaceDir, "link")); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			path          string
			offset, total int64
			body          string
			code          fault.Code
		}{
			{"dir", 0, 1, "x", fault.CodeInvalidValue},
			{"", 0, 1, "x", fault.CodeInvalidValue},
			{"file/below", 0, 1, "x", fault.CodeNameTaken},
			{"file/below/deep", 0, 1, "x", fault.CodeNameTaken},
			{"link", 0, 1, "x", fault.CodeInvalidState},
			{"link/below", 0, 1, "x", fault.CodeNameTaken},
			{"n", -1, 1, "x", fault.CodeOutOfRange},
			{"n", 2, 1, "x", fault.CodeOutOfRange},
			{"n", 1, UnknownTotal, "x", fault.CodeOutOfRange},
			{"n", 0, 1, "xy", fault.CodeOutOfRange},
			{"n", 1, 2, "x", fault.CodeConflict},
		} {
			_, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, tc.path), tc.offset, tc.total, strings.NewReader(tc.body), nil)
			t.Log(tc.path, err)
			w.wantFault(err, tc.code)
		}
	})

	t.Run("STO-02_two_at_once_do_not_mix", func(t *testing.T) {
		w := newWorld(t)
		r, out := io.Pipe()
		done := make(chan error)
		go func() {
			_, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), 0, 4, r, nil)
			done <- err
		}()
		_, _ = out.Write([]byte("ab"))
		_, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "f"), 0, 4, strings.NewReader("wxyz"), nil)
		w.wantFault(err, fault.CodeConflict)
		_, _ = out.Write([]byte("cd"))
		_ = out.Close()
		if err := <-done; err != nil || w.get("f") != "abcd" {
			t.Fatal(err)
		}
	})
}
