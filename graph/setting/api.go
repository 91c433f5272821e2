// Package setting is between the schema of settings and the domain. Settings
// are read from the log, by which everything else goes as well.
package setting

import (
	"tallyard/domain/es"
	"tallyard/domain/setting"
	"tallyard/graph/command"
	"tallyard/graph/history"
)

// API serves the schema of settings.
type API struct {
	Runtime  *es.Runtime
	Handler  *setting.Handler
	Commands *command.Gateway
	History  *history.Reader
}
