package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FuzzClean: what a rule lets through is NFC, inside its limits, without
// control characters, and clean already; what it refuses it never repeats.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a", "排序", "cafe\u0301", "a\x00", "\u202e", "_a", "\xff", strings.Repeat("字", 65), "a\nb", "\u1100\u1161\u11a8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, r := range map[string]Rule{"name": Name, "label": Label, "description": Description, "line": Line(1, 10)} {
			got, bad := r.Clean(s, "field")
			if bad != nil {
				if bad.Field[0] != "field" || len(s) > 40 && strings.Contains(bad.Message, s) {
					t.Errorf("%s: %+v", name, bad)
				}
				continue
			}
			if n := utf8.RuneCountInString(got); n < r.Min || n > r.Max || !norm.NFC.IsNormalString(got) {
				t.Errorf("GEN-01 %s lets %q through", name, got)
			}
			if i := strings.IndexFunc(got, unicode.IsControl); i >= 0 && (!r.Lines || !strings.ContainsRune("\n\r\t", rune(got[i]))) {
				t.Errorf("GEN-01 %s lets a control character through: %q", name, got)
			}
			if again, bad := r.Clean(got, "field"); bad != nil || again != got {
				t.Errorf("%s: %q is not clean, %v", name, got, bad)
			}
		}
	})
}
