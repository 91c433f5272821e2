package storage_test

import (
	"path"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"tallyard/domain/fault"
	"tallyard/domain/storage"
)

func TestPaths(t *testing.T) {
	long := strings.Repeat("a", storage.MaxNameBytes)
	for _, tc := range []struct {
		name, in string
		want     string
		code     fault.Code
	}{
		{name: "STO-01_plain", in: "code/train.py", want: "code/train.py"},
		{name: "STO-01_dots_inside_names_are_fine", in: "..a/b../...", want: "..a/b../..."},
		{name: "STO-01_hidden_files_are_fine", in: ".git/config", want: ".git/config"},
		{name: "STO-01_spaces_are_fine", in: "my file /x", want: "my file /x"},
		{name: "STO-01_empty_is_refused", in: "", code: fault.CodeInvalidPath},
		{name: "STO-01_absolute_is_refused", in: "/etc/passwd", code: fault.CodeInvalidPath},
		{name: "STO-01_slash_is_refused", in: "/", code: fault.CodeInvalidPath},
		{name: "STO-01_dotdot_is_refused", in: "a/../../b", code: fault.CodeInvalidPath},
		{name: "STO-01_dotdot_alone_is_refused", in: "..", code: fault.CodeInvalidPath},
		{name: "STO-01_dotdot_at_the_end_is_refused", in: "a/..", code: fault.CodeInvalidPath},
		{name: "STO-01_dot_is_refused", in: "a/./b", code: fault.CodeInvalidPath},
		{name: "STO-01_empty_part_is_refused", in: "a//b", code: fault.CodeInvalidPath},
		{name: "STO-01_trailing_slash_is_refused", in: "a/", code: fault.CodeInvalidPath},
		{name: "STO-01_backslash_is_refused", in: `a\b`, code: fault.CodeInvalidCharacters},
		{name: "STO-01_NUL_is_refused", in: "a\x00b", code: fault.CodeInvalidCharacters},
		{name: "GEN-01_newline_is_refused", in: "a\nb", code: fault.CodeInvalidCharacters},
		{name: "GEN-01_DEL_is_refused", in: "a\x7f", code: fault.CodeInvalidCharacters},
		{name: "GEN-01_C1_control_is_refused", in: "a\u0085", code: fault.CodeInvalidCharacters},
		{name: "STO-01_a_name_that_shows_backwards_is_refused", in: "report\u202etxt.exe", code: fault.CodeInvalidCharacters},
		{name: "STO-01_an_isolate_is_refused", in: "a/\u2067b\u2069", code: fault.CodeInvalidCharacters},
		{name: "STO-01_a_mark_of_direction_is_refused", in: "a\u200fb", code: fault.CodeInvalidCharacters},
		{name: "GEN-01_arabic_and_hebrew_are_fine", in: "بيانات/נתונים", want: "بيانات/נתונים"},
		{name: "GEN-01_joiners_are_fine", in: "क्\u200dष/👩\u200d🔬", want: "क्\u200dष/👩\u200d🔬"},
		{name: "GEN-01_invalid_UTF-8_is_refused", in: "a\xff", code: fault.CodeInvalidCharacters},
		{name: "GEN-01_overlong_slash_is_refused", in: "..\xc0\xaf..", code: fault.CodeInvalidCharacters},
		{name: "STO-01_reserved_name_is_refused", in: ".tallyard/uploads", code: fault.CodeInvalidPath},
		{name: "STO-01_reserved_name_deep_is_refused", in: "a/.tallyard", code: fault.CodeInvalidPath},
		{name: "STO-01_name_of_255_bytes", in: "d/" + long, want: "d/" + long},
		{name: "STO-01_name_of_256_bytes_is_refused", in: "d/a" + long, code: fault.CodeTooLong},
		{name: "STO-01_path_over_4096_bytes_is_refused", in: strings.Repeat(long+"/", 16) + "a", code: fault.CodeTooLong},
		{name: "STO-01_path_of_10000_characters_is_refused", in: strings.Repeat("a", 10_000), code: fault.CodeTooLong},
		{name: "STO-01_path_of_a_megabyte_is_refused", in: strings.Repeat("a/", 1<<19), code: fault.CodeTooLong},
		{name: "STO-01_depth_of_64", in: strings.Repeat("d/", 63) + "f", want: strings.Repeat("d/", 63) + "f"},
		{name: "STO-01_depth_of_65_is_refused", in: strings.Repeat("d/", 64) + "f", code: fault.CodeTooLong},
		{name: "GEN-01_NFD_becomes_NFC", in: "cafe\u0301/x", want: "caf\u00e9/x"},
		{name: "GEN-01_chinese", in: "数据集/训练.py", want: "数据集/训练.py"},
		{name: "GEN-01_composition_exclusion_counts_after_normalising", in: strings.Repeat("\u0958", 60), code: fault.CodeTooLong},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, f := storage.ParsePath(tc.in)
			if tc.code != "" {
				if f == nil || f.Code != tc.code {
					t.Fatalf("got %q, %v; want a fault %s", got, f, tc.code)
				}
				if !got.IsRoot() || !strings.HasSuffix(f.Message, ".") || f.Kind != fault.Invalid {
					t.Fatalf("fault %+v, path %q", f, got)
				}
				return
			}
			if f != nil || got.String() != tc.want {
				t.Fatalf("got %q, %v; want %q", got, f, tc.want)
			}
		})
	}
}

