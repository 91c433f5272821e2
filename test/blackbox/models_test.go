package blackbox_test

import (
	"slices"
	"sync"
	"testing"
)

// modelOf is a valid importModel.
func (w *world) modelOf(name string, version int) vars {
	return vars{
		"projectId": w.project, "name": name, "version": version, "scenario": "image classification", "directory": "resnet",
		"parameters": []vars{{"name": "layers", "value": "18"}, {"name": "lr", "value": "0.1"}},
		"metrics":    []vars{{"name": "accuracy", "value": 0.93}},
	}
}

// imported makes a model of the owner with one version, which it gives.
func (w *world) imported(visibility string) string {
	w.t.Helper()
	id := w.owner.do("importModel", w.modelOf(unique("model"), 1)).str("modelVersion.id")
	if visibility != "" {
		w.owner.do("shareModels", vars{"ids": []string{id}, "visibility": visibility})
	}
	return id
}

// usedModel makes one that an algorithm starts from.
func (w *world) usedModel() string {
	w.t.Helper()
	made := w.owner.do("importModel", w.modelOf(unique("used"), 1))
	w.create(with(w.command(unique("uses")), vars{"modelId": made.str("model.id")}))
	w.owner.settled()
	return made.str("modelVersion.id")
}

const seeModels = `query($f: ModelFilter, $o: ModelOrder) { models(filter: $f, orderBy: $o, first: 100) { totalCount nodes { id name
	owner { id } latestVersion { number state visibility scenario description metrics { name value } parameters { name } createdAt } } } }`

func (c client) models(filter vars, direction string) []string {
	c.t.Helper()
	v := vars{"f": filter}
	if direction != "" {
		v["o"] = vars{"field": "CREATED_AT", "direction": direction}
	}
	return c.ask(seeModels, v).strs("models.nodes", "name")
}

