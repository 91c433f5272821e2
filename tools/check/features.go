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

// sharedRooms are folders that every feature may use. Whatever else stands in
// domain, projections and graph belongs to one feature.
var sharedRooms = map[string][]string{
	"domain":      {"es", "fault", "access", "workload", "text", "patch", "internal"},
	"projections": {"runner", "access", "people", "page"},
	"graph":       {"relay", "problem", "authn", "transport", "generated", "gqlmodel", "command", "history", "loader"},
}

// checkFeatures reports imports of one feature by another. In domain only
// flows span features; in projections and graph nothing does but the resolvers
// in graph itself and the wiring in cmd.
func checkFeatures(r repo) ([]finding, error) {
	var found []finding
	for _, file := range r.files {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		top, from := room(path.Dir(file))
		if from == "" || top == "domain" && from == "flows" {
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
			if toTop != top || to == "" || to == from || slices.Contains(sharedRooms[top], to) {
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
	if len(parts) < 2 || sharedRooms[parts[0]] == nil {
		return "", ""
	}
	return parts[0], parts[1]
}
