// Package approval is the read model of requests for an approval: rows for
// lists and details, made from the events of domain/approval.
package approval

import (
	_ "embed" // schema.sql, indexes.sql

	"github.com/google/uuid"

	"tallyard/domain/approval"
	"tallyard/domain/es"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Projection makes the table.
var Projection = runner.Projection{
	Name:       "approval",
	Version:    1,
	Schema:     schema,
	Indexes:    indexes,
	Categories: []string{approval.Category},
	On: map[string]runner.Handler{
		"approval.requested.v1": onRequested,
		"approval.approved.v1":  ended(approval.StatusApproved),
		"approval.rejected.v1":  ended(approval.StatusRejected),
		"approval.withdrawn.v1": ended(approval.StatusWithdrawn),
		"approval.expired.v1":   ended(approval.StatusExpired),
	},
}

func onRequested(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(approval.Requested)
	w.Insert("approvals", `id, tenant, project, owner, action, subject_kind, subject, subject_parent, digest, reason,
		status, requested_at, expires_at, answer`,
		e.Root().ID, e.Meta.Tenant, ev.Project, ev.Requester, string(ev.Subject.Action), ev.Subject.Kind, ev.Subject.ID, ev.Subject.Parent,
		ev.Subject.Digest, e.Meta.Reason, string(approval.Pending), e.Meta.Time, ev.Expires, "")
	return nil
}

func ended(status approval.Status) runner.Handler {
	return func(w *runner.Writer, e es.Envelope) error {
		w.Exec(`UPDATE {g}.approvals SET status = $2, ended_at = $3, ended_by = NULLIF($4::uuid, $5::uuid), answer = $6 WHERE id = $1`,
			e.Root().ID, string(status), e.Meta.Time, e.Meta.Actor.User, uuid.Nil, e.Meta.Reason)
		return nil
	}
}
