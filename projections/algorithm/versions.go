package algorithm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	projaccess "tallyard/projections/access"
	"tallyard/projections/page"
)

const versionColumns = `t.id, t.algorithm, t.tenant, t.project, t.owner, t.name, t.label, t.status, t.problem, t.visibility, t.wanted,
	t.settings, t.based_on, t.operation, t.files, t.fingerprint, t.artefact, t.published_at, t.published_by, t.uses, t.changes, t.created_at, t.updated_at, t.approval`

// Versions gives a page of versions, over all algorithms.
func (q Queries) Versions(ctx context.Context, viewer projaccess.Filter, f Filter, o page.Order, p page.Page) (page.Rows[Version], error) {
	ways, args := f.ways(viewer)
	where, args := versionsCut(viewer, f, args)
	sql, args := pageSQL(versionColumns, "{g}.algorithm_versions", ways, where, o, p, args)
	rows, err := q.Reader.Query(ctx, sql, args...)
	if err != nil {
		return page.Rows[Version]{}, err
	}
	items, err := pgx.CollectRows(rows, scanVersion)
	return page.Cut(items, p), err
}

// CountVersions counts what Versions would go through.
func (q Queries) CountVersions(ctx context.Context, viewer projaccess.Filter, f Filter) (int, error) {
	visible, args := viewer.Visible("t", nil)
	scope, args := f.scope(viewer, args)
	where, args := versionsCut(viewer, f, args)
	return q.count(ctx, "{g}.algorithm_versions t WHERE "+visible+scope+where, args)
}

// VersionsByIDs gives the versions that the viewer sees.
func (q Queries) VersionsByIDs(ctx context.Context, viewer projaccess.Filter, ids []uuid.UUID) (map[uuid.UUID]Version, error) {
	where, args := viewer.Visible("t", nil)
	args = append(args, ids)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT "+versionColumns+" FROM {g}.algorithm_versions t WHERE %s AND t.id = ANY($%d)", where, len(args)), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanVersion)
	m := make(map[uuid.UUID]Version, len(list))
	for _, v := range list {
		m[v.ID] = v
	}
	return m, err
}

// VersionsOf gives one page of the versions of each of some algorithms, newest
// first, in one statement however many algorithms there are.
func (q Queries) VersionsOf(ctx context.Context, viewer projaccess.Filter, algorithms []uuid.UUID, published bool, p page.Page) (map[uuid.UUID]page.Rows[Version], error) {
	visible, args := viewer.Visible("t", nil)
	args = append(args, algorithms)
	ids := len(args)
	extra := ""
	if published {
		extra = " AND t.status = 'PUBLISHED'"
	}
	bound, tail, args := page.SQL(page.Order{Column: ByCreated, IDColumn: "t.id", Descending: true}, p, args)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf(`SELECT l.* FROM unnest($%d::uuid[]) AS wanted(id) CROSS JOIN LATERAL (
			SELECT %s FROM {g}.algorithm_versions t WHERE t.algorithm = wanted.id AND %s%s AND %s %s) l`,
		ids, versionColumns, visible, extra, bound, tail), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanVersion)
	if err != nil {
		return nil, err
	}
	by := map[uuid.UUID][]Version{}
	for _, v := range list {
		by[v.Algorithm] = append(by[v.Algorithm], v)
	}
	m := make(map[uuid.UUID]page.Rows[Version], len(algorithms))
	for _, id := range algorithms {
		m[id] = page.Cut(by[id], p)
	}
	return m, nil
}

// CountVersionsOf counts the versions of an algorithm that the viewer sees.
func (q Queries) CountVersionsOf(ctx context.Context, viewer projaccess.Filter, id uuid.UUID, published bool) (int, error) {
	visible, args := viewer.Visible("t", nil)
	args = append(args, id)
	extra := ""
	if published {
		extra = " AND t.status = 'PUBLISHED'"
	}
	return q.count(ctx, fmt.Sprintf("{g}.algorithm_versions t WHERE %s AND t.algorithm = $%d%s", visible, len(args), extra), args)
}

// SourcesIn lists the directories of a space that living versions were taken
// from: the files that carry a "shared" mark (STO-02).
func (q Queries) SourcesIn(ctx context.Context, tenant, space uuid.UUID) ([]string, error) {
	rows, err := q.Reader.Query(ctx, `SELECT DISTINCT settings #>> '{source,script,directory}' FROM {g}.algorithm_versions
		WHERE settings #>> '{source,script,space}' = $1 AND tenant = $2`, space.String(), tenant)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// StartingFrom lists the living versions that start from a model, as algorithm
// and label, whoever may see them (MDL-04).
func (q Queries) StartingFrom(ctx context.Context, tenant, model uuid.UUID) ([]string, error) {
	rows, err := q.Reader.Query(ctx, `SELECT name || ' ' || label FROM {g}.algorithm_versions
		WHERE settings ->> 'model' = $1 AND tenant = $2 ORDER BY created_at, id`, model.String(), tenant)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// versionsCut are the conditions of a filter, each with AND before it.
func versionsCut(viewer projaccess.Filter, f Filter, args []any) (string, []any) {
	conds, args := common(nil, args, f)
	add := func(cond string, v any) {
		args = append(args, v)
		conds = append(conds, fmt.Sprintf(cond, len(args)))
	}
	if f.Search != "" {
		add(`(t.name ILIKE $%[1]d OR t.settings ->> 'description' ILIKE $%[1]d)`, "%"+likeText(f.Search)+"%")
	}
	if len(f.Statuses) > 0 {
		conds = append(conds, "t.status IN ("+literals(f.Statuses)+")")
	}
	if f.Published != nil {
		add("(t.status = 'PUBLISHED') = $%d", *f.Published)
	}
	if f.Favorites {
		add("t.algorithm IN (SELECT x.algorithm FROM {g}.algorithm_favorites x WHERE x.user_id = $%d)", viewer.User)
	}
	return and(conds), args
}

// literals are statuses as they stand in the text of a query, so that it is
// planned for how rare they are. Only the letters of their names are kept.
func literals(list []algorithm.Status) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = "'" + strings.Map(func(r rune) rune {
			if r == '_' || r >= 'A' && r <= 'Z' {
				return r
			}
			return -1
		}, string(s)) + "'"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// likeText takes the special characters of LIKE for themselves.
func likeText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

func scanVersion(row pgx.CollectableRow) (Version, error) {
	var (
		v                                     Version
		visibility, wanted                    *string
		operation, publishedBy                *uuid.UUID
		settings, based, files, use, approval []byte
	)
	err := row.Scan(&v.ID, &v.Algorithm, &v.Tenant, &v.Project, &v.Owner, &v.Name, &v.Label, &v.Status, &v.Problem, &visibility, &wanted,
		&settings, &based, &operation, &files, &v.Fingerprint, &v.Artefact, &v.PublishedAt, &publishedBy, &use, &v.Changes, &v.Created, &v.Updated, &approval)
	if err != nil {
		return v, err
	}
	v.Visibility, v.Wanted = access.Visibility(deref(visibility)), access.Visibility(deref(wanted))
	v.Operation, v.PublishedBy = deref(operation), deref(publishedBy)
	v.Created, v.Updated = v.Created.UTC(), v.Updated.UTC()
	v.PublishedAt = utc(v.PublishedAt)
	for _, err := range []error{decode(settings, &v.Settings), decode(based, &v.BasedOn), decode(files, &v.Files), decode(use, &v.Uses), decode(approval, &v.Approval)} {
		if err != nil {
			return v, fmt.Errorf("row of version %s: %w", v.ID, err)
		}
	}
	return v, nil
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
