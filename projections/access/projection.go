package access

import (
	_ "embed" // schema.sql, indexes.sql

	"tallyard/domain/es"
	"tallyard/domain/user"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// Projection makes the tables.
var Projection = runner.Projection{
	Name:       "access",
	Version:    4,
	Schema:     schema,
	Indexes:    indexes,
	Categories: []string{user.Category},
	On: map[string]runner.Handler{
		"user.created.v1":              onEnabled,
		"user.reinstated.v1":           onEnabled,
		"user.suspended.v1":            onDisabled,
		"user.removed.v1":              onErased,
		"user.personal_data_erased.v1": onErased,
		"user.role_granted.v1":         onGranted,
		"user.role_revoked.v1":         onRevoked,
		"user.permission_granted.v1":   onPermissionGranted,
		"user.permission_revoked.v1":   onPermissionRevoked,
		"user.business_scope_set.v1":   onScopeSet,
		"user.quota_set.v1":            onQuotaSet,
	},
}

func onEnabled(w *runner.Writer, e es.Envelope) error {
	w.Exec(`INSERT INTO {g}.access_periods (tenant, user_id, valid_from, from_position) VALUES ($1, $2, $3, $4)`,
		e.Stream.Tenant, e.Root().ID, e.Meta.Time, position(e))
	return nil
}

func onDisabled(w *runner.Writer, e es.Envelope) error {
	w.Exec(`UPDATE {g}.access_periods SET valid_to = $2, to_position = $3 WHERE user_id = $1 AND valid_to IS NULL`,
		e.Root().ID, e.Meta.Time, position(e))
	return nil
}

func onGranted(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(user.RoleGranted)
	w.Exec(`INSERT INTO {g}.access_grants (tenant, user_id, role, project, valid_from, from_position) VALUES ($1, $2, $3, $4, $5, $6)`,
		e.Stream.Tenant, e.Root().ID, string(ev.Role), ev.Project, e.Meta.Time, position(e))
	return nil
}

func onRevoked(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(user.RoleRevoked)
	w.Exec(`UPDATE {g}.access_grants SET valid_to = $4, to_position = $5
		WHERE user_id = $1 AND role = $2 AND project = $3 AND valid_to IS NULL`,
		e.Root().ID, string(ev.Role), ev.Project, e.Meta.Time, position(e))
	return nil
}

func onPermissionGranted(w *runner.Writer, e es.Envelope) error {
	givePower(w, e, kindPermission, string(e.Event.(user.PermissionGranted).Permission))
	return nil
}

func onPermissionRevoked(w *runner.Writer, e es.Envelope) error {
	takePower(w, e, kindPermission, string(e.Event.(user.PermissionRevoked).Permission))
	return nil
}

func onScopeSet(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(user.BusinessScopeSet)
	takePower(w, e, kindScope, string(ev.From))
	givePower(w, e, kindScope, string(ev.To))
	return nil
}

func onQuotaSet(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(user.QuotaSet)
	w.Exec(`UPDATE {g}.access_powers SET valid_to = $3, to_position = $4 WHERE user_id = $1 AND kind = $2 AND valid_to IS NULL`,
		e.Root().ID, kindQuota, e.Meta.Time, position(e))
	givePower(w, e, kindQuota, string(es.ValueOf(ev.To)))
	return nil
}

// Kinds of powers.
const (
	kindPermission = "permission"
	kindScope      = "scope"
	kindQuota      = "quota" // the power is its JSON
)

func givePower(w *runner.Writer, e es.Envelope, kind, power string) {
	w.Exec(`INSERT INTO {g}.access_powers (tenant, user_id, kind, power, valid_from, from_position) VALUES ($1, $2, $3, $4, $5, $6)`,
		e.Stream.Tenant, e.Root().ID, kind, power, e.Meta.Time, position(e))
}

func takePower(w *runner.Writer, e es.Envelope, kind, power string) {
	w.Exec(`UPDATE {g}.access_powers SET valid_to = $4, to_position = $5
		WHERE user_id = $1 AND kind = $2 AND power = $3 AND valid_to IS NULL`,
		e.Root().ID, kind, power, e.Meta.Time, position(e))
}

// onErased ends what the user still held; the periods before stay for the
// question of who could see something on a day.
func onErased(w *runner.Writer, e es.Envelope) error {
	w.Exec(`UPDATE {g}.access_grants SET valid_to = $2, to_position = $3 WHERE user_id = $1 AND valid_to IS NULL`,
		e.Root().ID, e.Meta.Time, position(e))
	w.Exec(`UPDATE {g}.access_powers SET valid_to = $2, to_position = $3 WHERE user_id = $1 AND valid_to IS NULL`,
		e.Root().ID, e.Meta.Time, position(e))
	return onDisabled(w, e)
}

func position(e es.Envelope) int64 { return int64(e.Position) } //nolint:gosec // positions stay below 2^63
