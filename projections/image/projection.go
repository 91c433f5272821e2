// Package image is the read model of images, made from the events of domain/image.
package image

import (
	_ "embed" // schema.sql, indexes.sql
	"encoding/json"

	"tallyard/domain/es"
	"tallyard/domain/image"
	projaccess "tallyard/projections/access"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Projection makes the table.
var Projection = runner.Projection{
	Name:       "image",
	Version:    1,
	Schema:     schema,
	Indexes:    indexes,
	Categories: []string{image.Category},
	On: map[string]runner.Handler{
		"image.registered.v1": onRegistered, "image.removed.v1": onRemoved, "image.ownership_transferred.v1": onTransferred,
	},
}

func onRegistered(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(image.Registered)
	s := ev.Settings
	settings, err := json.Marshal(s)
	if err != nil {
		return err
	}
	w.Insert("images", "id, tenant, project, owner, reach, kind, name, framework, scenario, settings, created_at",
		e.Root().ID, e.Meta.Tenant, ev.Project, ev.Owner, projaccess.Reach(s.Scope), string(s.Kind), s.Name, string(s.Framework), string(s.Scenario), settings, e.Meta.Time)
	return nil
}

func onRemoved(w *runner.Writer, e es.Envelope) error {
	w.Exec(`DELETE FROM {g}.images WHERE id = $1`, e.Root().ID)
	return nil
}

func onTransferred(w *runner.Writer, e es.Envelope) error {
	w.Exec(`UPDATE {g}.images SET owner = $2 WHERE id = $1`, e.Root().ID, e.Event.(image.OwnershipTransferred).To)
	return nil
}
