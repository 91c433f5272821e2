// Package operation is between the schema of long operations and what serves
// it: the domain's handler for mutations, the read model for queries, the log
// for the past and for what is live, a table for how far something is.
package operation

import (
	"tallyard/domain/es"
	"tallyard/domain/operation"
	"tallyard/graph/command"
	"tallyard/graph/history"
	"tallyard/graph/live"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	proj "tallyard/projections/operation"
)

// API serves the schema of operations.
type API struct {
	Runtime  *es.Runtime
	Handler  *operation.Handler
	Queries  proj.Queries
	Progress loader.ProgressSource
	Commands *command.Gateway
	Sealer   *relay.Sealer
	History  *history.Reader
	Live     *live.Hub
}
