package algorithm

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/workload"
)

// at tells the codes of a refusal with their fields, "REQUIRED source".
func codes(err error) string {
	faults, ok := fault.All(err)
	if !ok {
		if err != nil {
			return err.Error()
		}
		return ""
	}
	list := make([]string, len(faults))
	for i, f := range faults {
		list[i] = strings.TrimSpace(string(f.Code) + " " + strings.Join(f.Field, "."))
	}
	return strings.Join(list, ", ")
}

func TestNames(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct{ value, label, then string }{
		"ALG-01_letters_digits_underscore":    {"Sort_2", "1.0-rc_1", ""},
		"W12_chinese":                         {"排序", "初版", ""},
		"W12_one_japanese_letter":             {"ソ", "1", ""},
		"ALG-01_64_characters":                {strings.Repeat("字", 64), strings.Repeat("字", 32), ""},
		"ALG-01_65_characters":                {strings.Repeat("a", 65), "1", "TOO_LONG name"},
		"ALG-01_33_characters_of_a_label":     {"label33", strings.Repeat("a", 33), "TOO_LONG label"},
		"GEN-01_10000_characters":             {strings.Repeat("字", 10_000), "1", "TOO_LONG name"},
		"GEN-01_100000_characters":            {strings.Repeat("字", 100_000), "1", "TOO_LONG name"},
		"ALG-01_empty":                        {"", "", "REQUIRED name, REQUIRED label"},
		"ALG-01_begins_with_underscore":       {"_sort", "1", "INVALID_CHARACTERS name"},
		"ALG-01_hyphen_in_a_name":             {"so-rt", "1", "INVALID_CHARACTERS name"},
		"ALG-01_slash_in_a_label":             {"slash", "../1", "INVALID_CHARACTERS label"},
		"GEN-01_NUL":                          {"a\x00b", "1", "INVALID_CHARACTERS name"},
		"GEN-01_control_character_in_a_label": {"control", "1\x07", "INVALID_CHARACTERS label"},
		"GEN-01_not_UTF-8":                    {"a\xff", "1", "INVALID_CHARACTERS name"},
		"GEN-01_hidden_direction":             {"a\u202eb", "1", "INVALID_CHARACTERS name"},
		"GEN-01_a_lone_mark":                  {"\u0301a", "1", "INVALID_CHARACTERS name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Create(t.Context(), by(alice), CreateInput{Project: vision, Name: c.value, VersionInput: commanded(c.label)})
			if got := codes(err); got != c.then {
				t.Errorf("came to %q, want %q", got, c.then)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Error("the refusal repeats the name")
			}
		})
	}
	t.Run("GEN-01_NFC_and_NFD_twins_are_one_name", func(t *testing.T) {
		r := w.create(alice, "cafe\u0301", commanded("1"))
		if s, _ := w.state(r); s.Name != "caf\u00e9" {
			t.Errorf("kept as %+q", s.Name)
		}
		_, err := w.Create(t.Context(), by(bob), CreateInput{Project: vision, Name: "caf\u00e9", VersionInput: commanded("1")})
		if got := codes(err); got != "NAME_TAKEN name" {
			t.Errorf("came to %q", got)
		}
	})
	t.Run("ALG-01_a_name_is_unique_in_its_project_only", func(t *testing.T) {
		w.create(alice, "twice", commanded("1"))
		if _, err := w.Create(t.Context(), by(carol), CreateInput{Project: speech, Name: "twice", VersionInput: commanded("1")}); err != nil {
			t.Error(err)
		}
	})
	t.Run("ALG-08_a_name_is_free_after_the_last_version", func(t *testing.T) {
		r := w.create(alice, "again", commanded("1"))
		if _, err := w.DeleteVersion(t.Context(), by(alice), r, nil); err != nil {
			t.Fatal(err)
		}
		w.create(bob, "again", commanded("1"))
	})
}

