package algorithm

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	projaccess "tallyard/projections/access"
)

// Turn is a change of a viewer's rights at a place of the log.
type Turn struct {
	Tenant, User uuid.UUID
	Turned       access.Turned
	At           es.Position
	Project      uuid.UUID // of the algorithms that are asked for; nil: any
	After        uuid.UUID // the last algorithm that was given before
	Limit        int
}

// Touched gives the algorithms that may have come into the viewer's view or
// gone out of it at a turn, in the order of their ids: as they were at that
// place of the log, with nothing but what tells who sees them. Also those are
// among them that were deleted since.
func (q Queries) Touched(ctx context.Context, t Turn) ([]algorithm.State, error) {
	at := int64(t.At) //nolint:gosec // positions stay below 2^63
	cond, args := projaccess.Touched(t.Tenant, t.User, t.Turned, "t", []any{at, t.After, t.Limit})
	if t.Project != uuid.Nil {
		args = append(args, t.Project)
		cond += fmt.Sprintf(" AND t.project = $%d", len(args))
	}
	const valid = "%[1]s.from_position <= $1 AND (%[1]s.to_position IS NULL OR %[1]s.to_position > $1)"
	rows, err := q.Reader.Query(ctx, `SELECT r.algorithm, r.tenant, r.project, r.owner, r.version, r.reach FROM (
			SELECT DISTINCT t.algorithm FROM {g}.algorithm_reaches t WHERE `+cond+` AND `+fmt.Sprintf(valid, "t")+` AND t.algorithm > $2
			ORDER BY t.algorithm LIMIT $3) touched
		JOIN {g}.algorithm_reaches r ON r.algorithm = touched.algorithm AND `+fmt.Sprintf(valid, "r")+`
		ORDER BY r.algorithm, r.from_position, r.version`, args...)
	if err != nil {
		return nil, err
	}
	var (
		list  []algorithm.State
		s     algorithm.State
		v     uuid.UUID
		reach int
	)
	_, err = pgx.ForEachRow(rows, []any{&s.ID, &s.Tenant, &s.Project, &s.Owner, &v, &reach}, func() error {
		if n := len(list); n == 0 || list[n-1].ID != s.ID {
			list = append(list, s)
		}
		last := &list[len(list)-1]
		last.Versions = append(last.Versions, algorithm.Version{ID: v, Visibility: projaccess.Visibility(reach)})
		return nil
	})
	return list, err
}
