// Package storage is the read model of storage spaces, made from the events of
// domain/storage. What files they hold is read from the disk.
package storage

import (
	_ "embed" // schema.sql, indexes.sql

	"tallyard/domain/es"
	"tallyard/domain/storage"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Projection makes the table.
var Projection = runner.Projection{
	Name:       "storage",
	Version:    2,
	Schema:     schema,
	Indexes:    indexes,
	Categories: []string{storage.Category},
	On:         map[string]runner.Handler{"space.created.v1": onCreated, "space.quota_set.v1": onQuotaSet},
}

func onCreated(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(storage.SpaceCreated)
	w.Insert("spaces", "id, tenant, kind, owner, project, zone, version, created_at",
		e.Root().ID, e.Meta.Tenant, string(ev.Kind), ev.Owner, ev.Project, ev.Zone, 0, e.Meta.Time)
	return nil
}

func onQuotaSet(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(storage.QuotaSet)
	w.Exec(`UPDATE {g}.spaces SET quota = $2, version = version + 1 WHERE id = $1`, e.Root().ID, ev.To)
	return nil
}
