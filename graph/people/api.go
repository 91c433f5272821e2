// Package people is between the schema of people, projects and tenants and what
// serves it: the domain's handlers for mutations, the read model for queries.
package people

import (
	"tallyard/domain/es"
	"tallyard/domain/project"
	"tallyard/domain/user"
	"tallyard/graph/command"
	"tallyard/graph/history"
	"tallyard/graph/relay"
	proj "tallyard/projections/people"
)

// API serves the schema of people, projects and tenants.
type API struct {
	Runtime  *es.Runtime
	Users    *user.Handler
	Projects *project.Handler
	Queries  proj.Queries
	Commands *command.Gateway
	Sealer   *relay.Sealer
	History  *history.Reader
}
