package files

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

func (w *world) list(folder string, limit int) []Entry {
	w.t.Helper()
	var all []Entry
	for after := ""; ; {
		page, err := w.List(w.ctx, w.tenant, w.space, path(w.t, folder), after, limit)
		if err != nil || len(page.Entries) > limit {
			w.t.Fatalf("%d entries, %v", len(page.Entries), err)
		}
		all = append(all, page.Entries...)
		if !page.More {
			return all
		}
		after = page.Next
	}
}

func TestList(t *testing.T) {
	t.Run("STO-02_kinds_sizes_and_order", func(t *testing.T) {
		w := newWorld(t)
		w.write("b.txt", "12345")
		w.write("B/x", "")
		w.write("数据/x", "")
		w.write("a-/x", "")
		if err := errors.Join(
			os.Symlink("b.txt", filepath.Join(w.spaceDir, "link")),
			os.Symlink("/", filepath.Join(w.spaceDir, "rootlink")),
			unix.Mkfifo(filepath.Join(w.spaceDir, "fifo"), 0o600),
			os.Chmod(filepath.Join(w.spaceDir, "b.txt"), 0o755),
		); err != nil {
			t.Fatal(err)
		}
		w.put("made", "makes the hidden folder")
		if err := os.Remove(filepath.Join(w.spaceDir, "made")); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range w.list("", 3) {
			got = append(got, e.Name+" "+string(e.Kind))
			if e.Path.String() != e.Name || e.ModifiedAt.IsZero() || (e.Name == "b.txt") != (e.SizeBytes == 5 && e.Executable) {
				t.Errorf("%+v", e)
			}
		}
		want := []string{"B DIRECTORY", "a- DIRECTORY", "b.txt FILE", "fifo OTHER", "link OTHER", "rootlink OTHER", "数据 DIRECTORY"}
		if !slices.Equal(got, want) {
			t.Fatalf("%v", got)
		}
	})

	t.Run("STO-01_hidden_area_is_not_listed_nor_named", func(t *testing.T) {
		w := newWorld(t)
		if _, _, _, err := w.Receive(w.ctx, w.tenant, w.space, path(t, "half"), 0, 5, strings.NewReader("x"), nil); err != nil {
			t.Fatal(err)
		}
		if got := w.list("", 10); len(got) != 0 {
			t.Fatalf("%+v", got)
		}
		if _, f := storage.ParsePath(".tallyard/uploads"); f == nil {
			t.Fatal("it can be named")
		}
	})

	t.Run("GEN-02_pages_do_not_shift", func(t *testing.T) {
		w := newWorld(t)
		for _, n := range []string{"a", "c", "e", "g"} {
			w.write(n, "")
		}
		first, err := w.List(w.ctx, w.tenant, w.space, storage.Root, "", 2)
		if err != nil {
			t.Fatal(err)
		}
		w.write("b", "")
		if err := os.Remove(filepath.Join(w.spaceDir, "c")); err != nil {
			t.Fatal(err)
		}
		second, err := w.List(w.ctx, w.tenant, w.space, storage.Root, first.Next, 2)
		if err != nil || second.More || len(second.Entries) != 2 || second.Entries[0].Name != "e" || second.Entries[1].Name != "g" {
			t.Fatalf("%+v %v", second, err)
		}
	})

	t.Run("GEN-01_NFD_name_is_found_by_its_NFC_form", func(t *testing.T) {
		w := newWorld(t)
		w.write("d/cafe\u0301/menu\u0301.txt", "nfd")
		if got := w.get("d/café/menú.txt"); got != "nfd" {
			t.Fatal(got)
		}
		e := w.list("d/café", 5)
		if len(e) != 1 || e[0].Path.String() != "d/café/menú.txt" || e[0].Kind != KindFile {
			t.Fatalf("%+v", e)
		}
		w.put("d/café/menú.txt", "new") // replaces it instead of making a twin
		if got := tree(t, w.spaceDir); len(got) != 1 || got["d/cafe\u0301/menu\u0301.txt"] != "new" {
			t.Fatalf("%q", got)
		}
	})

	t.Run("GEN-01_of_twins_one_is_found_and_the_other_shown", func(t *testing.T) {
		w := newWorld(t)
		w.write("é", "nfc")
		w.write("e\u0301", "nfd")
		w.write("\u1e9b\u0323", "one") // three spellings of one name, none of them NFC
		w.write("\u017f\u0323\u0307", "two")
		w.write("\u017f\u0307\u0323", "three")
		if w.get("é") != "nfc" || w.get("\u1e9b\u0323") != "one" {
			t.Fatal("not the NFC one")
		}
		kinds := map[string]Kind{}
		for _, e := range w.list("", 2) {
			kinds[e.Key] = e.Kind
			if (e.Kind == KindOther) != e.Path.IsRoot() {
				t.Errorf("%+v", e)
			}
		}
		if kinds["é"] != KindFile || kinds["e\u0301"] != KindOther || kinds["\u1e9b\u0323"] != KindFile ||
			kinds["\u017f\u0323\u0307"] != KindOther || kinds["\u017f\u0307\u0323"] != KindOther {
			t.Fatalf("%v", kinds)
		}
	})

	t.Run("STO-01_names_without_a_path_are_shown_as_other", func(t *testing.T) {
		w := newWorld(t)
		for _, n := range []string{"bad\xff", "new\nline", `back\slash`, "d/.tallyard"} {
			w.write(n, "x")
		}
		for _, e := range append(w.list("", 10), w.list("d", 10)...) {
			if e.Name != "d" && (e.Kind != KindOther || !e.Path.IsRoot() || !utf8.ValidString(e.Name) || strings.Contains(e.Name, "\n")) {
				t.Errorf("%+v", e)
			}
		}
	})

	t.Run("STO-02_what_is_no_folder", func(t *testing.T) {
		w := newWorld(t)
		w.write("file", "x")
		_ = os.Symlink("/etc", filepath.Join(w.spaceDir, "link"))
		for name, code := range map[string]fault.Code{"file": fault.CodeInvalidValue, "link": fault.CodeInvalidState, "none": fault.CodeNotFound, "link/passwd": fault.CodeNotFound} {
			_, err := w.List(w.ctx, w.tenant, w.space, path(t, name), "", 5)
			w.wantFault(err, code)
		}
		if _, err := w.Stat(w.ctx, w.tenant, w.space, storage.Root); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("TEN-01_another_tenants_space_is_not_there", func(t *testing.T) {
		w := newWorld(t)
		_, err := w.List(w.ctx, w.space, w.space, storage.Root, "", 5)
		w.wantFault(err, fault.CodeNotFound)
		_, err = w.List(w.ctx, w.tenant, w.tenant, storage.Root, "", 5)
		w.wantFault(err, fault.CodeNotFound)
	})
}

// Whatever the names and the page size: the pages are the sorted names, each once.
func TestListProperties(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-cA-C.é数-]{1,4}`), 0, 30, rapid.ID).Draw(rt, "names")
		want = slices.DeleteFunc(want, func(n string) bool { return n == "." || n == ".." })
		limit := rapid.IntRange(1, 12).Draw(rt, "limit")
		if err := os.RemoveAll(filepath.Join(w.spaceDir, "p")); err != nil {
			rt.Fatal(err)
		}
		w.write("p/zzz", "")
		want = append(want, "zzz")
		for _, n := range want {
			w.write("p/"+n, "")
		}
		slices.Sort(want)
		var got []string
		for _, e := range w.list("p", limit) {
			got = append(got, e.Key)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("got %q want %q", got, want)
		}
	})
}
