package algorithm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	domainaccess "tallyard/domain/access"
	domain "tallyard/domain/algorithm"
	"tallyard/domain/patch"
	"tallyard/projections/algorithm"
	"tallyard/projections/page"
)

func stateID(s domain.State) uuid.UUID        { return s.ID }
func versionID(v algorithm.Version) uuid.UUID { return v.ID }

// TestVisibility: each viewer's list is what the rules of the domain let them
// see, thing by thing.
func TestVisibility(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	var all []domain.VersionRef
	for i, vis := range []domainaccess.Visibility{"", domainaccess.Private, domainaccess.Group, domainaccess.Global} {
		for _, owner := range []uuid.UUID{alice, bob} {
			project := vision
			if owner == bob {
				project = speech
			}
			r := w.create(owner, project, fmt.Sprintf("v%d_%d", i, owner[15]), version("1", ""))
			if vis != "" {
				w.publish(owner, r, vis)
			}
			all = append(all, r)
		}
	}
	// One algorithm with a version that all see and one that is alice's alone.
	mixed := w.create(alice, vision, "mixed", version("1", ""))
	w.publish(alice, mixed, domainaccess.Global)
	if _, err := w.CreateVersion(ctx, by(alice), mixed.Algorithm, version("2", "")); err != nil {
		t.Fatal(err)
	}
	all = append(all, mixed)
	w.caughtUp()
	for user := range people {
		t.Run(fmt.Sprintf("TEN-01_ALG-05_viewer_%d", user[15]), func(t *testing.T) {
			var want, wantVersions []uuid.UUID
			for _, r := range all {
				if s, ok := w.fold(r.Algorithm).Cut(people[user]); ok {
					want = append(want, s.ID)
					for _, v := range s.Versions {
						wantVersions = append(wantVersions, v.ID)
					}
				}
			}
			order := page.Order{Column: algorithm.ByUpdated, IDColumn: "t.id", Descending: true}
			rows, err := w.queries.List(ctx, viewer(user), algorithm.Filter{}, order, page.Page{First: 100})
			if err != nil {
				t.Fatal(err)
			}
			if got := ids(rows.Items, stateID); !slices.Equal(sorted(got), sorted(want)) {
				t.Errorf("sees %d algorithms, may see %d", len(got), len(want))
			}
			versions, err := w.queries.Versions(ctx, viewer(user), algorithm.Filter{}, order, page.Page{First: 100})
			if err != nil {
				t.Fatal(err)
			}
			if got := ids(versions.Items, versionID); !slices.Equal(sorted(got), sorted(wantVersions)) {
				t.Errorf("sees %d versions, may see %d", len(got), len(wantVersions))
			}
			if n, err := w.queries.Count(ctx, viewer(user), algorithm.Filter{}); n != len(want) || err != nil {
				t.Errorf("counts %d, %v", n, err)
			}
			of, err := w.queries.VersionsOf(ctx, viewer(user), []uuid.UUID{mixed.Algorithm}, false, page.Page{First: 10})
			cut, _ := w.fold(mixed.Algorithm).Cut(people[user])
			if err != nil || len(of[mixed.Algorithm].Items) != len(cut.Versions) {
				t.Errorf("of the mixed one %d, %v", len(of[mixed.Algorithm].Items), err)
			}
		})
	}
}