func TestImportModel(t *testing.T) {
	w := newWorld(t)
	name := "图像_" + unique("m")
	first := w.owner.do("importModel", with(w.modelOf(name, 1), vars{"script": "train.py", "origin": "EXTERNAL", "description": "sees cats"}))
	t.Run("MDL-01_all_of_it_is_kept", func(t *testing.T) {
		got := w.owner.ask(`query($id: ID!) { modelVersion(id: $id) { number state visibility scenario script directory description origin
			parameters { name value } metrics { name value } model { name owner { id } project { id } } } }`, vars{"id": first.str("modelVersion.id")}).at("modelVersion")
		want := `{"description":"sees cats","directory":"resnet","metrics":[{"name":"accuracy","value":0.93}],"model":{"name":"` + name +
			`","owner":{"id":"` + w.ownerID + `"},"project":{"id":"` + w.project + `"}},"number":1,"origin":"EXTERNAL","parameters":[{"name":"layers","value":"18"},{"name":"lr","value":"0.1"}],` +
			`"scenario":"image classification","script":"train.py","state":"VALID","visibility":"PRIVATE"}`
		if got.String() != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
	t.Run("MDL-01_another_version_joins_the_name", func(t *testing.T) {
		got := w.owner.do("importModel", w.modelOf(name, 7))
		if got.str("model.id") != first.str("model.id") || got.str("modelVersion.number") != "7" {
			t.Errorf("%s", got)
		}
	})
	t.Run("MDL-01_a_number_is_given_once", func(t *testing.T) {
		w.owner.refuse("importModel", w.modelOf(name, 7), "VERSION_TAKEN")
	})
	t.Run("MDL-01_a_name_has_one_owner_in_the_project", func(t *testing.T) {
		w.peer.upload("resnet/train.py", script)
		w.peer.refuse("importModel", w.modelOf(name, 8), "NAME_TAKEN")
		other := newWorld(t)
		other.owner.do("importModel", other.modelOf(name, 1))
	})
	t.Run("MDL-01_all_faults_at_once", func(t *testing.T) {
		w.owner.refuse("importModel", with(w.modelOf("_x", 0), vars{"scenario": "", "directory": "none", "script": "run.sh"}),
			"INVALID_CHARACTERS", "OUT_OF_RANGE", "INVALID_PATH", "REQUIRED", "INVALID_VALUE")
	})
	t.Run("MDL-01_an_empty_directory_is_no_model", func(t *testing.T) {
		w.owner.do("createDirectory", vars{"path": "void"})
		w.owner.refuse("importModel", with(w.modelOf(unique("m"), 1), vars{"directory": "void"}), "INVALID_PATH")
	})
	t.Run("STO-02_the_directory_is_marked_shared", func(t *testing.T) {
		w.owner.upload("weights/w.bin", "1")
		w.owner.upload("other/w.bin", "1")
		w.owner.do("importModel", with(w.modelOf(unique("m"), 1), vars{"directory": "weights"}))
		w.owner.settled()
		home := w.owner.ask(`{ me { home { id } } }`, nil).str("me.home.id")
		marks := map[string]string{}
		for _, f := range w.owner.ask(`query($id: ID!) { files(spaceId: $id) { nodes { name shared } } }`, vars{"id": home}).list("files.nodes") {
			marks[f.str("name")] = f.str("shared")
		}
		if marks["weights"] != "true" || marks["other"] != "false" {
			t.Errorf("%v", marks)
		}
	})
	t.Run("MDL-01_two_at_once_make_one_version", func(t *testing.T) {
		name, codes := unique("rush"), make([]string, 4)
		var all sync.WaitGroup
		for i := range codes {
			all.Go(func() { codes[i] = w.owner.attempt("importModel", w.modelOf(name, 1)).str("userErrors.0.code") })
		}
		all.Wait()
		slices.Sort(codes)
		if codes[0] != "" || codes[1] == "" {
			t.Errorf("%q", codes)
		}
		w.owner.settled()
		if got := w.owner.models(vars{"search": name}, ""); len(got) != 1 {
			t.Errorf("%v", got)
		}
	})
}

func TestModels(t *testing.T) {
	w := newWorld(t)
	cats, dogs := unique("cats"), unique("dogs")
	made := w.owner.do("importModel", with(w.modelOf(cats, 1), vars{"description": "whiskers 100%"}))
	w.owner.do("importModel", w.modelOf(cats, 2))
	last := w.owner.do("importModel", w.modelOf(dogs, 1))
	w.owner.settled()
	t.Run("MDL-09_one_row_per_name_with_its_versions_folded", func(t *testing.T) {
		got := w.owner.ask(seeModels, vars{"f": vars{"projectId": w.project}}).at("models")
		if got.str("totalCount") != "2" || got.str("nodes.1.name") != cats || got.str("nodes.1.latestVersion.number") != "2" {
			t.Errorf("%s", got)
		}
		versions := w.owner.ask(`query($id: ID!) { model(id: $id) { versions(first: 10) { totalCount nodes { number } } } }`, vars{"id": made.str("model.id")})
		if got := versions.strs("model.versions.nodes", "number"); !slices.Equal(got, []string{"2", "1"}) {
			t.Errorf("%s", versions)
		}
	})
	t.Run("MDL-09_both_ways", func(t *testing.T) {
		if got := w.owner.models(vars{"projectId": w.project}, "ASC"); !slices.Equal(got, []string{cats, dogs}) {
			t.Errorf("%v", got)
		}
		if got := w.owner.models(vars{"projectId": w.project}, "DESC"); !slices.Equal(got, []string{dogs, cats}) {
			t.Errorf("%v", got)
		}
	})
	at := w.owner.ask(`query($id: ID!) { modelVersion(id: $id) { createdAt } }`, vars{"id": last.str("modelVersion.id")}).str("modelVersion.createdAt")
	for name, c := range map[string]struct {
		filter vars
		want   []string
	}{
		"a_part_of_the_name":         {vars{"search": cats[1:]}, []string{cats}},
		"a_part_of_the_description":  {vars{"search": "WHISKERS 100%"}, []string{cats}},
		"signs_stand_for_themselves": {vars{"search": "w_iskers"}, nil},
		"status":                     {vars{"state": "VALID"}, []string{dogs, cats}},
		"imported_from":              {vars{"importedFrom": at}, []string{dogs}},
		"imported_to":                {vars{"importedTo": at}, []string{cats}},
		"owner":                      {vars{"ownerId": w.peerID}, nil},
	} {
		t.Run("MDL-09_by_"+name, func(t *testing.T) {
			if got := w.owner.models(with(c.filter, vars{"projectId": w.project}), ""); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	t.Run("MDL-10_edit", func(t *testing.T) {
		id := made.str("modelVersion.id")
		got := w.owner.do("updateModelVersion", vars{"id": id, "description": nil, "scenario": "ears", "expectedVersion": 1, "metrics": []vars{{"name": "f1", "value": 1}}})
		if got.str("modelVersion.scenario") != "ears" || got.str("modelVersion.description") != "" || got.str("modelVersion.metrics.0.name") != "f1" || got.str("modelVersion.version") != "2" {
			t.Errorf("%s", got)
		}
		w.owner.refuse("updateModelVersion", vars{"id": id, "expectedVersion": 1}, "VERSION_CONFLICT")
		w.owner.refuse("updateModelVersion", vars{"id": id, "scenario": nil}, "NOT_CLEARABLE")
		w.owner.refuse("updateModelVersion", vars{"id": id, "script": "none.py"}, "INVALID_PATH")
		w.peer.refuse("updateModelVersion", vars{"id": id, "scenario": "x"}, "NOT_FOUND")
	})
	t.Run("AUD-03_MDL-10_the_past_and_the_history", func(t *testing.T) {
		id := made.str("modelVersion.id")
		list := w.owner.ask(`query($id: ID!) { modelVersion(id: $id) { `+entries+` } }`, vars{"id": id}).list("modelVersion.history.nodes")
		if len(list) != 2 || list[1].str("event") != "model.version_edited.v1" {
			t.Fatalf("%v", list)
		}
		was := w.owner.ask(`query($id: ID!, $at: Position) { modelVersion(id: $id, asOfPosition: $at) { scenario } }`, vars{"id": id, "at": list[0].str("position")})
		if was.str("modelVersion.scenario") != "image classification" {
			t.Errorf("%s", was)
		}
	})
}

func TestShareModels(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	name := unique("share")
	made := w.owner.do("importModel", w.modelOf(name, 1))
	id, whole := made.str("modelVersion.id"), made.str("model.id")
	second := w.owner.do("importModel", w.modelOf(name, 2)).str("modelVersion.id")
	seen := func(c client) string {
		c.settled()
		return c.ask(`query($v: ID!, $s: ID!, $m: ID!) { modelVersion(id: $v) { number } second: modelVersion(id: $s) { number } model(id: $m) { latestVersion { number } } }`,
			vars{"v": id, "s": second, "m": whole}).String()
	}
	const nothing, first = `{"model":null,"modelVersion":null,"second":null}`, `{"model":{"latestVersion":{"number":1}},"modelVersion":{"number":1},"second":null}`
	for _, step := range []struct{ name, mutation, visibility, peer, other string }{
		{"private_at_first", "", "", nothing, nothing},
		{"shared_with_the_project", "shareModels", "GROUP", first, nothing},
		{"widened_to_the_tenant", "shareModels", "GLOBAL", first, first},
		{"and_taken_back", "unshareModels", "", nothing, nothing},
	} {
		t.Run("MDL-03_"+step.name, func(t *testing.T) {
			in := vars{"ids": []string{id}}
			if step.visibility != "" {
				in["visibility"] = step.visibility
			}
			if step.mutation != "" {
				if got := w.owner.do(step.mutation, in); len(got.list("results.0.userErrors")) != 0 {
					t.Errorf("%s", got)
				}
			}
			if got := seen(w.peer); got != step.peer {
				t.Errorf("the peer sees %s", got)
			}
			if got := seen(other.owner); got != step.other {
				t.Errorf("others see %s", got)
			}
		})
	}
	t.Run("TEN-08_without_training_lists_are_empty_and_commands_refused", func(t *testing.T) {
		who, userID := w.person("infers", "MEMBER")
		w.owner.do("shareModels", vars{"ids": []string{id}, "visibility": "GROUP"})
		w.owner.settled()
		if got := who.models(vars{"projectId": w.project}, ""); len(got) != 1 {
			t.Errorf("%v", got)
		}
		w.admin.do("setBusinessScope", vars{"userId": userID, "businessScope": "INFERENCE", "reason": "test"})
		if got := who.models(vars{"projectId": w.project}, ""); len(got) != 0 {
			t.Errorf("%v", got)
		}
		who.refuse("importModel", w.modelOf(unique("m"), 1), "SCOPE_NOT_ENABLED")
		if got := who.attempt("deleteModels", vars{"ids": []string{id}}); got.str("results.0.userErrors.0.code") != "SCOPE_NOT_ENABLED" {
			t.Errorf("%s", got)
		}
	})
	t.Run("MDL-03_by_the_owner_alone", func(t *testing.T) {
		w.owner.do("shareModels", vars{"ids": []string{id}, "visibility": "GROUP"})
		for code, c := range map[string]client{"FORBIDDEN": w.peer, "NOT_FOUND": other.owner} {
			if got := c.attempt("shareModels", vars{"ids": []string{id}, "visibility": "GLOBAL"}); got.str("results.0.userErrors.0.code") != code {
				t.Errorf("%s, want %s", got, code)
			}
		}
		if got := w.admin.attempt("unshareModels", vars{"ids": []string{id}}); got.str("results.0.userErrors.0.code") != "FORBIDDEN" {
			t.Errorf("%s", got)
		}
	})
}

func TestDeleteModels(t *testing.T) {
	w := newWorld(t)
	name := unique("del")
	made := w.owner.do("importModel", w.modelOf(name, 1))
	first := made.str("modelVersion.id")
	second := w.owner.do("importModel", w.modelOf(name, 2)).str("modelVersion.id")
	user := unique("user")
	_, version := w.create(with(w.command(user), vars{"modelId": made.str("model.id")}))
	w.owner.settled()
	t.Run("MDL-04_refused_while_in_use_naming_the_user", func(t *testing.T) {
		got := w.owner.do("deleteModels", vars{"ids": []string{first, second, "none"}})
		if got.str("results.0.deletedId") != first || got.str("results.1.userErrors.0.code") != "IN_USE" || got.str("results.2.userErrors.0.code") != "NOT_FOUND" {
			t.Errorf("%s", got)
		}
		if told := got.str("results.1.userErrors.0.message"); told != "This model is used by algorithm "+user+" v1; remove it there first." {
			t.Errorf("%s", told)
		}
	})
	t.Run("MDL-04_by_the_owner_alone", func(t *testing.T) {
		w.owner.do("shareModels", vars{"ids": []string{second}, "visibility": "GROUP"})
		for _, c := range []client{w.peer, w.admin} {
			if got := c.attempt("deleteModels", vars{"ids": []string{second}}); got.str("results.0.userErrors.0.code") != "FORBIDDEN" {
				t.Errorf("%s", got)
			}
		}
	})
	t.Run("MDL-04_unused_it_goes_and_its_name_is_free", func(t *testing.T) {
		w.owner.do("deleteAlgorithmVersion", vars{"id": version})
		w.owner.settled()
		if got := w.owner.do("deleteModels", vars{"ids": []string{second}}); got.str("results.0.deletedId") != second {
			t.Errorf("%s", got)
		}
		w.owner.settled()
		if got := w.owner.models(vars{"projectId": w.project}, ""); len(got) != 0 {
			t.Errorf("%v", got)
		}
		w.peer.upload("resnet/train.py", script)
		w.peer.do("importModel", w.modelOf(name, 1))
	})
	t.Run("ALG-01_what_is_not_seen_is_no_model", func(t *testing.T) {
		hidden := w.owner.do("importModel", w.modelOf(unique("m"), 1)).str("model.id")
		w.peer.refuse("createAlgorithm", with(w.command(unique("a")), vars{"modelId": hidden}), "NOT_FOUND")
	})
}
