// Package approval is between the schema of approval requests and what serves
// it: the domain's handler for mutations, the read model for queries, the log
// for the past and for what is live.
package approval

import (
	"tallyard/domain/approval"
	"tallyard/domain/es"
	"tallyard/graph/command"
	"tallyard/graph/history"
	"tallyard/graph/live"
	"tallyard/graph/relay"
	proj "tallyard/projections/approval"
)

// API serves the schema of approval requests.
type API struct {
	Runtime  *es.Runtime
	Handler  *approval.Handler
	Queries  proj.Queries
	Commands *command.Gateway
	Sealer   *relay.Sealer
	History  *history.Reader
	Live     *live.Hub
}
