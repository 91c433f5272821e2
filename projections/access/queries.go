package access

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/access"
	"tallyard/domain/user"
	"tallyard/projections/runner"
)

// Queries reads the tables.
type Queries struct{ Reader *runner.Reader }

// RolesOf gives the roles that users of a tenant hold now, also those of
// suspended ones, who can't use them. A tenant admin and an auditor get
// everybody's, others their own.
func (q Queries) RolesOf(ctx context.Context, viewer access.Grants, users []uuid.UUID) (map[uuid.UUID][]user.Grant, error) {
	f := FilterOf(viewer)
	rows, err := q.Reader.Query(ctx, `SELECT user_id, role, project FROM {g}.access_grants
		WHERE tenant = $1 AND user_id = ANY($2) AND ($3 OR user_id = $4) AND valid_to IS NULL
		ORDER BY user_id, project, role`, f.Tenant, users, f.All, f.User)
	if err != nil {
		return nil, err
	}
	roles := map[uuid.UUID][]user.Grant{}
	var id uuid.UUID
	var g user.Grant
	_, err = pgx.ForEachRow(rows, []any{&id, &g.Role, &g.Project}, func() error {
		roles[id] = append(roles[id], g)
		return nil
	})
	return roles, err
}

// Powers are what somebody may do beside their roles.
type Powers struct {
	Permissions []access.Permission
	Scope       access.BusinessScope // empty: none was ever set
	Quota       user.Quota
}

// PowersOf gives what users of a tenant may do now beside their roles, as
// RolesOf does for roles. Who has none is missing.
func (q Queries) PowersOf(ctx context.Context, viewer access.Grants, users []uuid.UUID) (map[uuid.UUID]Powers, error) {
	f := FilterOf(viewer)
	rows, err := q.Reader.Query(ctx, `SELECT user_id, kind, power FROM {g}.access_powers
		WHERE tenant = $1 AND user_id = ANY($2) AND ($3 OR user_id = $4) AND valid_to IS NULL
		ORDER BY user_id, kind, power`, f.Tenant, users, f.All, f.User)
	if err != nil {
		return nil, err
	}
	found := map[uuid.UUID]Powers{}
	var id uuid.UUID
	var kind, power string
	_, err = pgx.ForEachRow(rows, []any{&id, &kind, &power}, func() error {
		p := found[id]
		switch kind {
		case kindScope:
			p.Scope = access.BusinessScope(power)
		case kindQuota:
			if err := json.Unmarshal([]byte(power), &p.Quota); err != nil {
				return fmt.Errorf("quota of user %s: %w", id, err)
			}
		default:
			p.Permissions = append(p.Permissions, access.Permission(power))
		}
		found[id] = p
		return nil
	})
	return found, err
}
