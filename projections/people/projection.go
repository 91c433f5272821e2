// Package people is the read model of tenants, projects and users, the one
// that others may join to show who somebody is.
package people

import (
	"context"
	_ "embed" // schema.sql, indexes.sql
	"time"

	"tallyard/domain/es"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/projections/runner"
)

//go:embed schema.sql
var schema string

//go:embed indexes.sql
var indexes string

// keyTimeout bounds the wait for a person's key.
const keyTimeout = 10 * time.Second

// Projection makes the tables. It opens sealed personal data with the keys as
// they are now: who is erased stays erased in every rebuild.
func Projection(keys user.PersonKeys) runner.Projection {
	return runner.Projection{
		Name:       "people",
		Version:    3,
		Schema:     schema,
		Indexes:    indexes,
		Categories: []string{tenant.Category, project.Category, user.Category, user.PersonCategory},
		On: map[string]runner.Handler{
			"tenant.created.v1":            onTenantCreated,
			"tenant.renamed.v1":            onTenantRenamed,
			"project.created.v1":           onProjectCreated,
			"project.updated.v1":           onProjectUpdated,
			"project.closed.v1":            onProjectClosed,
			"project.reopened.v1":          onProjectReopened,
			"person.described.v1":          onDescribed(keys),
			"user.created.v1":              onState(user.Active),
			"user.suspended.v1":            onState(user.SuspendedState),
			"user.reinstated.v1":           onState(user.Active),
			"user.removed.v1":              onState(user.RemovedState),
			"user.personal_data_erased.v1": onErased,
		},
	}
}

func onTenantCreated(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(tenant.Created)
	w.Exec(`INSERT INTO {g}.tenants (id, name, version, created_at) VALUES ($1, $2, 1, $3)`, e.Root().ID, ev.Name, e.Meta.Time)
	return nil
}

func onTenantRenamed(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(tenant.Renamed)
	w.Exec(`UPDATE {g}.tenants SET name = $2, version = version + 1 WHERE id = $1`, e.Root().ID, ev.To)
	return nil
}

func onProjectCreated(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(project.Created)
	w.Exec(`INSERT INTO {g}.projects (id, tenant, name, description, version, created_at) VALUES ($1, $2, $3, $4, 1, $5)`,
		e.Root().ID, e.Stream.Tenant, ev.Name, ev.Description, e.Meta.Time)
	return nil
}

func onProjectUpdated(w *runner.Writer, e es.Envelope) error {
	ev := e.Event.(project.Updated)
	w.Exec(`UPDATE {g}.projects SET version = version + 1 WHERE id = $1`, e.Root().ID)
	if ev.Name != nil {
		w.Exec(`UPDATE {g}.projects SET name = $2 WHERE id = $1`, e.Root().ID, ev.Name.To)
	}
	if ev.Description != nil {
		w.Exec(`UPDATE {g}.projects SET description = $2 WHERE id = $1`, e.Root().ID, ev.Description.To)
	}
	return nil
}

func onProjectClosed(w *runner.Writer, e es.Envelope) error {
	w.Exec(`UPDATE {g}.projects SET version = version + 1, closed_at = $2 WHERE id = $1`, e.Root().ID, e.Meta.Time)
	return nil
}

func onProjectReopened(w *runner.Writer, e es.Envelope) error {
	w.Exec(`UPDATE {g}.projects SET version = version + 1, closed_at = NULL WHERE id = $1`, e.Root().ID)
	return nil
}

// onDescribed comes before the user it is about, so it makes the row.
func onDescribed(keys user.PersonKeys) runner.Handler {
	return func(w *runner.Writer, e es.Envelope) error {
		ctx, cancel := context.WithTimeout(context.Background(), keyTimeout)
		defer cancel()
		p, err := user.Describe(ctx, keys, e)
		if err != nil {
			return err
		}
		ev := e.Event.(user.Described)
		w.Exec(`INSERT INTO {g}.users (id, tenant, login_name, display_name, email, erased, state, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, '', $7)
			ON CONFLICT (id) DO UPDATE SET login_name = EXCLUDED.login_name, display_name = EXCLUDED.display_name,
				email = EXCLUDED.email, erased = EXCLUDED.erased`,
			ev.User, e.Stream.Tenant, shown(p.LoginName, p.Erased), p.DisplayName, p.Email, p.Erased, e.Meta.Time)
		return nil
	}
}

// unknown stands for the name of a user whose personal data was not there to be
// read: the person's stream is gone, or parked.
const unknown = "unknown"

// onState makes the row for users who come without a person.
func onState(s user.Status) runner.Handler {
	return func(w *runner.Writer, e es.Envelope) error {
		w.Exec(`INSERT INTO {g}.users (id, tenant, login_name, display_name, email, erased, state, created_at)
			VALUES ($1, $2, $3, $3, '', false, $4, $5)
			ON CONFLICT (id) DO UPDATE SET state = EXCLUDED.state`,
			e.Root().ID, e.Stream.Tenant, unknown, string(s), e.Meta.Time)
		return nil
	}
}

func onErased(w *runner.Writer, e es.Envelope) error {
	w.Exec(`UPDATE {g}.users SET login_name = $2, display_name = $2, email = '', erased = true, state = $3 WHERE id = $1`,
		e.Root().ID, user.ErasedName, string(user.Erased))
	return nil
}

// shown is the name that stands for who was erased.
func shown(name string, erased bool) string {
	if erased {
		return user.ErasedName
	}
	return name
}
