package blackbox_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// watchOperations is of those of one thing.
const watchOperations = `subscription($id: ID!) { operationEvents(filter: {subjectId: $id}) { cursor kind change { event }
	operation { id state doneBytes totalBytes doneFiles totalFiles } } }`

// bulk uploads a directory with a script and files of one size.
func (c client) bulk(directory string, files, bytes int) {
	c.t.Helper()
	c.upload(directory+"/train.py", script)
	for i := range files {
		c.upload(fmt.Sprintf("%s/part%03d", directory, i), strings.Repeat(fmt.Sprintf("%07d\n", i), bytes/8))
	}
}

// fromDirectory is a valid createAlgorithm with the files of a directory.
func (w *world) fromDirectory(name, directory string) vars {
	return with(w.input(name), vars{"source": vars{"script": vars{"directory": directory, "script": "train.py"}}})
}

// TestOperationEvents watches a copy that takes four seconds at least, so that
// it is seen on its way however quick the machine is.
func TestOperationEvents(t *testing.T) {
	w := worldOf(t, own(t, "--copy-rate", strconv.Itoa(2<<20)))
	w.owner.bulk("bulk", 8, 1<<20)
	_, version := w.create(w.fromDirectory(unique("op"), "bulk"))
	live := w.owner.subscribe(watchOperations, vars{"id": version})
	foreign := w.peer.subscribe(`subscription { operationEvents(filter: {all: true}) { kind operation { id } operations { id } } }`, nil)
	foreign.next()
	live.next()
	w.owner.do("publishAlgorithmVersion", vars{"id": version, "visibility": "GROUP"})
	items := live.until("SUCCEEDED", func(v value) bool { return v.str("operation.state") == "SUCCEEDED" })
	t.Run("OPS-01_states_in_order_and_progress_that_grows", func(t *testing.T) {
		var states []string
		var done []int64
		cursor := ""
		for _, item := range items {
			if item.str("kind") != "PROGRESS" {
				states, cursor = append(states, item.str("operation.state")), item.str("cursor")
				continue
			}
			now, err := strconv.ParseInt(item.str("operation.doneBytes"), 10, 64)
			if err != nil || item.str("operation.totalBytes") != strconv.Itoa(8<<20+len(script)) || item.str("operation.state") != "RUNNING" ||
				item.str("cursor") != cursor || item.at("change").v != nil {
				t.Errorf("%s", item)
			}
			done = append(done, now)
		}
		t.Logf("states %v, bytes told on the way %v", states, done)
		if !slices.Equal(states, []string{"QUEUED", "RUNNING", "SUCCEEDED"}) {
			t.Errorf("%v", states)
		}
		if !slices.IsSorted(done) || len(slices.Compact(slices.Clone(done))) < 2 || done[0] >= 8<<20 {
			t.Errorf("progress does not grow: %v", done)
		}
		if last := items[len(items)-1]; last.str("operation.doneBytes") == "" || last.str("operation.doneBytes") != last.str("operation.totalBytes") {
			t.Errorf("%s", last)
		}
	})
	t.Run("LIV-03_others_see_nothing_of_it", func(t *testing.T) {
		w.peer.upload("own/train.py", script)
		own := w.peer.do("createAlgorithm", w.fromDirectory(unique("op"), "own")).str("algorithmVersion.id")
		w.peer.do("publishAlgorithmVersion", vars{"id": own, "visibility": "PRIVATE"})
		w.peer.reaches(own, "PUBLISHED")
		mine := w.peer.operationOf(own).str("id")
		for _, item := range foreign.until("one's own", func(v value) bool { return v.str("operation.id") == mine }) {
			if item.str("operation.id") != mine {
				t.Errorf("%s", item)
			}
		}
	})
}

// TestPublicationInterrupted meets copies in the middle: they would take half
// a minute, and each is met as soon as its first bytes are told of.
func TestPublicationInterrupted(t *testing.T) {
	p := own(t, "--copy-rate", strconv.Itoa(64<<10))
	w := worldOf(t, p)
	const files, bytes = 32, 64 << 10
	w.owner.bulk("big", files, bytes)
	_, version := w.create(w.fromDirectory(unique("cut"), "big"))
	live := w.owner.subscribe(watchOperations, vars{"id": version})
	live.next()
	begin := func(t *testing.T) (operation string) {
		t.Helper()
		live.t = t
		w.owner.do("publishAlgorithmVersion", vars{"id": version, "visibility": "GROUP"})
		items := live.until("the copy on its way", func(v value) bool {
			return v.str("kind") == "PROGRESS" && v.str("operation.doneBytes") != "0"
		})
		last := items[len(items)-1]
		if done, err := strconv.ParseInt(last.str("operation.doneBytes"), 10, 64); err != nil || done >= files*bytes {
			t.Fatalf("it is no more in the middle: %s", last)
		}
		return last.str("operation.id")
	}
	end := func() value {
		items := live.until("an end", func(v value) bool {
			return v.str("kind") != "PROGRESS" && !slices.Contains([]string{"QUEUED", "RUNNING"}, v.str("operation.state"))
		})
		return items[len(items)-1]
	}
	t.Run("OPS-03_a_running_one_stays_on_the_list_and_can_be_cancelled", func(t *testing.T) {
		operation := begin(t)
		if got := w.owner.attempt("dismissOperations", vars{"ids": []string{operation}}); got.str("results.0.userErrors.0.code") != "INVALID_STATE" {
			t.Errorf("%s", got)
		}
		w.owner.do("cancelOperation", vars{"id": operation})
		if last := end(); last.str("operation.state") != "CANCELLED" || last.str("operation.doneBytes") != "0" {
			t.Errorf("it ended as %s", last)
		}
		w.owner.reaches(version, "CREATED")
		if got := w.owner.ask(`query($id: ID!) { operation(id: $id) { viewerCanRetry } }`, vars{"id": operation}).str("operation.viewerCanRetry"); got != "false" {
			t.Errorf("what has nothing left to retry can be: %s", got)
		}
		w.owner.refuse("retryOperation", vars{"id": operation}, "INVALID_STATE")
	})
	t.Run("ALG-11_gone_in_the_middle_and_retried", func(t *testing.T) {
		operation := begin(t)
		w.owner.do("deleteFiles", vars{"paths": []string{"big"}})
		if last := end(); last.str("operation.state") != "FAILED" {
			t.Errorf("it ended as %s", last)
		}
		w.owner.reaches(version, "PUBLISH_FAILED")
		w.owner.bulk("big", files, bytes)
		w.owner.do("retryOperation", vars{"id": operation})
	})
	t.Run("OPS-02_a_restart_in_the_middle_goes_on_with_it", func(t *testing.T) {
		live.t = t
		live.until("the copy on its way", func(v value) bool {
			return v.str("kind") == "PROGRESS" && v.str("operation.doneBytes") != "0"
		})
		p.flags = nil // so that it ends soon
		p.restart(t)
		w.owner.reaches(version, "PUBLISHED")
		if got := w.owner.operationOf(version); got.str("state") != "SUCCEEDED" || got.str("attempt") != "2" || got.str("doneFiles") != strconv.Itoa(files+1) {
			t.Errorf("%s", got)
		}
		got := w.owner.ask(`query($id: ID!) { algorithmVersion(id: $id) { fileCount fileBytes } }`, vars{"id": version}).at("algorithmVersion")
		if got.str("fileCount") != strconv.Itoa(files+1) || got.str("fileBytes") != strconv.Itoa(files*bytes+len(script)) {
			t.Errorf("%s", got)
		}
	})
}