// TestPages goes through a list both ways while rows come and go: what stays
// where it is comes exactly once.
func TestPages(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same walk each time
	kept := map[uuid.UUID]bool{}
	for i := range 30 {
		kept[w.create(alice, vision, fmt.Sprintf("kept_%02d", i), version("1", "")).Algorithm] = true
	}
	w.caughtUp()
	var passing []domain.VersionRef
	disturb := func(round int) {
		r := w.create(alice, vision, fmt.Sprintf("p%d_%d", round, random.IntN(1e9)), version("1", ""))
		if passing = append(passing, r); len(passing) > 3 {
			if _, err := w.DeleteVersion(ctx, by(alice), passing[0], nil); err != nil {
				t.Fatal(err)
			}
			passing = passing[1:]
		}
		w.caughtUp()
	}
	for _, column := range []page.Column{algorithm.ByCreated, algorithm.ByName} {
		for _, descending := range []bool{false, true} {
			for _, backward := range []bool{false, true} {
				t.Run(fmt.Sprintf("GEN-02_%s_descending_%v_backward_%v", column.SQL, descending, backward), func(t *testing.T) {
					order := page.Order{Column: column, IDColumn: "t.id", Descending: descending}
					var walked []domain.State
					var key *page.Key
					for round := 0; ; round++ {
						size := 1 + random.IntN(7)
						p := page.Page{First: size, After: key}
						if backward {
							p = page.Page{Last: size, Before: key}
						}
						rows, err := w.queries.List(ctx, viewer(alice), algorithm.Filter{}, order, p)
						if err != nil {
							t.Fatal(err)
						}
						items, more := rows.Items, rows.HasNext
						if backward {
							slices.Reverse(items)
							more = rows.HasPrevious
						}
						for _, s := range items {
							if kept[s.ID] {
								walked = append(walked, s)
							}
						}
						if !more || len(items) == 0 {
							break
						}
						k := algorithm.Key(column, items[len(items)-1])
						key = &k
						if round%2 == 0 {
							disturb(round)
						}
					}
					if len(walked) != len(kept) {
						t.Fatalf("walked through %d of %d", len(walked), len(kept))
					}
					if !slices.IsSortedFunc(walked, func(a, b domain.State) int {
						n := a.Created.Compare(b.Created)
						if column == algorithm.ByName {
							n = slices.Compare([]byte(a.Name), []byte(b.Name))
						}
						if descending != backward {
							n = -n
						}
						return n
					}) {
						t.Error("out of order")
					}
				})
			}
		}
	}
}

// TestTabs: a name stands on every tab that one of its versions is for, and goes
// off it with the last of these.
func TestTabs(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	both := w.create(alice, vision, "both", version("1", ""))
	w.publish(alice, both, domainaccess.Group)
	r, err := w.CreateVersion(ctx, by(alice), both.Algorithm, version("2", ""))
	if err != nil {
		t.Fatal(err)
	}
	w.publish(alice, domain.VersionRef{Algorithm: both.Algorithm, Version: r.Refs.Version}, domainaccess.Global)
	order := page.Order{Column: algorithm.ByUpdated, IDColumn: "t.id", Descending: true}
	shows := func(t *testing.T, tab algorithm.Scope, want int) {
		t.Helper()
		w.caughtUp()
		f := algorithm.Filter{Scope: tab}
		rows, err := w.queries.List(ctx, viewer(alice), f, order, page.Page{First: 100})
		if err != nil || len(rows.Items) != want {
			t.Errorf("%s gives %d, %v, want %d", tab, len(rows.Items), err, want)
		}
		if n, err := w.queries.Count(ctx, viewer(alice), f); n != want || err != nil {
			t.Errorf("%s counts %d, %v, want %d", tab, n, err, want)
		}
	}
	t.Run("ALG-06_one_name_on_both_tabs", func(t *testing.T) {
		shows(t, algorithm.ScopeGroup, 1)
		shows(t, algorithm.ScopeGlobal, 1)
		shows(t, algorithm.ScopeAll, 1)
	})
	t.Run("ALG-06_off_the_tab_with_its_last_version", func(t *testing.T) {
		if _, err := w.DeleteVersion(ctx, by(alice), both, nil); err != nil {
			t.Fatal(err)
		}
		shows(t, algorithm.ScopeGroup, 0)
		shows(t, algorithm.ScopeGlobal, 1)
	})
}

