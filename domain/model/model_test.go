package model

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/internal/golden"
	"tallyard/domain/patch"
)

func TestEventsKeepTheirShape(t *testing.T) {
	of := OfVersion{v1}
	golden.Check(t, Types,
		ModelCreated{Name: "图像_1", Owner: alice, Project: vision},
		OwnershipTransferred{alice, bob},
		ModelDeleted{Name: "图像_1", Project: vision},
		VersionImported{OfVersion: of, Number: 3, Directory: Directory{home, "weights"}, Details: Details{
			Description: "sees cats", Scenario: "vision", Data: "cats", Image: "pytorch:2.6", Script: "run.py",
			Parameters: []Pair{{"lr", "0.1"}}, Metrics: []Metric{{"accuracy", 0.93}}, Origin: External,
		}},
		VersionEdited{of, Fields{Description: patch.To("new"), Metrics: patch.To([]Metric{{"f1", 1}})}, Fields{Description: patch.To("sees cats"), Metrics: patch.To([]Metric{{"f1", 0.5}})}},
		VisibilityChanged{of, access.Private, access.Global},
		VersionDeleted{of, 3, Valid},
	)
}

func TestImport(t *testing.T) {
	w := newWorld(t)
	first, err := w.Import(t.Context(), w.by(alice, "importModel"), imports("cats", 1))
	if err != nil {
		t.Fatal(err)
	}
	with := func(f func(*ImportInput)) ImportInput { return imports("dogs", 1, f) }
	for name, c := range map[string]struct {
		user uuid.UUID
		in   ImportInput
		want string
	}{
		"MDL-01_one_more_version":               {alice, imports("cats", 2), ""},
		"MDL-01_a_number_that_there_is":         {alice, imports("cats", 1), "VERSION_TAKEN version"},
		"MDL-01_a_name_of_somebody_else":        {bob, imports("cats", 9), "NAME_TAKEN name"},
		"MDL-01_nor_does_an_admin_add_to_it":    {admin, imports("cats", 9), "NAME_TAKEN name"},
		"MDL-01_no_name":                        {alice, imports("", 1), "REQUIRED name"},
		"MDL-01_a_name_that_begins_with_a_line": {alice, imports("_x", 1), "INVALID_CHARACTERS name"},
		"MDL-01_a_number_below_one":             {alice, imports("dogs", 0), "OUT_OF_RANGE version"},
		"MDL-01_a_number_above_all":             {alice, imports("dogs", math.MaxInt32+1), "OUT_OF_RANGE version"},
		"MDL-01_no_scenario":                    {alice, with(func(in *ImportInput) { in.Fields.Scenario = patch.Keep[string]() }), "REQUIRED scenario"},
		"MDL-01_no_directory":                   {alice, with(func(in *ImportInput) { in.Directory = "" }), "REQUIRED directory"},
		"MDL-01_a_directory_that_is_not":        {alice, with(func(in *ImportInput) { in.Directory = "void" }), "INVALID_PATH directory"},
		"MDL-01_a_script_of_another_kind":       {alice, with(func(in *ImportInput) { in.Fields.Script = patch.To("run.sh") }), "INVALID_PATH script, INVALID_VALUE script"},
		"MDL-01_a_metric_that_is_no_number":     {alice, with(func(in *ImportInput) { in.Fields.Metrics = patch.To([]Metric{{"f1", math.NaN()}}) }), "INVALID_VALUE metrics.0.value"},
		"MDL-01_a_parameter_twice":              {alice, with(func(in *ImportInput) { in.Fields.Parameters = patch.To([]Pair{{"a", "1"}, {"a", "2"}}) }), "DUPLICATE parameters.1.name"},
		"MDL-01_another_project":                {alice, with(func(in *ImportInput) { in.Project = home }), "NOT_FOUND projectId"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.Import(t.Context(), w.by(c.user, "importModel"), c.in)
			if codes(err) != c.want || (err == nil && got.Refs.Model != first.Refs.Model) {
				t.Errorf("%v %q, want %q", got.Refs, codes(err), c.want)
			}
		})
	}
}

