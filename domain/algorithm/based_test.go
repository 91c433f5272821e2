package algorithm

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/patch"
	"tallyard/domain/workload"
)

var errCrash = errors.New("the program died")

// dying writes a number of appends and loses the answer of the last, as all
// that come after it.
type dying struct {
	es.Log
	left int
}

func (d *dying) Append(ctx context.Context, stream string, expected es.Expected, events ...es.Raw) (es.Written, error) {
	d.left--
	if d.left >= 0 {
		if w, err := d.Log.Append(ctx, stream, expected, events...); err != nil || d.left > 0 {
			return w, err
		}
	}
	return es.Written{}, errCrash
}

func TestBasedOn(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	base := w.published("base", access.Group)
	mine := w.create(bob, "mine", commanded("1"))

	t.Run("ALG-03_without_own_script_the_files_are_copied", func(t *testing.T) {
		r, err := w.CreateVersion(ctx, by(bob), mine.Algorithm, VersionInput{Label: "2", BasedOn: &base})
		if err != nil {
			t.Fatal(err)
		}
		_, v := w.state(VersionRef{mine.Algorithm, r.Refs.Version})
		if v.Status != Creating || v.Settings.Source.Script.Directory != "mine_2" || v.Settings.Source.Script.Script != "main.py" ||
			v.Settings.Image.Reference != "pytorch:2.6" || v.BasedOn.Version != base.Version || v.BasedOn.Fingerprint == "" {
			t.Errorf("made %+v", v)
		}
	})
	t.Run("ALG-03_with_an_own_script_nothing_is_copied", func(t *testing.T) {
		in := VersionInput{Label: "3", BasedOn: &base, Source: &SourceInput{Directory: "code", Script: "main.py"}}
		r, err := w.CreateVersion(ctx, by(bob), mine.Algorithm, in)
		if err != nil {
			t.Fatal(err)
		}
		if _, v := w.state(VersionRef{mine.Algorithm, r.Refs.Version}); v.Status != Created || v.Settings.Source.Script.Directory != "code" || v.BasedOn == nil {
			t.Errorf("made %+v", v)
		}
	})
	t.Run("ALG-03_what_lies_there_is_not_overwritten", func(t *testing.T) {
		w.disk.taken = []string{"mine_4"}
		_, err := w.CreateVersion(ctx, by(bob), mine.Algorithm, VersionInput{Label: "4", BasedOn: &base})
		if got := codes(err); got != "NAME_TAKEN label" {
			t.Errorf("came to %q", got)
		}
	})
	for name, c := range map[string]struct {
		by   uuid.UUID
		base VersionRef
		then string
	}{
		"ALG-03_not_published":                  {alice, w.create(alice, "raw", commanded("1")), "INVALID_STATE basedOnId"},
		"ALG-05_not_seen":                       {carol, base, "NOT_FOUND basedOnId"},
		"ALG-03_not_there":                      {alice, VersionRef{uuid.New(), uuid.New()}, "NOT_FOUND basedOnId"},
		"ALG-03_a_version_of_another_algorithm": {alice, VersionRef{mine.Algorithm, base.Version}, "NOT_FOUND basedOnId"},
	} {
		t.Run(name, func(t *testing.T) {
			project := vision
			if c.by == carol {
				project = speech
			}
			_, err := w.Create(ctx, by(c.by), CreateInput{Project: project, Name: "based", VersionInput: VersionInput{Label: "1", BasedOn: &c.base}})
			if got := codes(err); got != c.then {
				t.Errorf("came to %q", got)
			}
		})
	}
	t.Run("ALG-03_an_edit_takes_the_files_over", func(t *testing.T) {
		if _, err := w.UpdateVersion(ctx, by(bob), UpdateInput{VersionRef: mine, BasedOn: &base}); err != nil {
			t.Fatal(err)
		}
		if _, v := w.state(mine); v.Status != Creating || v.Settings.Source.Script.Directory != "mine_1" || v.Settings.Source.Command != "" {
			t.Errorf("left %+v", v)
		}
	})
}

