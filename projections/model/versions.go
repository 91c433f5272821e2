package model

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/access"
	"tallyard/domain/model"
	projaccess "tallyard/projections/access"
	"tallyard/projections/page"
)

// Version is a version with what is known of its model.
type Version struct {
	model.Version
	Model   uuid.UUID
	Tenant  uuid.UUID
	Project uuid.UUID
	Owner   uuid.UUID
	Name    string
}

// Thing is the version for the rules of access.
func (v Version) Thing() access.Thing {
	s := model.State{Tenant: v.Tenant, Project: v.Project, Owner: v.Owner}
	return s.Thing(v.Version)
}

// VersionKey is the place of a version in the list of its model's.
func VersionKey(v Version) page.Key {
	return page.Key{Value: page.TimeValue(v.Created), ID: v.ID}
}

const versionColumns = `t.id, t.model, t.tenant, t.project, t.owner, t.name, t.number, t.status, t.visibility,
	t.details, t.space, t.directory, t.changes, t.created_at, t.updated_at`

// VersionsByIDs gives the versions that the viewer sees.
func (q Queries) VersionsByIDs(ctx context.Context, viewer projaccess.Filter, ids []uuid.UUID) (map[uuid.UUID]Version, error) {
	where, args := viewer.Visible("t", nil)
	args = append(args, ids)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT "+versionColumns+" FROM {g}.model_versions t WHERE %s AND t.id = ANY($%d)", where, len(args)), args...)
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

// VersionsOf gives one page of the versions of each of some models, newest
// first, in one statement however many models there are.
func (q Queries) VersionsOf(ctx context.Context, viewer projaccess.Filter, models []uuid.UUID, p page.Page) (map[uuid.UUID]page.Rows[Version], error) {
	visible, args := viewer.Visible("t", nil)
	args = append(args, models)
	ids := len(args)
	bound, tail, args := page.SQL(page.Order{Column: ByCreated, IDColumn: "t.id", Descending: true}, p, args)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf(`SELECT l.* FROM unnest($%d::uuid[]) AS wanted(id) CROSS JOIN LATERAL (
			SELECT %s FROM {g}.model_versions t WHERE t.model = wanted.id AND %s AND %s %s) l`,
		ids, versionColumns, visible, bound, tail), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanVersion)
	if err != nil {
		return nil, err
	}
	by := map[uuid.UUID][]Version{}
	for _, v := range list {
		by[v.Model] = append(by[v.Model], v)
	}
	m := make(map[uuid.UUID]page.Rows[Version], len(models))
	for _, id := range models {
		m[id] = page.Cut(by[id], p)
	}
	return m, nil
}

// CountVersionsOf counts the versions of a model that the viewer sees.
func (q Queries) CountVersionsOf(ctx context.Context, viewer projaccess.Filter, id uuid.UUID) (int, error) {
	visible, args := viewer.Visible("t", nil)
	args = append(args, id)
	return q.count(ctx, fmt.Sprintf("{g}.model_versions t WHERE %s AND t.model = $%d", visible, len(args)), args)
}

// SourcesIn lists the directories of a space that living versions were imported
// from: the files that carry a "shared" mark (STO-02).
func (q Queries) SourcesIn(ctx context.Context, tenant, space uuid.UUID) ([]string, error) {
	rows, err := q.Reader.Query(ctx, `SELECT DISTINCT directory FROM {g}.model_versions WHERE space = $1 AND tenant = $2`, space, tenant)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func scanVersion(row pgx.CollectableRow) (Version, error) {
	var (
		v       Version
		details []byte
	)
	err := row.Scan(&v.ID, &v.Model, &v.Tenant, &v.Project, &v.Owner, &v.Name, &v.Number, &v.Status, &v.Visibility,
		&details, &v.Directory.Space, &v.Directory.Path, &v.Changes, &v.Created, &v.Updated)
	if err != nil {
		return v, err
	}
	v.Created, v.Updated = v.Created.UTC(), v.Updated.UTC()
	if err := json.Unmarshal(details, &v.Details); err != nil {
		return v, fmt.Errorf("row of version %s: %w", v.ID, err)
	}
	return v, nil
}
