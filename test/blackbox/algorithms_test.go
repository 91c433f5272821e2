package blackbox_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestDelete(t *testing.T) {
	w := newWorld(t)
	algorithm, published := w.create(w.input(unique("del")))
	w.publish(published, "GROUP")
	second, third := w.version(algorithm, "v2", nil), w.version(algorithm, "v3", nil)
	t.Run("ALG-08_published_ones_never_go_in_a_batch", func(t *testing.T) {
		got := w.owner.do("deleteAlgorithmVersions", vars{"ids": []string{second, published, third}})
		if got.str("results.0.deletedId") != second || got.str("results.2.deletedId") != third || got.str("results.1.userErrors.0.code") != "NOT_ALLOWED" {
			t.Errorf("%s", got)
		}
	})
	t.Run("GEN-03_a_batch_with_what_is_no_id_comes_to_the_same_again", func(t *testing.T) {
		in := vars{"ids": []string{w.version(algorithm, "v4", nil), "zz"}, "idempotencyKey": unique("key")}
		first, again := w.owner.do("deleteAlgorithmVersions", in), w.owner.do("deleteAlgorithmVersions", in)
		if again.str("receipt.replayed") != "true" || again.str("receipt.position") != first.str("receipt.position") || again.at("results").String() != first.at("results").String() {
			t.Errorf("%s, then %s", first, again)
		}
		if got := first.at("results.1.userErrors.0"); got.str("code") != "NOT_FOUND" || got.at("field").String() != `["ids","1"]` {
			t.Errorf("%s", got)
		}
	})
	t.Run("ALG-08_one_at_a_time_they_do", func(t *testing.T) {
		w.owner.do("deleteAlgorithmVersion", vars{"id": published})
		w.owner.settled()
		live := w.owner.subscribe(`subscription($id: ID!) { operationEvents(filter: {subjectId: $id}) { kind operation { kind state } operations { kind state } } }`, vars{"id": published})
		live.until("the removal of the files", func(v value) bool {
			return strings.Contains(v.String(), `{"kind":"DELETE_ALGORITHM_FILES","state":"SUCCEEDED"}`)
		})
		w.owner.settled()
		if got := w.owner.ask(`query($v: ID!, $a: ID!) { algorithmVersion(id: $v) { state } algorithm(id: $a) { latestVersion { id } } }`, vars{"v": published, "a": algorithm}); got.at("algorithmVersion").v != nil {
			t.Errorf("after the deletion: %s", got)
		}
	})
	t.Run("ALG-12_by_the_owner_or_an_admin_alone", func(t *testing.T) {
		_, version := w.create(w.command(unique("del")))
		w.publish(version, "GROUP")
		w.peer.refuse("deleteAlgorithmVersion", vars{"id": version}, "FORBIDDEN")
		w.outside.refuse("deleteAlgorithmVersion", vars{"id": version}, "NOT_FOUND")
		w.admin.do("deleteAlgorithmVersion", vars{"id": version})
	})
}

func TestFavorites(t *testing.T) {
	w := newWorld(t)
	name := unique("fav")
	algorithm, version := w.create(w.command(name))
	w.publish(version, "GROUP")
	t.Run("ALG-10_mine_are_mine_alone", func(t *testing.T) {
		for range 2 { // a second time changes nothing and is no fault
			got := w.peer.do("favoriteAlgorithm", vars{"id": algorithm})
			if got.str("algorithm.viewerHasFavorited") != "true" {
				t.Errorf("%s", got)
			}
		}
		if !w.peer.lists(vars{"favorites": true}, name) || w.owner.lists(vars{"favorites": true}, name) {
			t.Error("the lists of favourites are wrong")
		}
		w.peer.do("unfavoriteAlgorithm", vars{"id": algorithm})
		if w.peer.lists(vars{"favorites": true}, name) {
			t.Error("it is a favourite still")
		}
	})
	t.Run("ALG-10_what_is_not_seen_is_no_favourite", func(t *testing.T) {
		w.outside.refuse("favoriteAlgorithm", vars{"id": algorithm}, "NOT_FOUND")
	})
}