func TestUpdate(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	r := w.create(alice, "edited", with(scripted("1"), func(f *Fields) {
		f.Description, f.Parameters, f.Model = patch.To("old"), patch.To([]Pair{{"a", "1"}}), patch.To(v2)
	}))
	update := func(f Fields) error {
		_, err := w.UpdateVersion(ctx, by(alice), UpdateInput{VersionRef: r, Fields: f})
		return err
	}
	t.Run("G12_absent_keeps_null_clears_a_value_sets", func(t *testing.T) {
		if err := update(Fields{Description: patch.Clear[string](), Parameters: patch.Clear[[]Pair](), Environment: patch.To([]Pair{{"B", "2"}})}); err != nil {
			t.Fatal(err)
		}
		s := settings()
		s.Description, s.Environment, s.Model = "", []Pair{{"B", "2"}}, &v2
		if _, v := w.state(r); !same(v.Settings, s) || v.Changes != 2 {
			t.Errorf("left %+v", v)
		}
	})
	t.Run("ALG-12_nothing_changed_no_event", func(t *testing.T) {
		before := len(eventsOf(t, w, r))
		for _, f := range []Fields{{}, {Environment: patch.To([]Pair{{"B", "2"}})}, {Parameters: patch.To([]Pair{})}, {Description: patch.To("")}, {Deployment: patch.Clear[workload.Deployment]()}} {
			if err := update(f); err != nil {
				t.Error(err)
			}
		}
		if after := len(eventsOf(t, w, r)); after != before {
			t.Errorf("%d events", after-before)
		}
	})
	t.Run("G12_what_must_be_there_is_not_cleared", func(t *testing.T) {
		err := update(Fields{Image: patch.Clear[workload.Image]()})
		if got := codes(err); got != "NOT_CLEARABLE image" {
			t.Errorf("came to %q", got)
		}
	})
	t.Run("ALG-02_a_missing_version_is_missing", func(t *testing.T) {
		_, err := w.UpdateVersion(ctx, by(alice), UpdateInput{VersionRef: VersionRef{r.Algorithm, uuid.New()}})
		if got := codes(err); got != "NOT_FOUND" {
			t.Errorf("came to %q", got)
		}
	})
	t.Run("ALG-05_a_published_version_keeps_its_origin", func(t *testing.T) {
		base := w.create(alice, "base", commanded("1"))
		public := w.create(alice, "public", commanded("1"))
		for _, v := range []VersionRef{base, public} {
			if err := w.publish(alice, v, access.Private); err != nil {
				t.Fatal(err)
			}
		}
		_, err := w.UpdateVersion(ctx, by(alice), UpdateInput{VersionRef: public, BasedOn: &base, Fields: Fields{Description: patch.To("new")}})
		if got := codes(err); got != "INVALID_STATE" {
			t.Errorf("came to %q", got)
		}

		// Nor is a place looked for that the copy would have had.
		w.disk.taken = []string{"public_1"}
		files := w.published("files", access.Private)
		_, err = w.UpdateVersion(ctx, by(alice), UpdateInput{VersionRef: public, BasedOn: &files})
		if got := codes(err); got != "INVALID_STATE" {
			t.Errorf("with files came to %q", got)
		}
	})
}