// TestTwoAtOnce lets several make the same version at the same moment.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	for n, c := range []struct {
		name   string
		people [4]uuid.UUID
		number func(i int) int
		made   int
	}{
		{"MDL-01_the_same_number_is_given_once", [4]uuid.UUID{alice, alice, alice, alice}, func(int) int { return 1 }, 1},
		{"MDL-01_different_numbers_all_come", [4]uuid.UUID{alice, alice, alice, alice}, func(i int) int { return i + 1 }, 4},
		{"MDL-01_of_two_people_one_gets_the_name", [4]uuid.UUID{alice, bob, alice, bob}, func(int) int { return 1 }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all sync.WaitGroup
			results, faults := [4]es.Result[Refs]{}, [4]error{}
			for i := range 4 {
				all.Go(func() {
					results[i], faults[i] = w.Import(t.Context(), w.by(c.people[i], "importModel"), imports(fmt.Sprint("rush", n), c.number(i)))
				})
			}
			all.Wait()
			made, model := 0, uuid.Nil
			for i, err := range faults {
				if err != nil {
					if got := codes(err); got != "VERSION_TAKEN version" && got != "NAME_TAKEN name" {
						t.Errorf("%v", err)
					}
					continue
				}
				made++
				if model != uuid.Nil && model != results[i].Refs.Model {
					t.Error("two models of one name")
				}
				model = results[i].Refs.Model
			}
			if made != c.made {
				t.Errorf("%d came to be, not %d", made, c.made)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	w := newWorld(t)
	made, err := w.Import(t.Context(), w.by(alice, "importModel"), imports("cats", 1))
	if err != nil {
		t.Fatal(err)
	}
	ref := VersionRef{made.Refs.Model, made.Refs.Version}
	t.Run("MDL-04_refused_while_in_use", func(t *testing.T) {
		w.around.uses = []Use{{"algorithm", "sort v1"}, {"algorithm", "sort v2"}}
		_, err := w.Delete(t.Context(), w.by(alice, "deleteModels"), ref)
		if codes(err) != "IN_USE" || err.Error() == "" {
			t.Errorf("%v", err)
		}
		w.around.uses = nil
	})
	t.Run("MDL-04_by_the_owner_alone", func(t *testing.T) {
		for user, want := range map[uuid.UUID]string{bob: "NOT_FOUND", admin: "FORBIDDEN"} {
			if _, err := w.Delete(t.Context(), w.by(user, "deleteModels"), ref); codes(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	})
	t.Run("MDL-04_the_name_is_free_after_the_last_version", func(t *testing.T) {
		if _, err := w.Delete(t.Context(), w.by(alice, "deleteModels"), ref); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Import(t.Context(), w.by(bob, "importModel"), imports("cats", 1)); err != nil {
			t.Error(err)
		}
	})
	t.Run("MDL-04_also_when_its_deletion_died_before", func(t *testing.T) {
		made, err := w.Import(t.Context(), w.by(alice, "importModel"), imports("mice", 1))
		if err != nil {
			t.Fatal(err)
		}
		decide := decideDelete(people[alice], made.Refs.Version, nil)
		if _, err := es.Execute(t.Context(), w.Runtime, w.by(alice, "deleteModels"), Aggregate, made.Refs.Model, decide); err != nil {
			t.Fatal(err)
		}
		again, err := w.Import(t.Context(), w.by(bob, "importModel"), imports("mice", 1))
		if err != nil || again.Refs.Model == made.Refs.Model {
			t.Errorf("%v %v", again.Refs, err)
		}
	})
}

func TestTransfer(t *testing.T) {
	w := newWorld(t)
	made, err := w.Import(t.Context(), w.by(alice, "importModel"), imports("cats", 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name     string
		from, to uuid.UUID
		moved    bool
	}{
		{"TEN-05_not_what_is_somebody_elses", bob, admin, false},
		{"TEN-05_it_moves", alice, bob, true},
		{"TEN-05_once", alice, bob, false},
	} {
		t.Run(step.name, func(t *testing.T) {
			moved, err := w.Transfer(t.Context(), w.by(admin, "transferOwnership"), made.Refs.Model, step.from, step.to)
			if err != nil || moved != step.moved {
				t.Errorf("%v %v", moved, err)
			}
		})
	}
	t.Run("TEN-05_the_new_owner_goes_on_with_it", func(t *testing.T) {
		if _, err := w.Import(t.Context(), w.by(bob, "importModel"), imports("cats", 2)); err != nil {
			t.Error(err)
		}
		if _, err := w.Import(t.Context(), w.by(alice, "importModel"), imports("cats", 3)); codes(err) != "NAME_TAKEN name" {
			t.Error(err)
		}
	})
}

func TestShare(t *testing.T) {
	w := newWorld(t)
	made, err := w.Import(t.Context(), w.by(alice, "importModel"), imports("cats", 1))
	if err != nil {
		t.Fatal(err)
	}
	ref := VersionRef{made.Refs.Model, made.Refs.Version}
	share := func(user uuid.UUID, v access.Visibility) error {
		_, err := w.Share(t.Context(), w.by(user, "shareModels"), ref, v)
		return err
	}
	for _, step := range []struct {
		name string
		err  func() error
		want string
		bob  bool
	}{
		{"MDL-03_private_at_first", func() error { return nil }, "", false},
		{"MDL-03_an_admin_does_not_share", func() error { return share(admin, access.Group) }, "FORBIDDEN", false},
		{"MDL-03_private_is_no_sharing", func() error { return share(alice, access.Private) }, "INVALID_VALUE visibility", false},
		{"MDL-03_shared", func() error { return share(alice, access.Group) }, "", true},
		{"MDL-03_others_do_not_widen", func() error { return share(bob, access.Global) }, "FORBIDDEN", true},
		{"MDL-03_taken_back", func() error {
			_, err := w.Unshare(t.Context(), w.by(alice, "unshareModels"), ref)
			return err
		}, "", false},
	} {
		t.Run(step.name, func(t *testing.T) {
			if got := codes(step.err()); got != step.want {
				t.Errorf("%q, want %q", got, step.want)
			}
			sees, err := w.Sees(t.Context(), people[bob], ref.Model)
			if err != nil || sees != step.bob {
				t.Errorf("bob sees it: %v, %v", sees, err)
			}
		})
	}
	t.Run("GEN-04_an_edit_of_an_older_state_is_refused", func(t *testing.T) {
		old := 1
		_, err := w.UpdateVersion(t.Context(), w.by(alice, "updateModelVersion"), UpdateInput{VersionRef: ref, Expected: &old, Fields: Fields{Data: patch.To("x")}})
		if codes(err) != "VERSION_CONFLICT expectedVersion" {
			t.Errorf("%v", err)
		}
	})
}
