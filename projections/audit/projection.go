// Package audit is the read model of the audit: one entry per command that
// changed something or was refused (AUD-01).
package audit

import (
	"bytes"
	_ "embed" // schema.sql, indexes.sql
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Projection makes the table. It reads every category: an event that this
// program does not know halts it rather than leave a hole in the audit.
var Projection = runner.Projection{
	Name:    "audit",
	Version: 2,
	Schema:  schema,
	Indexes: indexes,
	On: map[string]runner.Handler{
		"refusals.command_refused.v1": onRefused,
		"refusals.summarised.v2":      onSummarised,
	},
	Every: onEvent,
}

// plumbing are the categories of streams that are about how the platform
// works, not about what somebody did.
var plumbing = []string{es.NameCategory, es.CommandCategory, es.ProcessCategory, "installation"}

// Outcome tells how a command ended.
type Outcome string

// Outcomes. A summary stands for refusals that were not recorded singly.
const (
	Done    Outcome = "DONE"
	Refused Outcome = "REFUSED"
	Summary Outcome = "REFUSED_REPEATEDLY"
)

// Recorded tells whether an event makes an audit entry or adds to one.
func Recorded(e es.Envelope) bool { return !slices.Contains(plumbing, e.Stream.Category) }

func onEvent(w *runner.Writer, e es.Envelope) error {
	if !Recorded(e) {
		return nil
	}
	changes := e.Event.Changes()
	if changes == nil {
		changes = []es.Change{}
	}
	write(w, e, Done, []es.StoredFault{}, changes)
	return nil
}

func onRefused(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(es.CommandRefused)
	write(w, e, Refused, ev.Faults, []es.Change{})
	return nil
}

func onSummarised(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(es.RefusalsSummarised)
	// The summary is about the actor whose stream it stands in, though the
	// platform wrote it.
	e.Meta.Actor = es.Actor{Kind: es.ActorUser, User: e.Root().ID}
	write(w, e, Summary, []es.StoredFault{{Code: ev.Code}}, []es.Change{
		es.Set("refusals", ev.Count), es.Set("minute", ev.Minute), es.Set("of", ev.Of),
	})
	return nil
}

// write makes the command's entry; a further event of the same command adds to
// it what it changed. A command ends as its last event says: one that is refused
// half way, after its first events, as refused; one that was refused and comes
// again with its key, or after a crash, as done, and that it was refused before
// stays to be read.
func write(w *runner.Writer, e es.Envelope, outcome Outcome, faults []es.StoredFault, changes []es.Change) {
	m, subject := e.Meta, e.Subject()
	w.Upsert(&entries, m.Command,
		e.ID, m.Command, int64(e.Position), m.Tenant, optional(m.Project), m.Action, string(m.Actor.Kind), //nolint:gosec // positions stay below 2^63
		optional(m.Actor.User), optional(m.Actor.Token), m.Actor.Part, subject.Kind, optional(subject.ID), optional(subject.Parent),
		request(m.Request), optional(m.Correlation), optional(m.Causation), m.Reason, m.Time,
		string(outcome), es.ValueOf(faults), es.ValueOf(changes), es.ValueOf([]string{e.Name}))
}

// entries are the rows; the last four columns are what further events add to.
var entries = runner.Upsert{
	Table: "audit_entries",
	Columns: `id, command, position, tenant, project, action, actor_kind, actor, token, part,
		subject_kind, subject, subject_parent, request, correlation, causation, reason, at, outcome, faults, changes, events`,
	Conflict: `(command) DO UPDATE SET outcome = EXCLUDED.outcome, faults = audit_entries.faults || EXCLUDED.faults,
		changes = audit_entries.changes || EXCLUDED.changes, events = audit_entries.events || EXCLUDED.events`,
	Merge: func(have, more []any) {
		outcome := len(have) - 4
		have[outcome] = more[outcome]
		for i := outcome + 1; i < len(have); i++ {
			have[i] = joined(have[i].(json.RawMessage), more[i].(json.RawMessage))
		}
	},
}

// joined is one JSON array followed by another.
func joined(a, b json.RawMessage) json.RawMessage {
	inner := func(list json.RawMessage) []byte { return bytes.TrimSpace(list[1 : len(list)-1]) }
	first, second := inner(a), inner(b)
	switch {
	case len(first) == 0:
		return b
	case len(second) == 0:
		return a
	}
	return json.RawMessage("[" + string(first) + "," + string(second) + "]")
}

// request is the request's id, which the API makes; nil for what had none.
func request(id string) *uuid.UUID {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return nil
	}
	return &parsed
}

func optional(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}
