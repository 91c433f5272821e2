package files

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/mholt/archives"

	"tallyard/domain/fault"
)

func tarOf(t testing.TB, content map[string]string, more ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range content {
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o644}), second(w.Write([]byte(text)))); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range more {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func second(_ int, err error) error { return err }

func zipOf(t testing.TB, content map[string]string, change func(*zip.FileHeader)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range content {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		if change != nil {
			change(h)
		}
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzOf(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := errors.Join(second(w.Write(content)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func bz2Of(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := archives.Bz2{}.OpenWriter(&b)
	if err == nil {
		err = errors.Join(second(w.Write(content)), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnpack(t *testing.T) {
	t.Run("STO-05_every_kind_beside_itself_under_the_same_name", func(t *testing.T) {
		w := newCachedWorld(t)
		inner := map[string]string{"a.txt": "A", "d/b.txt": "B", "./数据/c.txt": "C"}
		w.write("data/one.tar", string(tarOf(t, inner)))
		w.write("data/two.tar.gz", string(gzOf(t, tarOf(t, inner))))
		w.write("data/three.TGZ", string(gzOf(t, tarOf(t, inner))))
		w.write("data/sub/four.zip", string(zipOf(t, map[string]string{"a.txt": "A", "e/": "", "d/b.txt": "B"}, nil)))
		w.write("data/five.tar.bz2", string(bz2Of(t, tarOf(t, inner))))
		w.write("data/six.csv.gz", string(gzOf(t, []byte("1,2"))))
		w.write("data/plain.txt", "stays")
		w.fill()
		if err := w.unpack(); err != nil {
			t.Fatal(err)
		}
		got := tree(t, w.cacheDir)
		for name, want := range map[string]string{
			"one/a.txt": "A", "one/数据/c.txt": "C", "two/d/b.txt": "B", "three/a.txt": "A", "sub/four/d/b.txt": "B", "sub/four/e": "DIR",
			"five/d/b.txt": "B", "six.csv": "1,2", "plain.txt": "stays",
		} {
			if got[name] != want {
				t.Errorf("%s holds %q, want %q", name, got[name], want)
			}
		}
		if st, err := os.Stat(filepath.Join(w.cacheDir, "one/d/b.txt")); err != nil || st.Mode() != publicFile {
			t.Errorf("%v %v", st.Mode(), err)
		}
	})
	t.Run("STO-05_archives_inside_of_archives", func(t *testing.T) {
		w := newCachedWorld(t)
		deepest := gzOf(t, []byte("gold"))
		w.write("data/a.tar", string(tarOf(t, map[string]string{"b.zip": string(zipOf(t, map[string]string{"c/d.txt.gz": string(deepest)}, nil))})))
		w.fill()
		if err := w.unpack(); err != nil {
			t.Fatal(err)
		}
		if got := tree(t, w.cacheDir)["a/b/c/d.txt"]; got != "gold" {
			t.Errorf("%q", got)
		}
	})
	t.Run("OPS-02_again_it_does_nothing_and_undone_it_is_as_before", func(t *testing.T) {
		w := newCachedWorld(t)
		w.write("data/a.tar", string(tarOf(t, map[string]string{"b.zip": string(zipOf(t, map[string]string{"c": "1"}, nil))})))
		w.fill()
		before := tree(t, w.cacheDir)
		op := uuid.New()
		for i := range 2 {
			done, err := w.UnpackCache(w.ctx, w.tenant, w.dataSet, op, nil)
			if err != nil || (done.DoneFiles == 2) != (i == 0) {
				t.Fatalf("%+v %v", done, err)
			}
		}
		if err := w.DiscardUnpacked(w.ctx, w.tenant, w.dataSet, op); err != nil {
			t.Fatal(err)
		}
		equal(t, tree(t, w.cacheDir), before)
		if err := w.unpack(); err != nil {
			t.Fatal(err)
		}
		if _, reused := w.fill(); reused != 1 {
			t.Errorf("%d taken over", reused)
		}
		equal(t, tree(t, w.cacheDir), before)
	})
	t.Run("OPS-02_what_is_not_cached_is_told", func(t *testing.T) {
		if err := newCachedWorld(t).unpack(); !fault.Is(err, fault.CodeInvalidState) {
			t.Error(err)
		}
	})
}

func TestHostileArchives(t *testing.T) {
	link := func(kind byte, target string) []byte {
		return tarOf(t, map[string]string{"fine": "1"}, tar.Header{Name: "evil", Typeflag: kind, Linkname: target})
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 300 {
		if _, err := z.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file    string
		content []byte
	}{
		"an_entry_that_goes_up":          {"x.tar", tarOf(t, map[string]string{"../evil": "1"})},
		"an_entry_that_goes_up_inside":   {"x.tar", tarOf(t, map[string]string{"a/../../evil": "1"})},
		"an_absolute_entry":              {"x.tar", tarOf(t, map[string]string{"/tmp/evil": "1"})},
		"a_zip_that_goes_up":             {"x.zip", zipOf(t, map[string]string{"../evil": "1"}, nil)},
		"a_zip_with_backslashes":         {"x.zip", zipOf(t, map[string]string{`..\evil`: "1"}, nil)},
		"a_symbolic_link":                {"x.tar", link(tar.TypeSymlink, "/etc/passwd")},
		"a_symbolic_link_inside":         {"x.tar", link(tar.TypeSymlink, "fine")},
		"a_hard_link":                    {"x.tar", link(tar.TypeLink, "../../../../etc/passwd")},
		"a_device":                       {"x.tar", link(tar.TypeBlock, "")},
		"a_fifo":                         {"x.tar", link(tar.TypeFifo, "")},
		"a_link_in_a_zip":                {"x.zip", zipOf(t, map[string]string{"evil": "/etc/passwd"}, func(h *zip.FileHeader) { h.SetMode(fs.ModeSymlink | 0o777) })},
		"the_platforms_own_folder":       {"x.tar", tarOf(t, map[string]string{".tallyard/uploads/x": "1"})},
		"a_name_that_shows_backwards":    {"x.tar", tarOf(t, map[string]string{"a\u202eb": "1"})},
		"a_file_in_the_place_of_another": {"x.tar", append(tarOf(t, map[string]string{"a": "1"})[:1024], tarOf(t, map[string]string{"a/b": "2"})...)},
		"the_same_file_twice":            {"x.tar", append(tarOf(t, map[string]string{"a": "1"})[:1024], tarOf(t, map[string]string{"a": "2"})...)},
		"a_bomb":                         {"x.gz", bomb.Bytes()},
		"damage":                         {"x.tar.gz", gzOf(t, []byte(strings.Repeat("x", 2000)))},
		"a_cut_one":                      {"x.tar.gz", gzOf(t, tarOf(t, map[string]string{"a": strings.Repeat("x", 5000)}))[:60]},
		"what_is_none":                   {"x.zip", []byte("hello")},
		"an_empty_one":                   {"x.gz", nil},
	} {
		t.Run("STO-05_"+name, func(t *testing.T) {
			w := newCachedWorld(t)
			w.write("data/"+c.file, string(c.content))
			w.write("data/good.tar", string(tarOf(t, map[string]string{"fine": "1"})))
			w.write("data/other", "stays")
			w.fill()
			before := tree(t, w.cacheDir)
			err := w.unpack()
			if !fault.Is(err, fault.CodeNotAllowed) || !strings.Contains(err.Error(), c.file) {
				t.Fatalf("refused with %v", err)
			}
			after := tree(t, w.cacheDir)
			if after["good/fine"] != "1" {
				t.Error("another archive was not unpacked")
			}
			delete(after, "good/fine")
			equal(t, after, before)
			if left := names(t, filepath.Dir(w.cacheDir)); len(left) != 3 { // the cache, its journal, its note
				t.Errorf("left behind: %v", left)
			}
		})
	}
	t.Run("STO-05_a_place_that_is_taken", func(t *testing.T) {
		w := newCachedWorld(t)
		w.write("data/x.tar", string(tarOf(t, map[string]string{"a": "1"})))
		w.write("data/x/mine", "2")
		w.fill()
		if err := w.unpack(); !fault.Is(err, fault.CodeNotAllowed) {
			t.Fatal(err)
		}
		if got := tree(t, w.cacheDir); got["x/mine"] != "2" || got["x/a"] != "" {
			t.Errorf("%v", got)
		}
	})
	t.Run("STO-05_archives_without_end_inside_of_each_other", func(t *testing.T) {
		w := newCachedWorld(t)
		content := tarOf(t, map[string]string{"x": "1"})
		for range nesting + 2 {
			content = tarOf(t, map[string]string{"x.tar": string(content)})
		}
		w.write("data/x.tar", string(content))
		w.fill()
		if err := w.unpack(); !fault.Is(err, fault.CodeNotAllowed) || !strings.Contains(err.Error(), "inside") {
			t.Fatal(err)
		}
	})
}

// TestLargeArchives: a hundred thousand small files, and a file of ten
// gigabytes of which little is there.
func TestLargeArchives(t *testing.T) {
	t.Run("STO-05_a_hundred_thousand_files", func(t *testing.T) {
		w := newCachedWorld(t)
		const count = 100_000
		var b bytes.Buffer
		tw := tar.NewWriter(&b)
		for i := range count {
			if err := tw.WriteHeader(&tar.Header{Name: fmt.Sprintf("d%03d/f%05d", i/1000, i), Size: 1, Mode: 0o644}); err != nil {
				t.Fatal(err)
			}
			if _, err := tw.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := tw.Close(); err != nil {
			t.Fatal(err)
		}
		w.write("data/many.tar", b.String())
		w.fill()
		done, err := w.UnpackCache(w.ctx, w.tenant, w.dataSet, uuid.New(), nil)
		if err != nil || done.DoneFiles != count || done.DoneBytes != count {
			t.Fatalf("%+v %v", done, err)
		}
		if got := names(t, filepath.Join(w.cacheDir, "many/d099")); len(got) != 1000 {
			t.Errorf("%d files in the last folder", len(got))
		}
	})
	t.Run("STO-05_ten_gigabytes_of_holes", func(t *testing.T) {
		w := newCachedWorld(t)
		const size = 10 << 30
		w.write("data/other", "x")
		w.fill()
		openUp(w.cacheDir) // the archive is put there without copying ten gigabytes
		f, err := os.Create(filepath.Join(w.cacheDir, "big.tar"))
		if err != nil {
			t.Fatal(err)
		}
		tw := tar.NewWriter(f)
		if err := tw.WriteHeader(&tar.Header{Name: "big.bin", Size: size, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		start, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte("end"), start+size-3)
		if err := errors.Join(err, f.Truncate(start+size+1024), f.Close()); err != nil {
			t.Fatal(err)
		}
		if err := w.unpack(); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(filepath.Join(w.cacheDir, "big/big.bin"))
		if err != nil || st.Size() != size {
			t.Fatalf("%v %v", st, err)
		}
		if used := st.Sys().(*syscall.Stat_t).Blocks * 512; used > 64<<20 {
			t.Errorf("it takes %d bytes of the disk", used)
		}
	})
}

// FuzzUnpack: whatever an archive holds, nothing appears outside of its own
// folder, and what is refused leaves nothing.
func FuzzUnpack(f *testing.F) {
	seed := tarOf(f, map[string]string{"a": "1", "d/b": "2"})
	f.Add(seed, uint8(0))
	f.Add(gzOf(f, seed), uint8(1))
	f.Add(bz2Of(f, seed), uint8(2))
	f.Add(zipOf(f, map[string]string{"a": "1", "d/b": "2"}, nil), uint8(3))
	f.Add(gzOf(f, []byte("x")), uint8(4))
	f.Add(tarOf(f, map[string]string{"../evil": "1"}), uint8(0))
	f.Add(tarOf(f, nil, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}), uint8(0))
	w := newCachedWorld(f)
	f.Fuzz(func(t *testing.T, content []byte, kind uint8) {
		name := []string{"x.tar", "x.tar.gz", "x.tar.bz2", "x.zip", "x.gz"}[kind%5]
		w.t, w.dataSet = t, uuid.New()
		w.cacheDir = filepath.Join(filepath.Dir(w.cacheDir), w.dataSet.String())
		if err := os.RemoveAll(filepath.Join(w.spaceDir, "data")); err != nil {
			t.Fatal(err)
		}
		w.write("data/"+name, string(content))
		w.write("data/other", "stays")
		w.fill()
		err := w.unpack()
		if _, isFault := fault.All(err); err != nil && !isFault {
			t.Fatalf("not the archive's fault: %v", err)
		}
		for _, left := range names(t, w.cacheDir) {
			if left != name && left != "other" && left != "x" {
				t.Errorf("%s came out", left)
			}
		}
		if err != nil {
			if _, err := os.Lstat(filepath.Join(w.cacheDir, "x")); err == nil && kind%5 != 4 {
				if !strings.Contains(fmt.Sprint(err), "inside") && len(content) > 0 && !nested(w.cacheDir) {
					t.Error("a refused archive left something")
				}
			}
		}
		walked := filepath.WalkDir(w.cacheDir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !d.Type().IsRegular() {
				t.Errorf("%s is %v", p, d.Type())
			}
			return err
		})
		if walked != nil {
			t.Error(walked)
		}
		openUp(filepath.Dir(w.cacheDir))
		if _, err := w.ClearCache(w.ctx, w.tenant, w.dataSet, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// nested tells whether what came out holds archives: one of those may be the
// one that was refused.
func nested(dir string) bool {
	found := false
	_ = filepath.WalkDir(filepath.Join(dir, "x"), func(_ string, d fs.DirEntry, _ error) error {
		if d != nil && !d.IsDir() {
			_, format := formatOf(d.Name())
			found = found || format != nil
		}
		return nil
	})
	return found
}
