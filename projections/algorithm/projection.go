// Package algorithm is the read model of algorithms: rows for lists and
// details, made from the events of domain/algorithm.
package algorithm

import (
	_ "embed" // schema.sql, indexes.sql

	"github.com/google/uuid"

	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/projections/access"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Projection makes the tables.
var Projection = runner.Projection{
	Name:       "algorithm",
	Version:    5,
	Schema:     schema,
	Indexes:    indexes,
	Categories: []string{algorithm.Category, algorithm.FavoritesCategory},
	On: map[string]runner.Handler{
		"algorithm.created.v1":               onCreated,
		"algorithm.deleted.v1":               onDeleted,
		"algorithm.ownership_transferred.v1": onTransferred,
		"algorithm.version_added.v1":         onAdded,
		"algorithm.version_edited.v1":        onEdited,
		"algorithm.version_prepared.v1":      onStatus,
		"algorithm.preparation_failed.v1":    onStatus,
		"algorithm.preparation_retried.v1":   onStatus,
		"algorithm.approval_requested.v1":    onApproval,
		"algorithm.approval_ended.v1":        onApproval,
		"algorithm.publication_started.v1":   onPublicationStarted,
		"algorithm.publication_retried.v1":   onStatus,
		"algorithm.published.v1":             onPublished,
		"algorithm.publication_failed.v1":    onStatus,
		"algorithm.publication_cancelled.v1": onStatus,
		"algorithm.deletion_started.v1":      onStatus,
		"algorithm.deletion_failed.v1":       onStatus,
		"algorithm.deletion_retried.v1":      onStatus,
		"algorithm.version_deleted.v1":       onVersionDeleted,
		"algorithm.use_registered.v1":        onUse,
		"algorithm.use_released.v1":          onUse,
		"favorites.algorithm_added.v1":       onFavorite,
		"favorites.algorithm_removed.v1":     onFavorite,
	},
}

func onCreated(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(algorithm.AlgorithmCreated)
	w.Exec(`INSERT INTO {g}.algorithms (id, tenant, project, owner, name, reach, grouped, changes, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, 0, false, $6, $7, $7)`,
		e.Root().ID, e.Meta.Tenant, ev.Project, ev.Owner, ev.Name, byPerson(e), e.Meta.Time)
	return nil
}

func onDeleted(w *runner.Writer, e es.Envelope) error {
	w.Exec(`DELETE FROM {g}.algorithms WHERE id = $1`, e.Root().ID)
	w.Exec(`DELETE FROM {g}.algorithm_favorites WHERE algorithm = $1`, e.Root().ID)
	return nil
}

// onTransferred gives everything of an algorithm another owner. How far its
// versions reached until now is kept with the old one.
func onTransferred(w *runner.Writer, e es.Envelope) error {
	to := e.Event.(algorithm.OwnershipTransferred).To
	w.Exec(`UPDATE {g}.algorithms SET owner = $2 WHERE id = $1`, e.Root().ID, to)
	w.Exec(`UPDATE {g}.algorithm_versions SET owner = $2 WHERE algorithm = $1`, e.Root().ID, to)
	w.Exec(`UPDATE {g}.algorithm_reaches SET valid_to = $2, to_position = $3 WHERE algorithm = $1 AND to_position IS NULL`,
		e.Root().ID, e.Meta.Time, position(e))
	w.Exec(`INSERT INTO {g}.algorithm_reaches (algorithm, version, tenant, project, owner, reach, valid_from, from_position)
		SELECT r.algorithm, r.version, r.tenant, r.project, $2, r.reach, $3, $4
		FROM {g}.algorithm_reaches r WHERE r.algorithm = $1 AND r.to_position = $4`,
		e.Root().ID, to, e.Meta.Time, position(e))
	touch(w, e)
	return nil
}

func onAdded(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(algorithm.VersionAdded)
	status, operation := algorithm.Created, uuid.Nil
	if ev.Copy != nil {
		status, operation = algorithm.Creating, ev.Copy.Operation
	}
	w.Exec(`INSERT INTO {g}.algorithm_versions (id, algorithm, tenant, project, owner, name, label, status, problem, reach,
			settings, based_on, operation, fingerprint, artefact, uses, changes, created_at, updated_at)
		SELECT $2, a.id, a.tenant, a.project, a.owner, a.name, $3, $4, '', 0, $5, $6, NULLIF($7::uuid, $9::uuid), '', false, '[]', 1, $8, $8
		FROM {g}.algorithms a WHERE a.id = $1`,
		e.Root().ID, ev.Version, ev.Label, string(status), es.ValueOf(ev.Settings), es.ValueOf(ev.BasedOn), operation, e.Meta.Time, uuid.Nil)
	w.Exec(`INSERT INTO {g}.algorithm_reaches (algorithm, version, tenant, project, owner, reach, valid_from, from_position)
		SELECT a.id, $2, a.tenant, a.project, a.owner, 0, $3, $4 FROM {g}.algorithms a WHERE a.id = $1`,
		e.Root().ID, ev.Version, e.Meta.Time, position(e))
	touch(w, e)
	return nil
}

func onEdited(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(algorithm.VersionEdited)
	w.Exec(`UPDATE {g}.algorithm_versions SET settings = settings || $2::jsonb, based_on = COALESCE($3, based_on) WHERE id = $1`,
		ev.Version, es.ValueOf(ev.Set), es.ValueOf(ev.BasedOn))
	if to := ev.To(); to != ev.From {
		w.Exec(`UPDATE {g}.algorithm_versions SET status = $2, problem = '' WHERE id = $1`, ev.Version, string(to))
	}
	switch {
	case ev.Copy != nil:
		w.Exec(`UPDATE {g}.algorithm_versions SET operation = $2, wanted = NULL WHERE id = $1`, ev.Version, ev.Copy.Operation)
	case ev.Set.Source.Given:
		w.Exec(`UPDATE {g}.algorithm_versions SET operation = NULL WHERE id = $1`, ev.Version)
	}
	return touchVersion(w, e, ev.Version)
}

// onStatus moves a version to another state, as its fold does.
func onStatus(w *runner.Writer, e es.Envelope) error {
	set := func(v algorithm.OfVersion, status algorithm.Status, problem string) {
		w.Exec(`UPDATE {g}.algorithm_versions SET status = $2, problem = $3, changes = changes + $4, updated_at = $5 WHERE id = $1`,
			v.Version, string(status), problem, ofPerson(e), e.Meta.Time)
	}
	switch ev := e.Event.(type) {
	case algorithm.VersionPrepared:
		set(ev.OfVersion, algorithm.Created, "")
	case algorithm.PreparationFailed:
		set(ev.OfVersion, algorithm.CreateFailed, ev.Problem)
	case algorithm.PreparationRetried:
		set(ev.OfVersion, algorithm.Creating, "")
	case algorithm.PublicationRetried:
		set(ev.OfVersion, algorithm.Publishing, "")
	case algorithm.PublicationFailed:
		set(ev.OfVersion, algorithm.PublishFailed, ev.Problem)
	case algorithm.PublicationCancelled:
		set(ev.OfVersion, algorithm.Created, "")
		w.Exec(`UPDATE {g}.algorithm_versions SET wanted = NULL, artefact = false WHERE id = $1`, ev.Version)
	case algorithm.DeletionStarted:
		set(ev.OfVersion, algorithm.Deleting, "")
		w.Exec(`UPDATE {g}.algorithm_versions SET before = $2, operation = $3 WHERE id = $1`, ev.Version, string(ev.From), ev.Operation)
	case algorithm.DeletionFailed:
		set(ev.OfVersion, ev.Back, ev.Problem)
	case algorithm.DeletionRetried:
		set(ev.OfVersion, algorithm.Deleting, "")
		w.Exec(`UPDATE {g}.algorithm_versions SET before = $2 WHERE id = $1`, ev.Version, string(ev.From))
	}
	touch(w, e)
	return nil
}

// onApproval moves a version to and from waiting for an approval.
func onApproval(w *runner.Writer, e es.Envelope) error {
	switch ev := e.Event.(type) {
	case algorithm.ApprovalRequested:
		asked := algorithm.Approval{Request: ev.Request, By: e.Meta.Actor.User, Digest: ev.Digest}
		w.Exec(`UPDATE {g}.algorithm_versions SET status = $2, problem = '', wanted = $3, approval = $4 WHERE id = $1`,
			ev.Version, string(algorithm.ApprovalPending), string(ev.Visibility), es.ValueOf(asked))
		return touchVersion(w, e, ev.Version)
	case algorithm.ApprovalEnded:
		w.Exec(`UPDATE {g}.algorithm_versions SET status = $2, problem = $3, wanted = NULL WHERE id = $1`,
			ev.Version, string(algorithm.Created), ev.Problem)
		return touchVersion(w, e, ev.Version)
	}
	return nil
}

func onPublicationStarted(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(algorithm.PublicationStarted)
	w.Exec(`UPDATE {g}.algorithm_versions SET status = $2, problem = '', wanted = $3, operation = $4, artefact = true,
			approval = CASE WHEN $7 THEN approval END, changes = changes + $5, updated_at = $6 WHERE id = $1`,
		ev.Version, string(algorithm.Publishing), string(ev.Visibility), ev.Operation, ofPerson(e), e.Meta.Time, ev.From == algorithm.ApprovalPending)
	touch(w, e)
	return nil
}

func onPublished(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(algorithm.VersionPublished)
	reach := access.Reach(ev.Visibility)
	// One statement per row: every change of updated_at is one in several indexes.
	w.Exec(`UPDATE {g}.algorithm_versions SET status = $2, problem = '', visibility = $3, wanted = NULL, reach = $4,
			fingerprint = $5, files = $6, published_at = $7, published_by = $8, approval = CASE WHEN $10 THEN approval END,
			changes = changes + $9, updated_at = $7 WHERE id = $1`,
		ev.Version, string(algorithm.Published), string(ev.Visibility), reach, ev.Fingerprint, es.ValueOf(ev.Files), e.Meta.Time, ev.By, ofPerson(e),
		ev.From == algorithm.ApprovalPending || ev.From == algorithm.Publishing)
	w.Exec(`UPDATE {g}.algorithms SET reach = GREATEST(reach, $2), grouped = grouped OR $5, changes = changes + $3, updated_at = $4 WHERE id = $1`,
		e.Root().ID, reach, byPerson(e), e.Meta.Time, reach == access.ReachGroup)
	if reach == access.ReachOwner {
		return nil // as far as before
	}
	endReach(w, e, ev.Version)
	w.Exec(`INSERT INTO {g}.algorithm_reaches (algorithm, version, tenant, project, owner, reach, valid_from, from_position)
		SELECT r.algorithm, r.version, r.tenant, r.project, r.owner, $3, $4, $5
		FROM {g}.algorithm_reaches r WHERE r.algorithm = $1 AND r.version = $2 AND r.to_position = $5`,
		e.Root().ID, ev.Version, reach, e.Meta.Time, position(e))
	return nil
}

// endReach ends how far a version reached until now.
func endReach(w *runner.Writer, e es.Envelope, version uuid.UUID) {
	w.Exec(`UPDATE {g}.algorithm_reaches SET valid_to = $3, to_position = $4 WHERE algorithm = $1 AND version = $2 AND to_position IS NULL`,
		e.Root().ID, version, e.Meta.Time, position(e))
}

func position(e es.Envelope) int64 { return int64(e.Position) } //nolint:gosec // positions stay below 2^63

func onVersionDeleted(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(algorithm.VersionDeleted)
	w.Exec(`DELETE FROM {g}.algorithm_versions WHERE id = $1`, ev.Version)
	endReach(w, e, ev.Version)
	w.Exec(`UPDATE {g}.algorithms SET reach = COALESCE((SELECT max(v.reach) FROM {g}.algorithm_versions v WHERE v.algorithm = $1), 0),
			grouped = EXISTS (SELECT 1 FROM {g}.algorithm_versions v WHERE v.algorithm = $1 AND v.reach = $2) WHERE id = $1`, e.Root().ID, access.ReachGroup)
	touch(w, e)
	return nil
}

func onUse(w *runner.Writer, e es.Envelope) error {
	switch ev := e.Event.(type) {
	case algorithm.UseRegistered:
		w.Exec(`UPDATE {g}.algorithm_versions SET uses = uses || jsonb_build_array($2::jsonb) WHERE id = $1`, ev.Version, es.ValueOf(ev.Use))
		return touchVersion(w, e, ev.Version)
	case algorithm.UseReleased:
		w.Exec(`UPDATE {g}.algorithm_versions SET uses = COALESCE((SELECT jsonb_agg(u ORDER BY n) FROM jsonb_array_elements(uses) WITH ORDINALITY x(u, n)
			WHERE u -> 'by' <> $2::jsonb), '[]') WHERE id = $1`, ev.Version, es.ValueOf(ev.By))
		return touchVersion(w, e, ev.Version)
	}
	return nil
}

func onFavorite(w *runner.Writer, e es.Envelope) error {
	switch ev := e.Event.(type) {
	case algorithm.FavoriteAdded:
		// An algorithm that was deleted in between is liked by nobody any more.
		w.Exec(`INSERT INTO {g}.algorithm_favorites (tenant, user_id, algorithm, since)
			SELECT $1, $2, a.id, $4 FROM {g}.algorithms a WHERE a.id = $3 ON CONFLICT DO NOTHING`,
			e.Meta.Tenant, e.Root().ID, ev.Algorithm, e.Meta.Time)
	case algorithm.FavoriteRemoved:
		w.Exec(`DELETE FROM {g}.algorithm_favorites WHERE user_id = $1 AND algorithm = $2`, e.Root().ID, ev.Algorithm)
	}
	return nil
}

// touchVersion counts a change of a version and of its algorithm.
func touchVersion(w *runner.Writer, e es.Envelope, id uuid.UUID) error {
	w.Exec(`UPDATE {g}.algorithm_versions SET changes = changes + $2, updated_at = $3 WHERE id = $1`, id, ofPerson(e), e.Meta.Time)
	touch(w, e)
	return nil
}

func touch(w *runner.Writer, e es.Envelope) {
	w.Exec(`UPDATE {g}.algorithms SET changes = changes + $2, updated_at = $3 WHERE id = $1`, e.Root().ID, byPerson(e), e.Meta.Time)
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