func TestPathParts(t *testing.T) {
	p := must(t, "a/b/c")
	if p.Base() != "c" || p.Dir().String() != "a/b" || p.Dir().Dir().String() != "a" || !p.Dir().Dir().Dir().IsRoot() {
		t.Fatalf("parts of %q: %q %q", p, p.Base(), p.Dir())
	}
	if storage.Root.Base() != "" || !storage.Root.Dir().IsRoot() || len(storage.Root.Names()) != 0 || storage.Root.String() != "" {
		t.Fatal("the root has parts")
	}
	if got, f := storage.ParseFolder(""); f != nil || !got.IsRoot() {
		t.Fatalf("root folder: %v %v", got, f)
	}
	if _, f := storage.ParseFolder("../x"); f == nil {
		t.Fatal("a folder may escape")
	}
}

func TestPathJoin(t *testing.T) {
	t.Run("STO-01_joined_path_stays_inside", func(t *testing.T) {
		base := must(t, "a")
		for _, bad := range []string{"", "..", "../b", "/b", "b/../../c", "b//c", ".tallyard", "x\x00"} {
			if got, f := base.Join(bad); f == nil {
				t.Errorf("Join(%q) = %q", bad, got)
			}
			if got, f := storage.Root.Join(bad); f == nil {
				t.Errorf("Root.Join(%q) = %q", bad, got)
			}
		}
		if got, f := base.Join("b/c"); f != nil || got.String() != "a/b/c" {
			t.Fatalf("%q %v", got, f)
		}
		if got, f := storage.Root.Join("b"); f != nil || got.String() != "b" {
			t.Fatalf("%q %v", got, f)
		}
	})
	t.Run("STO-01_joined_path_keeps_the_limits", func(t *testing.T) {
		deep := must(t, strings.Repeat("d/", 63)+"f")
		if _, f := deep.Join("x"); f == nil || f.Code != fault.CodeTooLong {
			t.Fatalf("%v", f)
		}
	})
}

func TestPathWithin(t *testing.T) {
	for _, tc := range []struct {
		p, other string
		want     bool
	}{
		{"a/b", "a", true}, {"a", "a", true}, {"ab", "a", false}, {"a", "a/b", false}, {"a-b/c", "a", false},
	} {
		if got := must(t, tc.p).Within(must(t, tc.other)); got != tc.want {
			t.Errorf("%q within %q = %v", tc.p, tc.other, got)
		}
	}
	if !must(t, "a").Within(storage.Root) || storage.Root.Within(must(t, "a")) {
		t.Error("the root")
	}
}

// Whatever is put together from hostile parts: what comes out holds every rule.
func TestPathProperties(t *testing.T) {
	part := rapid.OneOf(
		rapid.SampledFrom([]string{"", ".", "..", "/", "a", "é", "e\u0301", "数", "\x00", "\\", ".tallyard", "\xff", "\u2028", "😀", "\u0344"}),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "parts"), rapid.SampledFrom([]string{"/", ""}).Draw(t, "sep"))
		p, f := storage.ParsePath(text)
		if f == nil {
			if broken := brokenRule(p); broken != "" {
				t.Fatalf("%q became %q: %s", text, p, broken)
			}
		}
	})
}

func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{"a/b", "..", "a/../b", "/a", "a//b", "e\u0301", "数据", "a\x00", `a\b`, "\xff", ".tallyard/x", "\u0344\u0958", strings.Repeat("\u1e9b\u0323", 90)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, fl := storage.ParsePath(text)
		if fl != nil {
			return
		}
		if broken := brokenRule(p); broken != "" {
			t.Fatalf("%q became %q: %s", text, p, broken)
		}
	})
}

// brokenRule is written apart from the code under test, with path.Clean as the judge of escapes.
func brokenRule(p storage.Path) string {
	s := p.String()
	again, f := storage.ParsePath(s)
	switch {
	case f != nil || again != p:
		return "doesn't parse to itself"
	case path.Clean(s) != s || path.Clean("/root/"+s) != "/root/"+s || path.IsAbs(s) || s == ".":
		return "not clean"
	case !norm.NFC.IsNormalString(s):
		return "not NFC"
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) || strings.Contains(s, `\`):
		return "characters"
	case len(s) > 4096 || strings.Count(s, "/") > 63:
		return "too long or deep"
	}
	for _, name := range p.Names() {
		if len(name) > 255 || name == "" || name == ".." || name == storage.ReservedName {
			return "name " + name
		}
	}
	if !p.Dir().IsRoot() {
		if joined, f := p.Dir().Join(p.Base()); f != nil || joined != p {
			return "Dir and Base don't join"
		}
	}
	return ""
}

func must(t testing.TB, text string) storage.Path {
	t.Helper()
	p, f := storage.ParsePath(text)
	if f != nil {
		t.Fatal(f)
	}
	return p
}