func TestCreate(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		by      uuid.UUID
		project uuid.UUID
		in      VersionInput
		then    string
	}{
		"ALG-01_a_script":                   {alice, vision, scripted("1"), ""},
		"ALG-01_a_command":                  {alice, vision, commanded("1"), ""},
		"ALG-01_nothing_to_run":             {alice, vision, VersionInput{Label: "1", Fields: imaged()}, "REQUIRED source"},
		"ALG-01_both":                       {alice, vision, VersionInput{Label: "1", Fields: imaged(), Source: &SourceInput{Command: "a", Script: "b"}}, "INVALID_VALUE source"},
		"ALG-01_a_script_without_directory": {alice, vision, VersionInput{Label: "1", Fields: imaged(), Source: &SourceInput{Script: "b"}}, "REQUIRED source.script.directory"},
		"ALG-01_a_script_that_is_not_there": {alice, vision, VersionInput{Label: "1", Fields: imaged(), Source: &SourceInput{Directory: "no", Script: "b"}}, "INVALID_PATH source.script.directory"},
		"ALG-01_no_image":                   {alice, vision, VersionInput{Label: "1", Source: &SourceInput{Command: "a"}}, "REQUIRED image"},
		"ALG-01_everything_wrong_at_once":   {alice, vision, VersionInput{Label: "/"}, "INVALID_CHARACTERS label, REQUIRED source, REQUIRED image"},
		"ALG-01_a_wrong_deployment":         {alice, vision, with(commanded("1"), func(f *Fields) { f.Deployment = patch.To(workload.PSWorker) }), "NOT_ALLOWED deploymentType"},
		"ALG-01_a_framework_that_is_none":   {alice, vision, with(commanded("1"), func(f *Fields) { f.Image = patch.To(workload.Image{Framework: "COBOL", Reference: "x"}) }), "INVALID_VALUE image.framework"},
		"ALG-01_a_model_that_is_seen":       {alice, vision, with(commanded("1"), func(f *Fields) { f.Model = patch.To(v2) }), ""},
		"ALG-01_a_model_that_is_not":        {alice, vision, with(commanded("1"), func(f *Fields) { f.Model = patch.To(v1) }), "NOT_FOUND modelId"},
		"ALG-01_a_parameter_twice":          {alice, vision, with(commanded("1"), func(f *Fields) { f.Parameters = patch.To([]Pair{{"a", "1"}, {"a", "2"}}) }), "DUPLICATE parameters.1.name"},
		"ALG-01_a_variable_no_shell_takes":  {alice, vision, with(commanded("1"), func(f *Fields) { f.Environment = patch.To([]Pair{{"1A", "1"}}) }), "INVALID_CHARACTERS environment.0.name"},
		"ALG-01_too_many_parameters":        {alice, vision, with(commanded("1"), func(f *Fields) { f.Parameters = patch.To(make([]Pair, 201)) }), "TOO_MANY parameters"},
		"GEN-01_NUL_in_a_description":       {alice, vision, with(commanded("1"), func(f *Fields) { f.Description = patch.To("a\x00") }), "INVALID_CHARACTERS description"},
		"TEN-02_not_a_member":               {carol, vision, commanded("1"), "NOT_FOUND projectId"},
		"TEN-02_an_auditor":                 {audra, vision, commanded("1"), "FORBIDDEN"},
		"TEN-01_of_another_tenant":          {uuid.New(), vision, commanded("1"), "NOT_FOUND projectId"},
		"TEN-02_a_tenant_admin":             {admin, vision, commanded("1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := by(c.by)
			cmd.Tenant = acme
			r, err := w.Create(t.Context(), cmd, CreateInput{Project: c.project, Name: "n" + strings.ReplaceAll(uuid.NewString(), "-", "_"), VersionInput: c.in})
			if got := codes(err); got != c.then {
				t.Fatalf("came to %q, want %q", got, c.then)
			}
			if err == nil {
				s, v := w.state(VersionRef{r.Refs.Algorithm, r.Refs.Version})
				if s.Owner != c.by || s.Project != vision || v.Status != Created || v.Changes != 1 || s.Changes != 1 || r.Refs.At != 1 {
					t.Errorf("made %+v, %+v", s, r)
				}
			}
		})
	}
	t.Run("ALG-01_the_deployment_is_chosen_from_framework_and_workers", func(t *testing.T) {
		for i, c := range []struct {
			f       workload.Framework
			workers int
			servers int
			then    workload.Deployment
		}{
			{workload.TensorFlow, 2, 1, workload.PSWorker},
			{workload.PyTorch, 2, 0, workload.MasterWorker},
			{workload.MXNet, 2, 1, workload.ServerWorker},
			{workload.PaddlePaddle, 2, 0, workload.Collective},
			{workload.TensorFlow, 1, 0, workload.Single},
			{workload.Other, 0, 0, workload.Single},
		} {
			r := w.create(alice, fmt.Sprint("deployed", i), with(commanded("1"), func(f *Fields) {
				f.Image = patch.To(workload.Image{Framework: c.f, Reference: "x"})
				f.Resources = patch.To(workload.Resources{Workers: c.workers, Servers: c.servers})
			}))
			if _, v := w.state(r); v.Settings.Deployment != c.then {
				t.Errorf("%s with %d: %s", c.f, c.workers, v.Settings.Deployment)
			}
		}
	})
}

