// Package dataset is the read model of data sets, made from the events of
// domain/dataset.
package dataset

import (
	_ "embed" // schema.sql, indexes.sql
	"encoding/json"

	"tallyard/domain/access"
	"tallyard/domain/dataset"
	"tallyard/domain/es"
	projaccess "tallyard/projections/access"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Projection makes the table.
var Projection = runner.Projection{
	Name:       "dataset",
	Version:    1,
	Schema:     schema,
	Indexes:    indexes,
	Categories: []string{dataset.Category},
	On: map[string]runner.Handler{
		"dataset.registered.v1": onRegistered,
		"dataset.updated.v1":    onUpdated,
		"dataset.removed.v1":    onRemoved,

		"dataset.ownership_transferred.v1": onTransferred,
		"dataset.cache_begun.v1":           onCacheBegun,
		"dataset.cache_ended.v1":           onCacheEnded,
	},
}

func onRegistered(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(dataset.Registered)
	content, err := json.Marshal(ev.Content)
	if err != nil {
		return err
	}
	w.Insert("data_sets", "id, tenant, project, owner, reach, name, description, content, cache, cached, version, created_at, updated_at",
		e.Root().ID, e.Meta.Tenant, ev.Project, ev.Owner, projaccess.Reach(ev.Visibility), ev.Name, ev.Description, content, []byte("{}"), false,
		1, e.Meta.Time, e.Meta.Time)
	return nil
}

func onUpdated(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(dataset.Updated)
	var name, description *string
	var reach *int
	var content []byte
	if ev.Name != nil {
		name = &ev.Name.To
	}
	if ev.Description != nil {
		description = &ev.Description.To
	}
	if ev.Visibility != nil {
		r := projaccess.Reach(access.Visibility(ev.Visibility.To))
		reach = &r
	}
	if ev.Content != nil {
		var err error
		if content, err = json.Marshal(ev.Content.To); err != nil {
			return err
		}
	}
	w.Exec(`UPDATE {g}.data_sets SET name = coalesce($2, name), description = coalesce($3, description), reach = coalesce($4, reach),
		content = coalesce($5::jsonb, content), version = version + 1, updated_at = $6 WHERE id = $1`,
		e.Root().ID, name, description, reach, content, e.Meta.Time)
	return nil
}

func onRemoved(w *runner.Writer, e es.Envelope) error {
	w.Exec(`DELETE FROM {g}.data_sets WHERE id = $1`, e.Root().ID)
	return nil
}

func onCacheBegun(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(dataset.CacheBegun)
	w.Exec(`UPDATE {g}.data_sets SET cache = (cache - 'problem') || jsonb_build_object('step', $2::text, 'operation', $3::uuid) WHERE id = $1`,
		e.Root().ID, string(ev.Step), ev.Operation)
	return nil
}

// onCacheEnded is the fold of the end of a step, in SQL.
func onCacheEnded(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(dataset.CacheEnded)
	id := e.Root().ID
	w.Exec(`UPDATE {g}.data_sets SET cache = (cache - 'step') || jsonb_build_object('last', $2::text, 'problem', $3::text) WHERE id = $1`,
		id, string(ev.Step), ev.Problem)
	switch {
	case ev.Outcome == dataset.Succeeded && ev.Step == dataset.Unzip:
		w.Exec(`UPDATE {g}.data_sets SET cache = cache || jsonb_build_object(
			'files', coalesce((cache->>'files')::bigint, 0) + $2, 'bytes', coalesce((cache->>'bytes')::bigint, 0) + $3) WHERE id = $1`, id, ev.Files, ev.Bytes)
	case ev.Outcome == dataset.Succeeded:
		w.Exec(`UPDATE {g}.data_sets SET cached = true, cache = cache || jsonb_build_object('ready', true, 'files', $2::bigint, 'bytes', $3::bigint, 'filled', $4::text)
			WHERE id = $1`, id, ev.Files, ev.Bytes, e.Meta.Time.UTC().Format("2006-01-02T15:04:05.999999999Z07:00"))
	case ev.Step != dataset.Unzip:
		w.Exec(`UPDATE {g}.data_sets SET cached = false, cache = cache - ARRAY['ready', 'files', 'bytes', 'filled'] WHERE id = $1`, id)
	}
	return nil
}

func onTransferred(w *runner.Writer, e es.Envelope) error {
	w.Exec(`UPDATE {g}.data_sets SET owner = $2 WHERE id = $1`, e.Root().ID, e.Event.(dataset.OwnershipTransferred).To)
	return nil
}
