package people

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/access"
	"tallyard/domain/user"
	projaccess "tallyard/projections/access"
	"tallyard/projections/page"
	"tallyard/projections/runner"
)

// Queries reads the tables. What they show is cut by the viewer's grants.
type Queries struct{ Reader *runner.Reader }

// Tenant is a row of the tenants.
type Tenant struct {
	ID      uuid.UUID
	Name    string
	Version int
	Created time.Time
}

// Project is a row of the projects.
type Project struct {
	ID          uuid.UUID
	Tenant      uuid.UUID
	Name        string
	Description string
	Version     int
	Created     time.Time
	Closed      *time.Time // nil: it is open
}

// User is a row of the users. All people of a tenant see each other's names;
// who may see an e-mail address is for the caller to say.
type User struct {
	ID          uuid.UUID
	Tenant      uuid.UUID
	LoginName   string
	DisplayName string
	Email       string
	State       user.Status
	Erased      bool
	Created     time.Time
}

// Orders of the lists.
var (
	TenantsByName  = page.Order{Column: page.Column{SQL: "t.name", Cast: "text"}, IDColumn: "t.id"}
	ProjectsByName = page.Order{Column: page.Column{SQL: "p.name", Cast: "text"}, IDColumn: "p.id"}
	UsersByLogin   = page.Order{Column: page.Column{SQL: "u.login_name", Cast: "text"}, IDColumn: "u.id"}
)

// Key is the tenant's place in its list.
func (t Tenant) Key() page.Key { return page.Key{Value: t.Name, ID: t.ID} }

// Key is the project's place in its list.
func (p Project) Key() page.Key { return page.Key{Value: p.Name, ID: p.ID} }

// Key is the user's place in its list.
func (u User) Key() page.Key { return page.Key{Value: u.LoginName, ID: u.ID} }

// UserFilter cuts the list of users; what is zero does not cut.
type UserFilter struct {
	Project uuid.UUID // members of it, by any role
	State   user.Status
}

const (
	tenantColumns  = "t.id, t.name, t.version, t.created_at"
	projectColumns = "p.id, p.tenant, p.name, p.description, p.version, p.created_at, p.closed_at"
	userColumns    = "u.id, u.tenant, u.login_name, u.display_name, u.email, u.state, u.erased, u.created_at"
)

// tenants is what the viewer sees of the tenants: operators all, others their own.
func tenants(g access.Grants) (string, []any) {
	switch {
	case !g.Active:
		return "{g}.tenants t WHERE FALSE", nil
	case g.Has(access.Operator):
		return "{g}.tenants t WHERE TRUE", nil
	}
	return "{g}.tenants t WHERE t.id = $1", []any{g.Tenant}
}

// projects is what the viewer sees of the projects: their own, and all of the
// tenant for who reads everything.
func projects(g access.Grants) (string, []any) {
	f := projaccess.FilterOf(g)
	if f.All {
		return "{g}.projects p WHERE p.tenant = $1", []any{f.Tenant}
	}
	return "{g}.projects p WHERE p.tenant = $1 AND p.id = ANY($2)", []any{f.Tenant, f.Projects}
}

// users is what the viewer sees of the users: the people of the tenant.
func users(g access.Grants, f UserFilter) (string, []any) {
	from, args := "{g}.users u WHERE u.tenant = $1 AND u.state <> ''", []any{projaccess.FilterOf(g).Tenant}
	if f.State != "" {
		args = append(args, string(f.State))
		from += fmt.Sprintf(" AND u.state = $%d", len(args))
	}
	if f.Project != uuid.Nil {
		if !g.In(f.Project) && !g.ReadsAll() {
			return from + " AND FALSE", args
		}
		args = append(args, f.Project)
		from += fmt.Sprintf(" AND EXISTS (SELECT 1 FROM {g}.access_grants a WHERE a.user_id = u.id AND a.project = $%d AND a.valid_to IS NULL)", len(args))
	}
	return from, args
}

// Tenants gives a page of tenants by name.
func (q Queries) Tenants(ctx context.Context, g access.Grants, p page.Page) (page.Rows[Tenant], error) {
	from, args := tenants(g)
	return list[Tenant](ctx, q, tenantColumns, from, args, TenantsByName, p)
}

// CountTenants counts what Tenants would go through.
func (q Queries) CountTenants(ctx context.Context, g access.Grants) (int, error) {
	from, args := tenants(g)
	return q.count(ctx, from, args)
}

// TenantsByID gives the tenants that the viewer sees.
func (q Queries) TenantsByID(ctx context.Context, g access.Grants, ids []uuid.UUID) (map[uuid.UUID]Tenant, error) {
	from, args := tenants(g)
	return byID(ctx, q, tenantColumns, from, args, "t.id", ids, func(t Tenant) uuid.UUID { return t.ID })
}

// Projects gives a page of projects by name.
func (q Queries) Projects(ctx context.Context, g access.Grants, p page.Page) (page.Rows[Project], error) {
	from, args := projects(g)
	return list[Project](ctx, q, projectColumns, from, args, ProjectsByName, p)
}

// CountProjects counts what Projects would go through.
func (q Queries) CountProjects(ctx context.Context, g access.Grants) (int, error) {
	from, args := projects(g)
	return q.count(ctx, from, args)
}

// ProjectsByID gives the projects that the viewer sees.
func (q Queries) ProjectsByID(ctx context.Context, g access.Grants, ids []uuid.UUID) (map[uuid.UUID]Project, error) {
	from, args := projects(g)
	return byID(ctx, q, projectColumns, from, args, "p.id", ids, func(p Project) uuid.UUID { return p.ID })
}

// Users gives a page of users by login name.
func (q Queries) Users(ctx context.Context, g access.Grants, f UserFilter, p page.Page) (page.Rows[User], error) {
	from, args := users(g, f)
	return list[User](ctx, q, userColumns, from, args, UsersByLogin, p)
}

// CountUsers counts what Users would go through.
func (q Queries) CountUsers(ctx context.Context, g access.Grants, f UserFilter) (int, error) {
	from, args := users(g, f)
	return q.count(ctx, from, args)
}

// UsersByID gives the users that the viewer sees.
func (q Queries) UsersByID(ctx context.Context, g access.Grants, ids []uuid.UUID) (map[uuid.UUID]User, error) {
	from, args := users(g, UserFilter{})
	return byID(ctx, q, userColumns, from, args, "u.id", ids, func(u User) uuid.UUID { return u.ID })
}

func list[T any](ctx context.Context, q Queries, columns, from string, args []any, o page.Order, p page.Page) (page.Rows[T], error) {
	bound, tail, args := page.SQL(o, p, args)
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM "+from+" AND "+bound+" "+tail, args...)
	if err != nil {
		return page.Rows[T]{}, err
	}
	items, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	return page.Cut(items, p), err
}

func byID[T any](ctx context.Context, q Queries, columns, from string, args []any, idColumn string, ids []uuid.UUID, id func(T) uuid.UUID) (map[uuid.UUID]T, error) {
	args = append(args, ids)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT %s FROM %s AND %s = ANY($%d)", columns, from, idColumn, len(args)), args...)
	if err != nil {
		return nil, err
	}
	items, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	m := make(map[uuid.UUID]T, len(items))
	for _, item := range items {
		m[id(item)] = item
	}
	return m, err
}

func (q Queries) count(ctx context.Context, from string, args []any) (int, error) {
	rows, err := q.Reader.Query(ctx, "SELECT count(*) FROM "+from, args...)
	if err != nil {
		return 0, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
}
