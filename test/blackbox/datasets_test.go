package blackbox_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func (c client) dataSet(id string) value {
	c.t.Helper()
	return c.ask(`query($id: ID!) { dataSet(id: $id) { name description project { id } owner { id } storageSpace { id } visibility directory
		fileCount sizeBytes version viewerCanEdit cache { ready step lastStep problem fileCount sizeBytes filledAt operation { id } } } }`, vars{"id": id}).at("dataSet")
}

// cachedDataSet is a data set of the owner in the node cache.
func (w *world) cachedDataSet() string {
	w.t.Helper()
	id := w.newDataSet("GROUP")
	w.step("cacheDataSet", id, "SUCCEEDED")
	return id
}

// step lets a step of a cache come to its end.
func (w *world) step(mutation, id, state string) value {
	w.t.Helper()
	w.owner.t = w.t
	last := w.owner.ends(w.owner.do(mutation, vars{"id": id}).str("dataSet.cache.operation.id"), state)
	w.eventually("the end of the step", func() bool { return w.owner.dataSet(id).str("cache.step") == "" })
	return last
}

// cacheOf is where the cache of a data set lies.
func (w *world) cacheOf(id string) string {
	w.t.Helper()
	tenant := w.owner.ask(`{ me { tenant { id } } }`, nil).str("me.tenant.id")
	return strings.Replace(filepath.Clean(onDisk(w.t, tenant, id, "")), "/spaces/", "/cache/", 1)
}

