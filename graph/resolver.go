// Package graph binds the schema to what serves it. Each file
// <feature>.resolvers.go is a list of one-line calls; what they call stands in
// graph/<feature>.
package graph

import (
	"tallyard/graph/algorithm"
	"tallyard/graph/approval"
	"tallyard/graph/audit"
	"tallyard/graph/dataset"
	"tallyard/graph/image"
	"tallyard/graph/model"
	"tallyard/graph/operation"
	"tallyard/graph/people"
	"tallyard/graph/setting"
	"tallyard/graph/storage"
)

// Resolver holds what serves the schema; cmd wires it.
type Resolver struct {
	Algorithms *algorithm.API
	Approvals  *approval.API
	Audit      *audit.API
	Models     *model.API
	Operations *operation.API
	People     *people.API
	Setting    *setting.API
	Storage    *storage.API
	DataSets   *dataset.API
	Images     *image.API
	Find       *Finder
}
