package people

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/projections/page"
)

// Member is somebody who belongs to a project.
type Member struct {
	Project uuid.UUID
	Admin   bool // of the project; of several roles the strongest counts
	User         // as they are now
}

// members are the grants of roles in a project that were in force at a position
// of the log, or are now when it is 0. Suspended people keep theirs.
func members(tenant, project string, at es.Position, args []any) (string, []any) {
	moment := "a.valid_to IS NULL"
	if at != es.StartPosition {
		args = append(args, limit(at))
		moment = fmt.Sprintf("a.from_position <= $%[1]d AND (a.to_position IS NULL OR a.to_position > $%[1]d)", len(args))
	}
	return fmt.Sprintf(`{g}.users u JOIN (SELECT a.user_id, bool_or(a.role = '%s') AS admin FROM {g}.access_grants a
		WHERE a.tenant = %s AND a.project = %s AND %s GROUP BY a.user_id) m ON m.user_id = u.id`,
		access.ProjectAdmin, tenant, project, moment), args
}

// limit is a position as Postgres keeps it; those behind all that there are
// stay that.
func limit(p es.Position) int64 {
	return int64(min(p, 1<<63-1))
}

// MembersOf gives one page of the members of each of some projects, by login
// name, in one statement however many projects there are. Of projects that the
// viewer does not see there are none.
func (q Queries) MembersOf(ctx context.Context, g access.Grants, projects []uuid.UUID, at es.Position, p page.Page) (map[uuid.UUID]page.Rows[Member], error) {
	seen := make([]uuid.UUID, 0, len(projects))
	for _, id := range projects {
		if g.In(id) || g.ReadsAll() {
			seen = append(seen, id)
		}
	}
	from, args := members("$1", "wanted.id", at, []any{g.Tenant, seen})
	bound, tail, args := page.SQL(UsersByLogin, p, args)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf(`SELECT l.* FROM unnest($2::uuid[]) AS wanted(id) CROSS JOIN LATERAL (
			SELECT wanted.id AS project, m.admin, %s FROM %s WHERE u.tenant = $1 AND %s %s) l`, userColumns, from, bound, tail), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanMember)
	if err != nil {
		return nil, err
	}
	by := map[uuid.UUID][]Member{}
	for _, m := range list {
		by[m.Project] = append(by[m.Project], m)
	}
	found := make(map[uuid.UUID]page.Rows[Member], len(projects))
	for _, id := range projects {
		found[id] = page.Cut(by[id], p)
	}
	return found, nil
}

// CountMembers counts the members of a project that the viewer sees.
func (q Queries) CountMembers(ctx context.Context, g access.Grants, project uuid.UUID, at es.Position) (int, error) {
	if !g.In(project) && !g.ReadsAll() {
		return 0, nil
	}
	from, args := members("$1", "$2", at, []any{g.Tenant, project})
	return q.count(ctx, from+" WHERE u.tenant = $1", args)
}

func scanMember(row pgx.CollectableRow) (Member, error) {
	var m Member
	err := row.Scan(&m.Project, &m.Admin, &m.ID, &m.Tenant, &m.LoginName, &m.DisplayName, &m.Email, &m.State, &m.Erased, &m.Created)
	return m, err
}
