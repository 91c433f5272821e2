// Package operation is the read model of long operations: rows for lists and
// details, and what the worker is to do, made from the events of domain/operation.
package operation

import (
	_ "embed" // schema.sql, indexes.sql

	"tallyard/domain/es"
	"tallyard/domain/operation"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Projection makes the table.
var Projection = runner.Projection{
	Name:       "operation",
	Version:    1,
	Schema:     schema,
	Indexes:    indexes,
	Categories: []string{operation.Category},
	On: map[string]runner.Handler{
		"operation.queued.v1":           onQueued,
		"operation.started.v1":          onStarted,
		"operation.succeeded.v1":        onSucceeded,
		"operation.failed.v1":           onFailed,
		"operation.cancel_requested.v1": onCancelRequested,
		"operation.cancelled.v1":        onCancelled,
		"operation.retried.v1":          onRetried,
		"operation.dismissed.v1":        onDismissed,
	},
}

func onQueued(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(operation.OperationQueued)
	w.Insert("operations", `id, tenant, project, owner, kind, subject_kind, subject, subject_parent, work, status, attempt,
		done_bytes, total_bytes, fingerprint, files, bytes, cancel_requested, dismissed, queued_at, line`,
		e.Root().ID, e.Meta.Tenant, ev.Project, ev.Owner, string(ev.Kind), ev.Subject.Kind, ev.Subject.ID, ev.Subject.Parent,
		string(ev.Work.Kind), string(operation.Queued), 1, int64(0), int64(0), "", int64(0), int64(0), false, false, e.Meta.Time, line(e))
	return nil
}

func onStarted(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(operation.OperationStarted)
	w.Exec(`UPDATE {g}.operations SET status = $2, attempt = $3, started_at = $4, ended_at = NULL WHERE id = $1`,
		e.Root().ID, string(operation.Running), ev.Attempt, e.Meta.Time)
	return nil
}

func onSucceeded(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(operation.OperationSucceeded)
	w.Exec(`UPDATE {g}.operations SET fingerprint = $2, files = $3, bytes = $4 WHERE id = $1`,
		e.Root().ID, ev.Result.Fingerprint, ev.Result.Files, ev.Result.Bytes)
	end(w, e, operation.Succeeded, ev.Amount)
	return nil
}

func onFailed(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(operation.OperationFailed)
	w.Exec(`UPDATE {g}.operations SET error_code = $2, error_message = $3 WHERE id = $1`,
		e.Root().ID, string(ev.Code), ev.Message)
	end(w, e, operation.Failed, ev.Amount)
	return nil
}

func onCancelRequested(w *runner.Writer, e es.Envelope) error {
	w.Exec(`UPDATE {g}.operations SET cancel_requested = true WHERE id = $1`, e.Root().ID)
	return nil
}

func onCancelled(w *runner.Writer, e es.Envelope) error {
	end(w, e, operation.Cancelled, operation.Amount{})
	return nil
}

func onRetried(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(operation.OperationRetried)
	w.Exec(`UPDATE {g}.operations SET status = $2, attempt = $3, line = $4, error_code = NULL, error_message = NULL,
			dismissed = false, started_at = NULL, ended_at = NULL WHERE id = $1`,
		e.Root().ID, string(operation.Queued), ev.Attempt, line(e))
	return nil
}

func onDismissed(w *runner.Writer, e es.Envelope) error {
	w.Exec(`UPDATE {g}.operations SET dismissed = true WHERE id = $1`, e.Root().ID)
	return nil
}

func end(w *runner.Writer, e es.Envelope, status operation.Status, a operation.Amount) {
	w.Exec(`UPDATE {g}.operations SET status = $2, done_bytes = $3, total_bytes = $4, cancel_requested = false, ended_at = $5 WHERE id = $1`,
		e.Root().ID, string(status), a.DoneBytes, a.TotalBytes, e.Meta.Time)
}

// line is the place in the worker's line.
func line(e es.Envelope) int64 { return int64(e.Position) } //nolint:gosec // positions are far below 2^63
