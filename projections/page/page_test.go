package page_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"tallyard/projections/page"
)

// TestPagesOfAList: for any list and any page of it, the rows and what is said
// of its surroundings are those of the plain list.
func TestPagesOfAList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(rt, "rows")
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		at := rapid.IntRange(-1, n).Draw(rt, "at") // the row of the cursor; -1: none
		size := rapid.IntRange(1, 5).Draw(rt, "size")
		key := &page.Key{}
		if at < 0 {
			key = nil
		}
		p, rest := page.Page{First: size, After: key}, all
		if rapid.Bool().Draw(rt, "backward") {
			p = page.Page{Last: size, Before: key}
			rest = slices.Clone(all)
			if at >= 0 {
				rest = rest[:min(at, n)]
			}
			slices.Reverse(rest)
		} else if at >= 0 {
			rest = all[min(at+1, n):]
		}
		got := page.Cut(slices.Clone(rest[:min(size+1, len(rest))]), p)
		want := slices.Clone(rest[:min(size, len(rest))])
		more, before := len(rest) > size, key != nil
		if p.Last > 0 {
			slices.Reverse(want)
			more, before = before, more
		}
		if !slices.Equal(got.Items, want) || got.HasNext != more || got.HasPrevious != before {
			rt.Fatalf("%+v, want %v next %v previous %v", got, want, more, before)
		}
	})
}

func TestSQL(t *testing.T) {
	o := page.Order{Column: page.Column{SQL: "t.at", Cast: "timestamptz"}, IDColumn: "t.id"}
	k := &page.Key{Value: "v", ID: uuid.New()}
	for name, c := range map[string]struct {
		descending bool
		p          page.Page
		where      string
		dir        string
	}{
		"GEN-02_first":             {false, page.Page{First: 2}, "TRUE", "ASC"},
		"GEN-02_after":             {false, page.Page{First: 2, After: k}, "(t.at, t.id) > ($2::text::timestamptz, $3)", "ASC"},
		"GEN-02_after_descending":  {true, page.Page{First: 2, After: k}, "(t.at, t.id) < ($2::text::timestamptz, $3)", "DESC"},
		"GEN-02_before":            {false, page.Page{Last: 2, Before: k}, "(t.at, t.id) < ($2::text::timestamptz, $3)", "DESC"},
		"GEN-02_before_descending": {true, page.Page{Last: 2, Before: k}, "(t.at, t.id) > ($2::text::timestamptz, $3)", "ASC"},
	} {
		t.Run(name, func(t *testing.T) {
			o.Descending = c.descending
			where, tail, args := page.SQL(o, c.p, []any{"tenant"})
			if where != c.where || strings.Count(tail, c.dir) != 2 || !strings.HasSuffix(tail, " LIMIT 3") || args[0] != "tenant" {
				t.Errorf("%s %s %v", where, tail, args)
			}
		})
	}
	if got := page.TimeValue(time.Date(2030, 1, 2, 3, 4, 5, 678_000, time.FixedZone("x", 3600))); got != "2030-01-02T02:04:05.000678Z" {
		t.Error(got)
	}
}