func TestDataSets(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	auditor, _ := w.person("audit", "AUDITOR")
	id := w.newDataSet("PRIVATE")
	t.Run("STO-08_size_and_file_count_are_counted", func(t *testing.T) {
		got := w.owner.dataSet(id)
		if got.str("fileCount") != "2" || got.str("sizeBytes") == "0" || got.str("version") != "1" || got.str("viewerCanEdit") != "true" || got.str("storageSpace.id") == "" {
			t.Errorf("%s", got)
		}
	})
	t.Run("W12_names_of_any_script_one_character_long", func(t *testing.T) {
		for _, name := range []string{"数", "データセット", "x"} {
			w.owner.do("registerDataSet", vars{"projectId": w.project, "name": name, "directory": "resnet"})
			w.owner.refuse("registerDataSet", vars{"projectId": w.project, "name": name, "directory": "resnet"}, "NAME_TAKEN")
		}
	})
	t.Run("STO-08_the_directory_must_be_there", func(t *testing.T) {
		for dir, code := range map[string]string{"none": "INVALID_PATH", "resnet/train.py": "INVALID_PATH", "../x": "INVALID_PATH", "a\u202eb": "INVALID_CHARACTERS"} {
			w.owner.refuse("registerDataSet", vars{"projectId": w.project, "name": unique("set"), "directory": dir}, code)
		}
		w.owner.refuse("registerDataSet", vars{"projectId": w.project, "name": "-", "directory": "none"}, "INVALID_CHARACTERS", "INVALID_PATH")
		home := w.owner.ask(`{ me { home { id } } }`, nil).str("me.home.id")
		w.peer.refuse("registerDataSet", vars{"projectId": w.project, "name": unique("set"), "spaceId": home, "directory": "resnet"}, "NOT_FOUND")
	})
	lists := func(c client, f vars) bool {
		return slices.Contains(c.ask(`query($f: DataSetFilter) { dataSets(filter: $f, first: 100) { nodes { id } } }`, vars{"f": f}).strs("dataSets.nodes", "id"), id)
	}
	for _, c := range []struct {
		visibility  string
		peer, other bool
	}{{"PRIVATE", false, false}, {"GROUP", true, false}, {"GLOBAL", true, true}} {
		t.Run("STO-08_"+c.visibility, func(t *testing.T) {
			w.owner.do("updateDataSet", vars{"id": id, "visibility": c.visibility})
			for _, x := range []struct {
				who  string
				c    client
				sees bool
			}{{"owner", w.owner, true}, {"peer", w.peer, c.peer}, {"other", other.peer, c.other}, {"admin", w.admin, true}, {"auditor", auditor, true}, {"mallory", as(t, "mallory"), false}} {
				if got := lists(x.c, nil); got != x.sees {
					t.Errorf("%s lists it: %v", x.who, got)
				}
				if got := x.c.dataSet(id); (got.str("name") != "") != x.sees {
					t.Errorf("%s sees %s", x.who, got)
				}
			}
		})
	}
	t.Run("STO-08_filters", func(t *testing.T) {
		w.owner.do("updateDataSet", vars{"id": id, "description": "About GIRAFFES"})
		for _, c := range []struct {
			f    vars
			want bool
		}{
			{vars{"search": "giraffe"}, true},
			{vars{"search": "zebra"}, false},
			{vars{"ownerId": w.ownerID}, true},
			{vars{"ownerId": w.peerID}, false},
			{vars{"visibilities": []string{"GLOBAL"}}, true},
			{vars{"visibilities": []string{"PRIVATE"}}, false},
			{vars{"cached": true}, false},
			{vars{"projectId": w.project, "cached": false}, true},
			{vars{"projectId": other.project}, false},
		} {
			if got := lists(w.owner, c.f); got != c.want {
				t.Errorf("%v: %v", c.f, got)
			}
		}
	})
	t.Run("AUD-03_it_has_a_past", func(t *testing.T) {
		got := w.owner.ask(`query($id: ID!) { dataSet(id: $id) { history(first: 100) { nodes { event position } } } }`, vars{"id": id})
		first := got.list("dataSet.history.nodes")[0]
		then := w.owner.ask(`query($id: ID!, $p: Position) { dataSet(id: $id, asOfPosition: $p) { visibility version viewerCanEdit } }`, vars{"id": id, "p": first.str("position")})
		if first.str("event") != "dataset.registered.v1" || then.str("dataSet.visibility") != "PRIVATE" || then.str("dataSet.version") != "1" || then.str("dataSet.viewerCanEdit") != "false" {
			t.Errorf("%s %s", got, then)
		}
	})
	t.Run("STO-08_edited_and_removed_by_the_owner", func(t *testing.T) {
		w.peer.refuse("updateDataSet", vars{"id": id, "description": "mine"}, "FORBIDDEN")
		w.peer.refuse("deleteDataSet", vars{"id": id}, "FORBIDDEN")
		w.owner.refuse("updateDataSet", vars{"id": id, "description": "x", "expectedVersion": 1}, "VERSION_CONFLICT")
		got := w.owner.do("deleteDataSet", vars{"id": id, "reason": "old"})
		if got.str("deletedId") != id || w.owner.dataSet(id).v != nil || lists(w.owner, nil) {
			t.Errorf("%s", got)
		}
		if got := w.owner.ask(`{ files(path: "resnet") { nodes { name } } }`, nil); len(got.list("files.nodes")) != 2 {
			t.Errorf("its directory: %s", got)
		}
	})
}

