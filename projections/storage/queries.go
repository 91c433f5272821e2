package storage

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/storage"
	"tallyard/projections/access"
	"tallyard/projections/page"
	"tallyard/projections/runner"
)

// Queries reads the table.
type Queries struct{ Reader *runner.Reader }

// ByCreated orders by the time of creation.
var ByCreated = page.Column{SQL: "t.created_at", Cast: "timestamptz"}

// Oldest is the order of the list: a person's home, which is there first, leads.
var Oldest = page.Order{Column: ByCreated, IDColumn: "t.id"}

// Key is the place of a space in the order.
func Key(s storage.State) page.Key {
	return page.Key{Value: page.TimeValue(s.Created), ID: s.ID}
}

const columns = `t.id, t.tenant, t.kind, t.owner, t.project, t.zone, t.quota, t.version, t.created_at`

// Filter cuts lists of spaces; what is zero does not cut.
type Filter struct {
	Kinds   []string
	Project uuid.UUID
}

// List gives a page of the spaces in which the viewer may read.
func (q Queries) List(ctx context.Context, viewer access.Filter, f Filter, o page.Order, p page.Page) (page.Rows[storage.State], error) {
	cond, args := where(viewer, f)
	bound, tail, args := page.SQL(o, p, args)
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM {g}.spaces t WHERE "+cond+" AND "+bound+" "+tail, args...)
	if err != nil {
		return page.Rows[storage.State]{}, err
	}
	items, err := pgx.CollectRows(rows, scan)
	return page.Cut(items, p), err
}

// Count counts what List would go through.
func (q Queries) Count(ctx context.Context, viewer access.Filter, f Filter) (int, error) {
	cond, args := where(viewer, f)
	var n int
	err := q.Reader.QueryRow(ctx, "SELECT count(*) FROM {g}.spaces t WHERE "+cond, args...).Scan(&n)
	return n, err
}

// ByIDs gives the spaces in which the viewer may read.
func (q Queries) ByIDs(ctx context.Context, viewer access.Filter, ids []uuid.UUID) (map[uuid.UUID]storage.State, error) {
	cond, args := readable(viewer)
	args = append(args, ids)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT "+columns+" FROM {g}.spaces t WHERE %s AND t.id = ANY($%d)", cond, len(args)), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scan)
	found := make(map[uuid.UUID]storage.State, len(list))
	for _, s := range list {
		found[s.ID] = s
	}
	return found, err
}

func where(viewer access.Filter, f Filter) (string, []any) {
	cond, args := readable(viewer)
	if len(f.Kinds) > 0 {
		args = append(args, f.Kinds)
		cond += fmt.Sprintf(" AND t.kind = ANY($%d)", len(args))
	}
	if f.Project != uuid.Nil {
		args = append(args, f.Project)
		cond += fmt.Sprintf(" AND t.project = $%d", len(args))
	}
	return cond, args
}

// readable is storage.MustRead as a condition; a personal space is its owner's alone.
func readable(viewer access.Filter) (string, []any) {
	args := []any{viewer.Tenant, viewer.User, viewer.All, viewer.Projects}
	return `t.tenant = $1 AND ((t.kind = 'PERSONAL' AND t.owner = $2)
		OR (t.kind = 'PROJECT' AND ($3::boolean OR t.project = ANY($4::uuid[])))
		OR t.kind = 'TENANT')`, args
}

func scan(row pgx.CollectableRow) (storage.State, error) {
	var s storage.State
	err := row.Scan(&s.ID, &s.Tenant, &s.Kind, &s.Owner, &s.Project, &s.Zone, &s.Quota, &s.Version, &s.Created)
	s.Created = s.Created.UTC()
	return s, err
}

// After gives spaces of all tenants in the order of their ids, for the
// platform's own housekeeping.
func (q Queries) After(ctx context.Context, id uuid.UUID, limit int) ([]storage.State, error) {
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM {g}.spaces t WHERE t.id > $1 ORDER BY t.id LIMIT $2", id, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}
