package image

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/image"
	projaccess "tallyard/projections/access"
	"tallyard/projections/page"
	"tallyard/projections/runner"
)

// Queries reads the table.
type Queries struct{ Reader *runner.Reader }

// Filter cuts lists of images; what is empty does not cut.
type Filter struct {
	Kinds, Frameworks, Scenarios []string
	Accelerator                  string // those that are suitable for it, and those for any
	Search                       string // in name or description, any case
}

// Orders of lists.
var (
	ByCreated = page.Column{SQL: "t.created_at", Cast: "timestamptz"}
	ByName    = page.Column{SQL: "t.name", Cast: "text"}
)

// Key is the place of an image in an order.
func Key(c page.Column, s image.State) page.Key {
	if c == ByName {
		return page.Key{Value: s.Name, ID: s.ID}
	}
	return page.Key{Value: page.TimeValue(s.Created), ID: s.ID}
}

const columns = `t.id, t.tenant, t.project, t.owner, t.settings, t.created_at`

// List gives a page of the images that the viewer sees.
func (q Queries) List(ctx context.Context, viewer projaccess.Filter, f Filter, o page.Order, p page.Page) (page.Rows[image.State], error) {
	cond, args := where(viewer, f)
	bound, tail, args := page.SQL(o, p, args)
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM {g}.images t WHERE "+cond+" AND "+bound+" "+tail, args...)
	if err != nil {
		return page.Rows[image.State]{}, err
	}
	items, err := pgx.CollectRows(rows, scan)
	return page.Cut(items, p), err
}

// Count counts what List would go through.
func (q Queries) Count(ctx context.Context, viewer projaccess.Filter, f Filter) (int, error) {
	cond, args := where(viewer, f)
	var n int
	err := q.Reader.QueryRow(ctx, "SELECT count(*) FROM {g}.images t WHERE "+cond, args...).Scan(&n)
	return n, err
}

// ByIDs gives the images that the viewer sees.
func (q Queries) ByIDs(ctx context.Context, viewer projaccess.Filter, ids []uuid.UUID) (map[uuid.UUID]image.State, error) {
	cond, args := viewer.Visible("t", nil)
	args = append(args, ids)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT "+columns+" FROM {g}.images t WHERE %s AND t.id = ANY($%d)", cond, len(args)), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scan)
	found := make(map[uuid.UUID]image.State, len(list))
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
	for _, c := range []struct {
		cond   string
		values []string
	}{{"t.kind = ANY($%d)", f.Kinds}, {"t.framework = ANY($%d)", f.Frameworks}, {"t.scenario = ANY($%d)", f.Scenarios}} {
		if len(c.values) > 0 {
			add(c.cond, c.values)
		}
	}
	if f.Accelerator != "" {
		add("(NOT t.settings ? 'accelerators' OR t.settings->'accelerators' ? $%d)", f.Accelerator)
	}
	if f.Search != "" {
		add("(strpos(lower(t.name), lower($%[1]d)) > 0 OR strpos(lower(coalesce(t.settings->>'description', '')), lower($%[1]d)) > 0)", f.Search)
	}
	return strings.Join(conds, " AND "), args
}

func scan(row pgx.CollectableRow) (image.State, error) {
	s := image.State{Version: 1}
	var settings []byte
	if err := row.Scan(&s.ID, &s.Tenant, &s.Project, &s.Owner, &settings, &s.Created); err != nil {
		return s, err
	}
	s.Created = s.Created.UTC()
	return s, json.Unmarshal(settings, &s.Settings)
}

// OwnedBy gives all that a user owns.
func (q Queries) OwnedBy(ctx context.Context, tenant, owner uuid.UUID) ([]image.State, error) {
	return q.all(ctx, "t.tenant = $1 AND t.owner = $2", tenant, owner)
}

// InProject gives all that belongs to a project.
func (q Queries) InProject(ctx context.Context, tenant, project uuid.UUID) ([]image.State, error) {
	return q.all(ctx, "t.tenant = $1 AND t.project = $2", tenant, project)
}

func (q Queries) all(ctx context.Context, cond string, args ...any) ([]image.State, error) {
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM {g}.images t WHERE "+cond+" ORDER BY t.id", args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}
