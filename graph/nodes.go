package graph

import (
	"tallyard/graph/algorithm"
	"tallyard/graph/audit"
	"tallyard/graph/operation"
	"tallyard/graph/people"
	"tallyard/graph/storage"
)

// Finder finds anything that has an id. It is also the audit's Things.
type Finder struct {
	Algorithms *algorithm.API
	Audit      *audit.API
	Operations *operation.API
	People     *people.API
	Storage    *storage.API
}
