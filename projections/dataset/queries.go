package dataset

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/dataset"
	projaccess "tallyard/projections/access"
	"tallyard/projections/page"
	"tallyard/projections/runner"
)

// Queries reads the table.
type Queries struct{ Reader *runner.Reader }

// Filter cuts lists of data sets; what is zero does not cut.
type Filter struct {
	Project, Owner uuid.UUID
	Visibilities   []int16 // as reaches
	Search         string  // in name or description, any case
	Cached         *bool
}

// Orders of lists.
var (
	ByUpdated = page.Column{SQL: "t.updated_at", Cast: "timestamptz"}
	ByName    = page.Column{SQL: "t.name", Cast: "text"}
)

// Key is the place of a data set in an order.
func Key(c page.Column, s dataset.State) page.Key {
	if c == ByName {
		return page.Key{Value: s.Name, ID: s.ID}
	}
	return page.Key{Value: page.TimeValue(s.Updated), ID: s.ID}
}

const columns = `t.id, t.tenant, t.project, t.owner, t.reach, t.name, t.description, t.content, t.cache, t.version, t.created_at, t.updated_at`

// List gives a page of the data sets that the viewer sees.
func (q Queries) List(ctx context.Context, viewer projaccess.Filter, f Filter, o page.Order, p page.Page) (page.Rows[dataset.State], error) {
	cond, args := where(viewer, f)
	bound, tail, args := page.SQL(o, p, args)
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM {g}.data_sets t WHERE "+cond+" AND "+bound+" "+tail, args...)
	if err != nil {
		return page.Rows[dataset.State]{}, err
	}
	items, err := pgx.CollectRows(rows, scan)
	return page.Cut(items, p), err
}

// Count counts what List would go through.
func (q Queries) Count(ctx context.Context, viewer projaccess.Filter, f Filter) (int, error) {
	cond, args := where(viewer, f)
	var n int
	err := q.Reader.QueryRow(ctx, "SELECT count(*) FROM {g}.data_sets t WHERE "+cond, args...).Scan(&n)
	return n, err
}

// ByIDs gives the data sets that the viewer sees.
func (q Queries) ByIDs(ctx context.Context, viewer projaccess.Filter, ids []uuid.UUID) (map[uuid.UUID]dataset.State, error) {
	cond, args := viewer.Visible("t", nil)
	args = append(args, ids)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT "+columns+" FROM {g}.data_sets t WHERE %s AND t.id = ANY($%d)", cond, len(args)), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scan)
	found := make(map[uuid.UUID]dataset.State, len(list))
	for _, s := range list {
		found[s.ID] = s
	}
	return found, err
}

func where(viewer projaccess.Filter, f Filter) (string, []any) {
	cond, args := viewer.Visible("t", nil)
	conds := []string{"(" + cond + ")"}
	add := func(cond string, v any) {
		args = append(args, v)
		conds = append(conds, fmt.Sprintf(cond, len(args)))
	}
	if f.Project != uuid.Nil {
		add("t.project = $%d", f.Project)
	}
	if f.Owner != uuid.Nil {
		add("t.owner = $%d", f.Owner)
	}
	if len(f.Visibilities) > 0 {
		add("t.reach = ANY($%d)", f.Visibilities)
	}
	if f.Cached != nil {
		add("t.cached = $%d", *f.Cached)
	}
	if f.Search != "" {
		add("(strpos(lower(t.name), lower($%[1]d)) > 0 OR strpos(lower(t.description), lower($%[1]d)) > 0)", f.Search)
	}
	return strings.Join(conds, " AND "), args
}

func scan(row pgx.CollectableRow) (dataset.State, error) {
	var (
		s              dataset.State
		reach          int
		content, cache []byte
	)
	err := row.Scan(&s.ID, &s.Tenant, &s.Project, &s.Owner, &reach, &s.Name, &s.Description, &content, &cache, &s.Version, &s.Created, &s.Updated)
	if err != nil {
		return s, err
	}
	s.Visibility = projaccess.Visibility(reach)
	s.Created, s.Updated = s.Created.UTC(), s.Updated.UTC()
	if err := json.Unmarshal(content, &s.Content); err != nil {
		return s, err
	}
	err = json.Unmarshal(cache, &s.Cache)
	if !s.Cache.Filled.IsZero() {
		s.Cache.Filled = s.Cache.Filled.UTC().Round(time.Microsecond)
	}
	return s, err
}

// OwnedBy gives all that a user owns.
func (q Queries) OwnedBy(ctx context.Context, tenant, owner uuid.UUID) ([]dataset.State, error) {
	return q.all(ctx, "t.tenant = $1 AND t.owner = $2", tenant, owner)
}

// InProject gives all that belongs to a project.
func (q Queries) InProject(ctx context.Context, tenant, project uuid.UUID) ([]dataset.State, error) {
	return q.all(ctx, "t.tenant = $1 AND t.project = $2", tenant, project)
}

func (q Queries) all(ctx context.Context, cond string, args ...any) ([]dataset.State, error) {
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM {g}.data_sets t WHERE "+cond+" ORDER BY t.id", args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}
