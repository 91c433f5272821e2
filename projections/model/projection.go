// Package model is the read model of models: rows for lists and details, made
// from the events of domain/model.
package model

import (
	_ "embed" // schema.sql, indexes.sql

	domaccess "tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/model"
	"tallyard/projections/access"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Projection makes the tables.
var Projection = runner.Projection{
	Name:       "model",
	Version:    1,
	Schema:     schema,
	Indexes:    indexes,
	Categories: []string{model.Category},
	On: map[string]runner.Handler{
		"model.created.v1":               onCreated,
		"model.deleted.v1":               onDeleted,
		"model.ownership_transferred.v1": onTransferred,
		"model.version_imported.v1":      onImported,
		"model.version_edited.v1":        onEdited,
		"model.visibility_changed.v1":    onVisibility,
		"model.version_deleted.v1":       onVersionDeleted,
	},
}

func onCreated(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(model.ModelCreated)
	w.Exec(`INSERT INTO {g}.models (id, tenant, project, owner, name, reach, changes, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, 0, $6, $7, $7)`,
		e.Root().ID, e.Meta.Tenant, ev.Project, ev.Owner, ev.Name, byPerson(e), e.Meta.Time)
	return nil
}

func onDeleted(w *runner.Writer, e es.Envelope) error {
	w.Exec(`DELETE FROM {g}.models WHERE id = $1`, e.Root().ID)
	return nil
}

// onTransferred gives everything of a model another owner.
func onTransferred(w *runner.Writer, e es.Envelope) error {
	to := e.Event.(model.OwnershipTransferred).To
	w.Exec(`UPDATE {g}.models SET owner = $2 WHERE id = $1`, e.Root().ID, to)
	w.Exec(`UPDATE {g}.model_versions SET owner = $2 WHERE model = $1`, e.Root().ID, to)
	touch(w, e)
	return nil
}

func onImported(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(model.VersionImported)
	w.Exec(`INSERT INTO {g}.model_versions (id, model, tenant, project, owner, name, number, status, visibility, reach,
			details, space, directory, changes, created_at, updated_at)
		SELECT $2, m.id, m.tenant, m.project, m.owner, m.name, $3, $4, $5, 0, $6, $7, $8, 1, $9, $9 FROM {g}.models m WHERE m.id = $1`,
		e.Root().ID, ev.Version, ev.Number, string(model.Valid), string(domaccess.Private), es.ValueOf(ev.Details),
		ev.Directory.Space, ev.Directory.Path, e.Meta.Time)
	touch(w, e)
	return nil
}

func onEdited(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(model.VersionEdited)
	w.Exec(`UPDATE {g}.model_versions SET details = details || $2::jsonb, changes = changes + $3, updated_at = $4 WHERE id = $1`,
		ev.Version, es.ValueOf(ev.Set), ofPerson(e), e.Meta.Time)
	touch(w, e)
	return nil
}

func onVisibility(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(model.VisibilityChanged)
	w.Exec(`UPDATE {g}.model_versions SET visibility = $2, reach = $3, changes = changes + $4, updated_at = $5 WHERE id = $1`,
		ev.Version, string(ev.To), access.Reach(ev.To), ofPerson(e), e.Meta.Time)
	touch(w, e)
	return nil
}

func onVersionDeleted(w *runner.Writer, e es.Envelope) error {
	w.Exec(`DELETE FROM {g}.model_versions WHERE id = $1`, e.Event.(model.VersionDeleted).Version)
	touch(w, e)
	return nil
}

// touch counts a change of a model and takes over how far its versions reach.
func touch(w *runner.Writer, e es.Envelope) {
	w.Exec(`UPDATE {g}.models SET changes = changes + $2, updated_at = $3,
			reach = COALESCE((SELECT max(v.reach) FROM {g}.model_versions v WHERE v.model = $1), 0) WHERE id = $1`,
		e.Root().ID, byPerson(e), e.Meta.Time)
}

// ofPerson counts an event of a person's command, for the version that it is about.
func ofPerson(e es.Envelope) int {
	if e.Meta.Actor.Person() {
		return 1
	}
	return 0
}

// byPerson counts a person's command once, by its first event.
func byPerson(e es.Envelope) int {
	if e.Meta.Actor.Person() && e.Meta.Index == 0 {
		return 1
	}
	return 0
}