func TestDataSetCache(t *testing.T) {
	w := newWorld(t)
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	f, err := z.Create("inside/a.txt")
	if err == nil {
		_, err = f.Write([]byte("unpacked"))
	}
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	w.owner.upload("resnet/images.zip", archive.String())
	id := w.newDataSet("GROUP")
	cache := w.cacheOf(id)
	has := func(t *testing.T, name, want string) {
		t.Helper()
		if b, err := os.ReadFile(filepath.Join(cache, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	t.Run("STO-05_not_before_it_is_cached", func(*testing.T) {
		w.owner.refuse("unzipDataSet", vars{"id": id}, "INVALID_STATE")
	})
	t.Run("STO-04_fetched_whole", func(t *testing.T) {
		if last := w.step("refreshDataSet", id, "SUCCEEDED"); last.str("kind") != "CACHE_DATA_SET" || last.str("doneFiles") != "3" {
			t.Errorf("%s", last)
		}
		if got := w.owner.dataSet(id); got.str("cache.ready") != "true" || got.str("cache.fileCount") != "3" || got.str("cache.filledAt") == "" || got.str("cache.lastStep") != "FILL" {
			t.Errorf("%s", got)
		}
		has(t, "train.py", script)
	})
	t.Run("STO-05_unpacked_beside_the_archive", func(t *testing.T) {
		w.step("unzipDataSet", id, "SUCCEEDED")
		has(t, "images/inside/a.txt", "unpacked")
		if got := w.owner.dataSet(id); got.str("cache.fileCount") != "4" || got.str("cache.lastStep") != "UNZIP" {
			t.Errorf("%s", got)
		}
	})
	t.Run("STO-04_refreshed_by_what_has_changed", func(t *testing.T) {
		w.owner.upload("resnet/new.txt", "new")
		if last := w.step("refreshDataSet", id, "SUCCEEDED"); last.str("kind") != "REFRESH_DATA_SET" {
			t.Errorf("%s", last)
		}
		has(t, "new.txt", "new")
		if _, err := os.Stat(filepath.Join(cache, "images")); err == nil {
			t.Error("what was unpacked is there still")
		}
	})
	t.Run("STO-05_what_is_refused_leaves_the_rest_untouched", func(t *testing.T) {
		w.owner.upload("resnet/broken.zip", "no archive")
		w.step("refreshDataSet", id, "SUCCEEDED")
		last := w.step("unzipDataSet", id, "FAILED")
		if last.str("error.code") != "NOT_ALLOWED" || !strings.Contains(last.str("error.message"), "broken.zip") {
			t.Errorf("%s", last)
		}
		if got := w.owner.dataSet(id); got.str("cache.ready") != "true" || !strings.Contains(got.str("cache.problem"), "broken.zip") {
			t.Errorf("%s", got)
		}
		has(t, "images/inside/a.txt", "unpacked")
		has(t, "broken.zip", "no archive")
	})
	t.Run("OPS-02_a_failed_step_is_retried", func(t *testing.T) {
		operation := w.owner.dataSet(id).str("cache.operation.id")
		if got := w.owner.do("retryOperation", vars{"id": operation}); got.str("operation.attempt") != "2" {
			t.Errorf("%s", got)
		}
		w.eventually("the end of the step", func() bool { return w.owner.dataSet(id).str("cache.step") == "" })
	})
	t.Run("STO-08_removed_its_cache_goes", func(*testing.T) {
		w.owner.do("deleteDataSet", vars{"id": id})
		w.eventually("the end of the cache", func() bool {
			_, err := os.Stat(cache)
			return os.IsNotExist(err)
		})
	})
}

func TestImages(t *testing.T) {
	w := newWorld(t)
	private := vars{
		"kind": "PRIVATE", "name": "图/" + strings.ReplaceAll(unique("p"), "_", "-"), "framework": "PYTORCH", "frameworkVersion": "2.6", "reference": "registry.example/p:1",
		"scenario": "TRAINING", "acceleratorTypes": []string{"A100"}, "scope": "GROUP", "projectId": w.project, "description": "ours",
	}
	id := w.owner.do("registerImage", private).str("registeredImage.id")
	names := func(c client, f vars) []string {
		return c.ask(`query($f: ImageFilter) { images(filter: $f, first: 100, orderBy: {field: NAME, direction: ASC}) { totalCount nodes { id } } }`, vars{"f": f}).strs("images.nodes", "id")
	}
	t.Run("STO-06_a_private_one_is_for_its_scope", func(t *testing.T) {
		for who, c := range map[string]struct {
			c    client
			sees bool
		}{"owner": {w.owner, true}, "peer": {w.peer, true}, "outside": {w.outside, false}, "admin": {w.admin, true}, "mallory": {as(t, "mallory"), false}} {
			if got := slices.Contains(names(c.c, nil), id); got != c.sees {
				t.Errorf("%s: %v", who, got)
			}
		}
	})
	t.Run("STO-06_its_name_is_unique", func(*testing.T) {
		w.peer.refuse("registerImage", private, "NAME_TAKEN")
		w.owner.refuse("registerImage", with(private, vars{"name": "a_b"}), "INVALID_CHARACTERS")
		w.owner.refuse("registerImage", with(private, vars{"name": strings.Repeat("图", 33), "scenario": nil}), "REQUIRED", "TOO_LONG")
	})
	t.Run("STO-06_an_external_one_without_framework_allows_SINGLE_and_MPI", func(t *testing.T) {
		got := w.owner.do("registerImage", vars{"kind": "EXTERNAL", "name": unique("ext"), "reference": "x"}).at("registeredImage")
		if got.str("framework") != "OTHER" || got.str("deploymentTypes") != `["SINGLE","MPI"]` || got.str("scope") != "PRIVATE" {
			t.Errorf("%s", got)
		}
	})
	t.Run("STO-06_presets_by_framework_and_version_are_the_admins", func(t *testing.T) {
		preset := vars{"kind": "PRESET", "name": unique("pre"), "framework": "TENSORFLOW", "frameworkVersion": "2.18", "reference": "tensorflow:2.18"}
		w.owner.refuse("registerImage", preset, "FORBIDDEN")
		made := w.admin.do("registerImage", preset).str("registeredImage.id")
		if !slices.Contains(names(w.outside, vars{"kinds": []string{"PRESET"}, "frameworks": []string{"TENSORFLOW"}}), made) {
			t.Error("it is not offered to everybody")
		}
		w.admin.do("deleteImage", vars{"id": made})
	})
	t.Run("STO-06_filters", func(t *testing.T) {
		for _, c := range []struct {
			f    vars
			want bool
		}{
			{vars{"acceleratorType": "A100"}, true},
			{vars{"acceleratorType": "H200"}, false},
			{vars{"scenarios": []string{"TRAINING"}}, true},
			{vars{"scenarios": []string{"INFERENCE"}}, false},
			{vars{"search": "OURS"}, true},
			{vars{"kinds": []string{"EXTERNAL"}}, false},
		} {
			if got := slices.Contains(names(w.owner, c.f), id); got != c.want {
				t.Errorf("%v: %v", c.f, got)
			}
		}
	})
	t.Run("STO-06_deleted_by_its_owner", func(t *testing.T) {
		w.peer.refuse("deleteImage", vars{"id": id}, "FORBIDDEN")
		if got := w.owner.do("deleteImage", vars{"id": id}); got.str("deletedId") != id {
			t.Errorf("%s", got)
		}
		if got := w.owner.ask(`query($id: ID!) { image(id: $id) { id } node(id: $id) { id } }`, vars{"id": id}); got.at("image").v != nil || got.at("node").v != nil {
			t.Errorf("%s", got)
		}
		w.owner.do("registerImage", private)
	})
}

func TestStorageLeaves(t *testing.T) {
	w := newWorld(t)
	set, image := w.newDataSet("PRIVATE"), w.newImage()
	t.Run("TEN-11_a_project_with_data_sets_and_images_is_not_closed", func(*testing.T) {
		w.admin.refuse("closeProject", vars{"id": w.project, "reason": "test"}, "IN_USE", "IN_USE")
	})
	t.Run("TEN-05_data_sets_and_images_are_given_to_another", func(t *testing.T) {
		got := w.admin.do("transferOwnership", vars{"fromUserId": w.ownerID, "toUserId": w.peerID, "reason": "left"})
		if got.str("moved") != "2" || w.peer.dataSet(set).str("owner.id") != w.peerID || w.owner.dataSet(set).v != nil {
			t.Errorf("%s", got)
		}
		w.owner.refuse("deleteImage", vars{"id": image}, "FORBIDDEN")
		w.peer.do("deleteImage", vars{"id": image})
	})
}