// TestFailedPublication removes the directory before the publication and lets
// it be retried when the directory is back.
func TestFailedPublication(t *testing.T) {
	w := newWorld(t)
	_, version := w.create(w.input(unique("fail")))
	w.owner.remove("resnet")
	w.owner.do("publishAlgorithmVersion", vars{"id": version, "visibility": "GROUP"})
	failed := w.owner.reaches(version, "PUBLISH_FAILED")
	operation := w.owner.operationOf(version)
	t.Run("ALG-11_the_failure_says_what_to_do", func(t *testing.T) {
		if failed.str("problem") == "" || operation.str("state") != "FAILED" || operation.str("error.message") == "" || operation.str("viewerCanRetry") != "true" {
			t.Errorf("%s %s", failed, operation)
		}
		t.Log(operation)
	})
	t.Run("ALG-05_a_failed_one_is_not_seen", func(t *testing.T) {
		if got := w.peer.ask(`query($id: ID!) { node(id: $id) { id } }`, vars{"id": version}); got.at("node").v != nil {
			t.Errorf("%s", got)
		}
		w.peer.refuse("retryOperation", vars{"id": operation.str("id")}, "NOT_FOUND")
	})
	t.Run("ALG-11_a_retry_succeeds", func(t *testing.T) {
		w.owner.upload("resnet/train.py", script)
		got := w.owner.do("retryOperation", vars{"id": operation.str("id"), "reason": "it is back"})
		if got.str("operation.attempt") != "2" {
			t.Errorf("%s", got)
		}
		w.owner.reaches(version, "PUBLISHED")
		if got := w.owner.operationOf(version); got.str("state") != "SUCCEEDED" || got.str("attempt") != "2" || got.str("doneFiles") != "1" {
			t.Errorf("%s", got)
		}
		w.owner.refuse("retryOperation", vars{"id": operation.str("id")}, "INVALID_STATE")
	})
	t.Run("ALG-05_the_published_files_are_a_copy", func(t *testing.T) {
		before := w.owner.ask(`query($id: ID!) { algorithmVersion(id: $id) { filesFingerprint } }`, vars{"id": version})
		w.owner.upload("resnet/train.py", "changed")
		w.owner.remove("resnet")
		if after := w.owner.ask(`query($id: ID!) { algorithmVersion(id: $id) { filesFingerprint } }`, vars{"id": version}); after.String() != before.String() {
			t.Errorf("%s, was %s", after, before)
		}
	})
}

func TestBasedOn(t *testing.T) {
	w := newWorld(t)
	name := unique("base")
	_, base := w.create(with(w.input(name), vars{"description": "the base", "parameters": []vars{{"name": "--epochs", "value": "9"}}}))
	t.Run("ALG-03_only_a_published_one_is_a_base", func(t *testing.T) {
		w.owner.refuse("createAlgorithm", vars{"projectId": w.project, "name": unique("x"), "label": "v1", "basedOnId": base}, "INVALID_STATE")
	})
	w.publish(base, "GROUP")
	t.Run("ALG-03_files_are_copied_into_the_home", func(t *testing.T) {
		own := unique("derived")
		made := w.peer.do("createAlgorithm", vars{"projectId": w.project, "name": own, "label": "v7", "basedOnId": base})
		version := made.str("algorithmVersion.id")
		w.peer.reaches(version, "CREATED")
		if status, body := w.peer.file(http.MethodGet, "home/"+own+"_v7/train.py", ""); status != http.StatusOK || body != script {
			t.Errorf("the copy: %d %q", status, body)
		}
		got := w.peer.ask(`query($id: ID!) { algorithmVersion(id: $id) { `+settings+` basedOn { fingerprint } operation { kind state } } }`, vars{"id": version}).at("algorithmVersion")
		if got.str("source.script.directory") != own+"_v7" || got.str("parameters.0.value") != "9" || got.str("operation.kind") != "COPY_ALGORITHM" || got.str("image.reference") != "pytorch:2.6" {
			t.Errorf("%s", got)
		}
		if got := w.peer.ask(`query($p: String!) { files(path: $p) { nodes { name shared } } }`, vars{"p": own + "_v7"}); !slices.Equal(got.strs("files.nodes", "name"), []string{"lib", "train.py"}) {
			t.Errorf("%s", got)
		}
	})
	t.Run("ALG-03_with_an_own_script_nothing_is_copied", func(t *testing.T) {
		own := unique("derived")
		w.peer.upload("mine/run.py", script)
		made := w.peer.do("createAlgorithm", vars{"projectId": w.project, "name": own, "label": "v1", "basedOnId": base, "source": vars{"script": vars{"directory": "mine", "script": "run.py"}}})
		if made.str("algorithmVersion.state") != "CREATED" || made.at("algorithmVersion.operation").v != nil {
			t.Errorf("%s", made)
		}
		if status, _ := w.peer.file(http.MethodGet, "home/"+own+"_v1/train.py", ""); status != http.StatusNotFound {
			t.Errorf("status %d of what was not to be copied", status)
		}
	})
	t.Run("ALG-03_who_does_not_see_the_base_learns_nothing", func(t *testing.T) {
		as(t, "mallory").refuse("createAlgorithm", vars{
			"projectId": as(t, "mallory").ask(`{ me { projects { id } } }`, nil).str("me.projects.0.id"), "name": unique("x"), "label": "v1", "basedOnId": base,
		}, "NOT_FOUND")
	})
}
