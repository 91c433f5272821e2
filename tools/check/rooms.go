package main

import (
	"path"
	"slices"
	"strings"
)

// readTogether maps features whose read side and schema are one: people are
// tenants, projects and users.
var readTogether = map[string]string{"tenant": "people", "project": "people", "user": "people"}

// checkRooms reports what a feature lacks: every folder of domain that has
// events has the same rooms in every layer, and is put together in cmd.
func checkRooms(r repo) ([]finding, error) {
	have := map[string]bool{}
	for _, file := range r.files {
		have[file] = true
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			have[dir] = true
		}
	}
	wiring, err := r.wiring()
	if err != nil {
		return nil, err
	}
	var found []finding
	for _, f := range r.features() {
		read := f
		if together := readTogether[f]; together != "" {
			read = together
		}
		for _, room := range []string{
			"domain/" + f + "/state.go", "domain/" + f + "/commands.go", "domain/" + f + "/handler.go",
			"domain/" + f + "/testdata",
			"projections/" + read + "/projection.go", "projections/" + read + "/queries.go", "projections/" + read + "/schema.sql",
			"graph/schema/" + read + ".graphqls", "graph/" + read + ".resolvers.go", "graph/" + read,
		} {
			if !have[room] {
				found = append(found, finding{"domain/" + f, 0, "the feature has no " + room})
			}
		}
		for _, pkg := range []string{"domain/" + f, "projections/" + read} {
			if !strings.Contains(wiring, `"`+module+pkg+`"`) {
				found = append(found, finding{"domain/" + f, 0, "cmd/tallyard does not put " + pkg + " together with the rest"})
			}
		}
	}
	return found, nil
}

// wiring is the text of the program's own files.
func (r repo) wiring() (string, error) {
	var b strings.Builder
	for _, file := range slices.Sorted(slices.Values(r.files)) {
		if !strings.HasPrefix(file, "cmd/") || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := r.read(file)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}
