// Package setting is the read model of settings, for what goes over all tenants
// at once. Who wants to know what holds for one thing asks the log.
package setting

import (
	_ "embed" // schema.sql, indexes.sql

	"tallyard/domain/es"
	"tallyard/domain/setting"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Projection makes the table.
var Projection = runner.Projection{
	Name:       "setting",
	Version:    1,
	Schema:     schema,
	Indexes:    indexes,
	Categories: []string{setting.Category},
	On:         map[string]runner.Handler{"setting.changed.v1": onChanged},
}

func onChanged(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(setting.Changed)
	for _, c := range ev.Settings {
		if c.To == nil {
			w.Exec(`DELETE FROM {g}.settings WHERE tenant = $1 AND target = $2 AND key = $3`, e.Stream.Tenant, e.Root().ID, string(c.Key))
			continue
		}
		w.Exec(`INSERT INTO {g}.settings (tenant, target, scope, key, value) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (tenant, target, key) DO UPDATE SET value = EXCLUDED.value`,
			e.Stream.Tenant, e.Root().ID, string(ev.Scope), string(c.Key), es.ValueOf(c.To))
	}
	return nil
}