func with(in VersionInput, change func(*Fields)) VersionInput {
	change(&in.Fields)
	return in
}

// TestAtOnce holds what races come to.
func TestAtOnce(t *testing.T) {
	race := func(n int, f func(i int) error) (won int, lost []error) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for i := range n {
			wg.Go(func() {
				err := f(i)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else {
					lost = append(lost, err)
				}
			})
		}
		wg.Wait()
		return won, lost
	}
	t.Run("W24_the_same_label_by_two_clients", func(t *testing.T) {
		w := newWorld(t)
		r := w.create(alice, "raced", commanded("1"))
		won, lost := race(16, func(int) error {
			_, err := w.CreateVersion(t.Context(), by(alice), r.Algorithm, commanded("2"))
			return err
		})
		for _, err := range lost {
			if codes(err) != "VERSION_TAKEN label" {
				t.Error(err)
			}
		}
		if s, _ := w.state(r); won != 1 || len(s.Versions) != 2 {
			t.Errorf("%d won, %d versions", won, len(s.Versions))
		}
	})
	t.Run("GEN-04_32_publish_one_wins_the_others_are_told", func(t *testing.T) {
		w := newWorld(t)
		r := w.create(alice, "raced", scripted("1"))
		won, lost := race(32, func(int) error { return w.publish(alice, r, access.Global) })
		for _, err := range lost {
			if codes(err) != "INVALID_STATE" {
				t.Error(err)
			}
		}
		if _, v := w.state(r); won != 1 || v.Status != Publishing {
			t.Errorf("%d won, left %s", won, v.Status)
		}
	})
	t.Run("GEN-03_the_same_key_50_times_is_one_publication", func(t *testing.T) {
		w := newWorld(t)
		r := w.create(alice, "raced", commanded("1"))
		var mu sync.Mutex
		answers := map[string]int{}
		won, lost := race(50, func(int) error {
			cmd := by(alice)
			cmd.Key, cmd.Digest = "key", []byte("in")
			res, err := w.PublishVersion(t.Context(), cmd, PublishInput{VersionRef: r, Visibility: access.Group})
			mu.Lock()
			defer mu.Unlock()
			answers[fmt.Sprint(res.Refs, res.Position, res.Command)]++
			return err
		})
		if s, _ := w.state(r); won != 50 || len(answers) != 1 || s.Changes != 2 {
			t.Errorf("%d won (%v), answers %v, %d changes", won, lost, answers, s.Changes)
		}
	})
	t.Run("GEN-03_create_dies_after_each_append_and_is_finished", func(t *testing.T) {
		w := newWorld(t)
		log := w.Runtime.Log
		for n := 1; n <= 4; n++ {
			cmd := by(alice)
			cmd.Key, cmd.Digest = fmt.Sprint("key", n), []byte("in")
			in := CreateInput{Project: vision, Name: fmt.Sprint("died", n), VersionInput: scripted("1")}
			w.Runtime.Log = &dying{Log: log, left: n}
			_, err := w.Create(t.Context(), cmd, in)
			w.Runtime.Log = log
			if err == nil {
				t.Fatalf("at append %d it lived", n)
			}
			r, err := w.Create(t.Context(), cmd, in)
			if err != nil {
				t.Fatalf("at append %d: %v", n, err)
			}
			s, _ := w.state(VersionRef{r.Refs.Algorithm, r.Refs.Version})
			holder, ok, err := w.Runtime.Holder(t.Context(), acme, nameOf(in.Name, vision))
			if len(s.Versions) != 1 || r.Refs.At != 1 || !ok || err != nil || holder != Aggregate.Stream(acme, s.ID) {
				t.Errorf("at append %d: %+v, held by %v, %v", n, s, holder, err)
			}
		}
	})
}

func eventsOf(t *testing.T, w *world, r VersionRef) []es.Event {
	t.Helper()
	var list []es.Event
	for env, err := range es.Events(t.Context(), w.Runtime, Aggregate.Stream(acme, r.Algorithm), 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, env.Event)
	}
	return list
}