func TestFilters(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	percent := w.create(alice, vision, "percent", version("1", `100%_sure\`))
	plain := w.create(alice, vision, "plain_排序", version("1", "1000 sure"))
	spoken := w.create(bob, speech, "spoken", version("1", ""))
	for _, r := range []domain.VersionRef{plain, spoken} {
		w.publish(people[map[domain.VersionRef]uuid.UUID{plain: alice, spoken: bob}[r]].User, r, domainaccess.Group)
	}
	for _, like := range []bool{true, false, true} {
		if _, err := w.Favorite(ctx, by(bob), plain.Algorithm, like); err != nil {
			t.Fatal(err)
		}
	}
	middle := time.Now()
	if _, err := w.UpdateVersion(ctx, by(alice), domain.UpdateInput{VersionRef: percent, Fields: domain.Fields{Environment: patch.To([]domain.Pair{{Name: "A", Value: "1"}})}}); err != nil {
		t.Fatal(err)
	}
	w.caughtUp()
	yes, no := true, false
	order := page.Order{Column: algorithm.ByName, IDColumn: "t.id"}
	for name, c := range map[string]struct {
		by   uuid.UUID
		f    algorithm.Filter
		want []domain.VersionRef
	}{
		"ALG-06_search_in_names":             {admin, algorithm.Filter{Search: "PLAIN"}, []domain.VersionRef{plain}},
		"W12_search_in_chinese":              {admin, algorithm.Filter{Search: "排"}, []domain.VersionRef{plain}},
		"ALG-06_search_in_descriptions":      {admin, algorithm.Filter{Search: "SURE"}, []domain.VersionRef{percent, plain}},
		"ALG-06_a_percent_sign_is_one":       {admin, algorithm.Filter{Search: "0%"}, []domain.VersionRef{percent}},
		"ALG-06_an_underscore_is_one":        {admin, algorithm.Filter{Search: "_s"}, []domain.VersionRef{percent}},
		"ALG-06_a_backslash_is_one":          {admin, algorithm.Filter{Search: `\`}, []domain.VersionRef{percent}},
		"ALG-06_a_quote_is_one":              {admin, algorithm.Filter{Search: `'; --`}, nil},
		"ALG-06_by_owner":                    {admin, algorithm.Filter{Owner: bob}, []domain.VersionRef{spoken}},
		"ALG-06_by_project":                  {admin, algorithm.Filter{Project: vision}, []domain.VersionRef{percent, plain}},
		"ALG-06_updated_from":                {admin, algorithm.Filter{From: middle}, []domain.VersionRef{percent}},
		"ALG-06_updated_to":                  {admin, algorithm.Filter{To: middle}, []domain.VersionRef{plain, spoken}},
		"ALG-06_tab_personal":                {alice, algorithm.Filter{Scope: algorithm.ScopePersonal}, []domain.VersionRef{percent, plain}},
		"ALG-06_tab_group":                   {alice, algorithm.Filter{Scope: algorithm.ScopeGroup}, []domain.VersionRef{plain}},
		"ALG-06_tab_group_of_who_is_in_none": {admin, algorithm.Filter{Scope: algorithm.ScopeGroup}, nil},
		"ALG-06_tab_global":                  {alice, algorithm.Filter{Scope: algorithm.ScopeGlobal}, nil},
		"ALG-07_the_published_alone":         {admin, algorithm.Filter{Published: &yes}, []domain.VersionRef{plain, spoken}},
		"ALG-07_the_others":                  {admin, algorithm.Filter{Published: &no}, []domain.VersionRef{percent}},
		"ALG-06_by_state":                    {admin, algorithm.Filter{Statuses: []domain.Status{domain.Created, domain.Deleting}}, []domain.VersionRef{percent}},
		"ALG-10_my_favourites":               {bob, algorithm.Filter{Favorites: true}, []domain.VersionRef{plain}},
		"ALG-10_not_somebody_elses":          {alice, algorithm.Filter{Favorites: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := w.queries.Versions(ctx, viewer(c.by), c.f, order, page.Page{First: 100})
			if err != nil {
				t.Fatal(err)
			}
			var want []uuid.UUID
			for _, r := range c.want {
				want = append(want, r.Version)
			}
			if got := ids(rows.Items, versionID); !slices.Equal(sorted(got), sorted(want)) {
				t.Errorf("gives %d, want %d", len(got), len(want))
			}
			if n, err := w.queries.CountVersions(ctx, viewer(c.by), c.f); n != len(want) || err != nil {
				t.Errorf("counts %d, %v", n, err)
			}
			if c.f.Search+fmt.Sprint(c.f.Statuses) == "[]" && c.f.Published == nil { // the list of names has the same filters
				list, err := w.queries.List(ctx, viewer(c.by), c.f, order, page.Page{First: 100})
				if err != nil || len(list.Items) != len(want) {
					t.Errorf("%d names, %v", len(list.Items), err)
				}
			}
		})
	}
	t.Run("ALG-10_a_deleted_one_is_nobodys_favourite", func(t *testing.T) {
		r := w.create(alice, vision, "short", version("1", ""))
		for _, do := range []func() error{
			func() error { _, err := w.Favorite(ctx, by(alice), r.Algorithm, true); return err },
			func() error { _, err := w.DeleteVersion(ctx, by(alice), r, nil); return err },
		} {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		w.caughtUp()
		if got, err := w.queries.FavoritesOf(ctx, viewer(alice), []uuid.UUID{r.Algorithm}); len(got) != 0 || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}