func TestBasedOnAgain(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	base := w.published("base", access.Group)
	r, err := w.CreateVersion(ctx, by(bob), w.create(bob, "mine", commanded("1")).Algorithm, VersionInput{Label: "2", BasedOn: &base})
	if err != nil {
		t.Fatal(err)
	}
	ref := VersionRef{r.Refs.Algorithm, r.Refs.Version}
	_, v := w.state(ref)
	if err := w.Succeeded(ctx, es.System(uuid.New(), "test", "test", acme), Prepare, Step{VersionRef: ref, Operation: v.Operation}); err != nil {
		t.Fatal(err)
	}
	again := func() error {
		_, err := w.UpdateVersion(ctx, by(bob), UpdateInput{VersionRef: ref, BasedOn: &base})
		return err
	}
	t.Run("GEN-05_a_home_without_a_place_is_said_where_it_was_asked_for", func(t *testing.T) {
		w.disk.taken = []string{"mine_2"}
		for i := 2; i <= maxPlaces; i++ {
			w.disk.taken = append(w.disk.taken, fmt.Sprintf("mine_2_%d", i))
		}
		if got := codes(again()); got != "NAME_TAKEN basedOnId" {
			t.Errorf("came to %q", got)
		}
	})
	t.Run("ALG-11_the_copy_of_an_edit_goes_beside_what_the_version_has", func(t *testing.T) {
		w.disk.taken = []string{"mine_2", "mine_2_2"}
		if err := again(); err != nil {
			t.Fatal(err)
		}
		if _, v := w.state(ref); v.Status != Creating || v.Settings.Source.Script.Directory != "mine_2_3" {
			t.Errorf("came to %s, %+v", v.Status, v.Settings.Source)
		}
	})
}

func TestPublishHandler(t *testing.T) {
	w := newWorld(t)
	t.Run("ALG-05_a_visibility_that_is_none", func(t *testing.T) {
		if got := codes(w.publish(alice, w.create(alice, "odd", commanded("1")), "WORLD")); got != "INVALID_VALUE visibility" {
			t.Errorf("came to %q", got)
		}
	})
	for vis, seen := range map[access.Visibility][5]bool{ // alice, bob, carol, audra, mallory
		access.Private: {true, false, false, true, false}, access.Group: {true, true, false, true, false}, access.Global: {true, true, true, true, false},
	} {
		t.Run("ALG-05_"+string(vis)+"_is_seen_by_its_scope", func(t *testing.T) {
			r := w.published("seen_"+string(vis), vis)
			s, _ := w.state(r)
			for i, user := range []uuid.UUID{alice, bob, carol, audra, mallory} {
				if _, ok := s.Cut(people[user]); ok != seen[i] {
					t.Errorf("%d sees it: %v", i, ok)
				}
			}
		})
	}
	t.Run("ALG-12_the_batch_never_takes_published_ones", func(t *testing.T) {
		r, raw := w.published("kept", access.Group), w.create(alice, "unpublished", scripted("1"))
		_, err := w.DeleteInBatch(t.Context(), by(alice), r)
		if got := codes(err); got != "NOT_ALLOWED ids" {
			t.Errorf("came to %q", got)
		}
		if _, err := w.DeleteInBatch(t.Context(), by(alice), raw); err != nil {
			t.Error(err)
		}
	})
}

func TestFavorites(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	r := w.published("liked", access.Group)
	like := func(user uuid.UUID, on bool) string {
		_, err := w.Favorite(ctx, by(user), r.Algorithm, on)
		return codes(err)
	}
	likes := func(user uuid.UUID) int {
		l, err := es.Load(ctx, w.Runtime, FavoritesAggregate, acme, user)
		if err != nil {
			t.Fatal(err)
		}
		return len(l.State.Algorithms)
	}
	t.Run("ALG-10_twice_is_once", func(t *testing.T) {
		if a, b := like(bob, true), like(bob, true); a+b != "" || likes(bob) != 1 || likes(alice) != 0 {
			t.Errorf("%q, %q, %d", a, b, likes(bob))
		}
		if a, b := like(bob, false), like(bob, false); a+b != "" || likes(bob) != 0 {
			t.Errorf("%q, %q, %d", a, b, likes(bob))
		}
	})
	t.Run("ALG-10_what_is_not_seen_can_only_be_taken_out", func(t *testing.T) {
		if got := like(carol, true); got != "NOT_FOUND id" {
			t.Errorf("came to %q", got)
		}
		if got := like(carol, false); got != "" {
			t.Errorf("came to %q", got)
		}
	})
	t.Run("TEN-02_auditors_like_nothing", func(t *testing.T) {
		if got := like(audra, true); got != "FORBIDDEN" {
			t.Errorf("came to %q", got)
		}
	})
}

// same compares by the stored form, which is what counts.
func same(a, b any) bool {
	return string(es.ValueOf(a)) == string(es.ValueOf(b))
}
