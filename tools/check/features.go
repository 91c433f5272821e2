package main

import (
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "tallyard/"

// openRooms are folders of features that others may use all the same: queries
// join the fragments of projections/people.
var openRooms = []string{"projections/people", "projections/access"}

// featureRooms are folders that belong to one feature though domain has no
// folder of their name.
var featureRooms = []string{"domain/flows", "projections/audit", "graph/audit", "graph/people", "projections/people"}

// features are the folders of domain that have events.
func (r repo) features() []string {
	var names []string
	for _, file := range r.files {
		if parts := strings.Split(file, "/"); len(parts) == 3 && parts[0] == "domain" && parts[2] == "events.go" {
			names = append(names, parts[1])
		}
	}
	return names
}

// checkFeatures reports imports of one feature by another. In domain only
// flows span features; in projections and graph nothing does but the resolvers
// in graph itself and the wiring in cmd.
func checkFeatures(r repo) ([]finding, error) {
	features := r.features()
	belongs := func(top, name string) bool {
		return slices.Contains(features, name) || slices.Contains(featureRooms, top+"/"+name)
	}
	var found []finding
	for _, file := range r.files {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		top, from := room(path.Dir(file))
		if from == "" || !belongs(top, from) || top == "domain" && from == "flows" {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, r.root+"/"+file, nil, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		for _, spec := range tree.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, err
			}
			imported, ok := strings.CutPrefix(name, module)
			if !ok {
				continue
			}
			toTop, to := room(imported)
			if toTop != top || to == from || !belongs(top, to) || slices.Contains(openRooms, top+"/"+to) {
				continue
			}
			found = append(found, finding{
				file, set.Position(spec.Pos()).Line,
				top + "/" + from + " imports " + name + ": features never import each other, flows in domain/flows span them",
			})
		}
	}
	return found, nil
}

// room splits a folder into its top and the room in it: domain/algorithm/x is
// in room algorithm of domain. Other folders are in no room.
func room(dir string) (top, name string) {
	parts := strings.Split(dir, "/")
	if len(parts) < 2 || !slices.Contains([]string{"domain", "projections", "graph"}, parts[0]) {
		return "", ""
	}
	return parts[0], parts[1]
}
