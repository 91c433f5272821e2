package model

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/model"
	projaccess "tallyard/projections/access"
	"tallyard/projections/page"
	"tallyard/projections/runner"
)

// Queries reads the tables.
type Queries struct{ Reader *runner.Reader }

// Filter cuts the list of models: what concerns versions is met by one that the
// viewer sees (MDL-09).
type Filter struct {
	Project  uuid.UUID
	Owner    uuid.UUID
	Search   string // in name or description, any case
	Status   model.Status
	From, To time.Time // of an import
}

// ByCreated is the order of the list.
var ByCreated = page.Column{SQL: "t.created_at", Cast: "timestamptz"}

// Key is the place of a model in the order.
func Key(s model.State) page.Key { return page.Key{Value: page.TimeValue(s.Created), ID: s.ID} }

const modelColumns = `t.id, t.tenant, t.project, t.owner, t.name, t.changes, t.created_at, t.updated_at`

// List gives a page of models, one row per name. Each way of what the viewer
// sees is walked in the order asked for, no further than a page, and the pages
// are merged.
func (q Queries) List(ctx context.Context, viewer projaccess.Filter, f Filter, o page.Order, p page.Page) (page.Rows[model.State], error) {
	ways, args := viewer.Ways("t", nil)
	where, args := f.cut(viewer, args)
	bound, tail, args := page.SQL(o, p, args)
	parts := make([]string, len(ways))
	for i, w := range ways {
		parts[i] = "(SELECT t.* FROM {g}.models t WHERE " + w.Cond + where + " AND " + bound + " " + tail + ")"
		if w.Each != "" {
			parts[i] = "(SELECT t.* FROM " + w.Each + " CROSS JOIN LATERAL " + parts[i] + " t)"
		}
	}
	rows, err := q.Reader.Query(ctx, "SELECT "+modelColumns+" FROM ("+strings.Join(parts, " UNION ALL ")+") t "+tail, args...)
	if err != nil {
		return page.Rows[model.State]{}, err
	}
	items, err := pgx.CollectRows(rows, scanModel)
	return page.Cut(items, p), err
}

// Count counts what List would go through.
func (q Queries) Count(ctx context.Context, viewer projaccess.Filter, f Filter) (int, error) {
	visible, args := viewer.Visible("t", nil)
	where, args := f.cut(viewer, args)
	return q.count(ctx, "{g}.models t WHERE "+visible+where, args)
}

// cut are the conditions of a filter, each with AND before it.
func (f Filter) cut(viewer projaccess.Filter, args []any) (string, []any) {
	var where, ofVersion strings.Builder
	add := func(to *strings.Builder, cond string, v any) {
		args = append(args, v)
		fmt.Fprintf(to, " AND "+cond, len(args))
	}
	if f.Project != uuid.Nil {
		add(&where, "t.project = $%d", f.Project)
	}
	if f.Owner != uuid.Nil {
		add(&where, "t.owner = $%d", f.Owner)
	}
	if f.Status != "" {
		add(&ofVersion, "v.status = $%d", string(f.Status))
	}
	if !f.From.IsZero() {
		add(&ofVersion, "v.created_at >= $%d", f.From)
	}
	if !f.To.IsZero() {
		add(&ofVersion, "v.created_at < $%d", f.To)
	}
	if f.Search != "" {
		add(&ofVersion, "(v.name ILIKE $%[1]d OR v.details ->> 'description' ILIKE $%[1]d)", "%"+likeText(f.Search)+"%")
	}
	if ofVersion.Len() > 0 {
		var visible string
		visible, args = viewer.Visible("v", args)
		where.WriteString(" AND EXISTS (SELECT FROM {g}.model_versions v WHERE v.model = t.id AND " + visible + ofVersion.String() + ")")
	}
	return where.String(), args
}

// ByIDs gives the models that the viewer sees.
func (q Queries) ByIDs(ctx context.Context, viewer projaccess.Filter, ids []uuid.UUID) (map[uuid.UUID]model.State, error) {
	where, args := viewer.Visible("t", nil)
	args = append(args, ids)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT "+modelColumns+" FROM {g}.models t WHERE %s AND t.id = ANY($%d)", where, len(args)), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanModel)
	m := make(map[uuid.UUID]model.State, len(list))
	for _, s := range list {
		m[s.ID] = s
	}
	return m, err
}

func scanModel(row pgx.CollectableRow) (model.State, error) {
	var s model.State
	err := row.Scan(&s.ID, &s.Tenant, &s.Project, &s.Owner, &s.Name, &s.Changes, &s.Created, &s.Updated)
	s.Created, s.Updated = s.Created.UTC(), s.Updated.UTC()
	return s, err
}

func (q Queries) count(ctx context.Context, from string, args []any) (int, error) {
	rows, err := q.Reader.Query(ctx, "SELECT count(*) FROM "+from, args...)
	if err != nil {
		return 0, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
}

// OwnedBy gives all that a user owns, in the order of the ids.
func (q Queries) OwnedBy(ctx context.Context, tenant, owner uuid.UUID) ([]model.State, error) {
	rows, err := q.Reader.Query(ctx, "SELECT "+modelColumns+" FROM {g}.models t WHERE t.tenant = $1 AND t.owner = $2 ORDER BY t.id", tenant, owner)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanModel)
}

// InProject gives all that lives in a project, in the order of the ids.
func (q Queries) InProject(ctx context.Context, tenant, project uuid.UUID) ([]model.State, error) {
	rows, err := q.Reader.Query(ctx, "SELECT "+modelColumns+" FROM {g}.models t WHERE t.tenant = $1 AND t.project = $2 ORDER BY t.id", tenant, project)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanModel)
}

// likeText takes the special characters of LIKE for themselves.
func likeText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}
