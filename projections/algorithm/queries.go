package algorithm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	projaccess "tallyard/projections/access"
	"tallyard/projections/page"
	"tallyard/projections/runner"
)

// Queries reads the tables.
type Queries struct{ Reader *runner.Reader }

// Scope is a tab of the list (ALG-06).
type Scope string

// Scopes: everything one sees, what is published to the tenant, what is
// published to one's projects, one's own.
const (
	ScopeAll      Scope = "ALL"
	ScopeGlobal   Scope = "GLOBAL"
	ScopeGroup    Scope = "GROUP"
	ScopePersonal Scope = "PERSONAL"
)

// Filter cuts lists of algorithms and of versions.
type Filter struct {
	Scope     Scope
	Project   uuid.UUID
	Owner     uuid.UUID
	Favorites bool
	Search    string // in name or description, any case
	Statuses  []algorithm.Status
	Published *bool
	From, To  time.Time // of the last update
}

// Orders of lists.
var (
	ByUpdated = page.Column{SQL: "t.updated_at", Cast: "timestamptz"}
	ByCreated = page.Column{SQL: "t.created_at", Cast: "timestamptz"}
	ByName    = page.Column{SQL: "t.name", Cast: "text"}
)

// Key is the place of an algorithm in an order.
func Key(c page.Column, s algorithm.State) page.Key {
	return key(c, s.Updated, s.Created, s.Name, s.ID)
}

// VersionKey is the place of a version in an order.
func VersionKey(c page.Column, v Version) page.Key {
	return key(c, v.Updated, v.Created, v.Name, v.ID)
}

func key(c page.Column, updated, created time.Time, name string, id uuid.UUID) page.Key {
	switch c {
	case ByCreated:
		return page.Key{Value: page.TimeValue(created), ID: id}
	case ByName:
		return page.Key{Value: name, ID: id}
	default:
		return page.Key{Value: page.TimeValue(updated), ID: id}
	}
}

// Version is a version with what is known of its algorithm.
type Version struct {
	algorithm.Version
	Algorithm uuid.UUID
	Tenant    uuid.UUID
	Project   uuid.UUID
	Owner     uuid.UUID
	Name      string
}

// Thing is the version for the rules of access.
func (v Version) Thing() access.Thing {
	s := algorithm.State{Tenant: v.Tenant, Project: v.Project, Owner: v.Owner}
	return s.Thing(v.Version)
}

const algorithmColumns = `t.id, t.tenant, t.project, t.owner, t.name, t.changes, t.created_at, t.updated_at`

// List gives a page of algorithms, one row per name.
func (q Queries) List(ctx context.Context, viewer projaccess.Filter, f Filter, o page.Order, p page.Page) (page.Rows[algorithm.State], error) {
	ways, args := f.ways(viewer)
	if f.Scope == ScopeGroup {
		// A name stands on every tab that one of its versions is for.
		ways = append(ways, bothWays(ways[0]))
	}
	where, args := algorithmsCut(viewer, f, args)
	sql, args := pageSQL(algorithmColumns, "{g}.algorithms", ways, where, o, p, args)
	rows, err := q.Reader.Query(ctx, sql, args...)
	if err != nil {
		return page.Rows[algorithm.State]{}, err
	}
	items, err := pgx.CollectRows(rows, scanAlgorithm)
	return page.Cut(items, p), err
}

// bothWays is the group's way for algorithms that the whole tenant sees by
// another version.
func bothWays(group projaccess.Way) projaccess.Way {
	group.Cond = strings.Replace(group.Cond, "t.reach = 1", "t.reach = 2 AND t.grouped", 1)
	return group
}

// Count counts what List would go through.
func (q Queries) Count(ctx context.Context, viewer projaccess.Filter, f Filter) (int, error) {
	visible, args := viewer.Visible("t", nil)
	scope, args := f.scope(viewer, args)
	if f.Scope == ScopeGroup {
		scope = strings.Replace(scope, "t.reach = 1", "t.grouped", 1)
	}
	where, args := algorithmsCut(viewer, f, args)
	return q.count(ctx, "{g}.algorithms t WHERE "+visible+scope+where, args)
}

// ByIDs gives the algorithms that the viewer sees.
func (q Queries) ByIDs(ctx context.Context, viewer projaccess.Filter, ids []uuid.UUID) (map[uuid.UUID]algorithm.State, error) {
	where, args := viewer.Visible("t", nil)
	args = append(args, ids)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT "+algorithmColumns+" FROM {g}.algorithms t WHERE %s AND t.id = ANY($%d)", where, len(args)), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanAlgorithm)
	m := make(map[uuid.UUID]algorithm.State, len(list))
	for _, s := range list {
		m[s.ID] = s
	}
	return m, err
}

func scanAlgorithm(row pgx.CollectableRow) (algorithm.State, error) {
	var s algorithm.State
	err := row.Scan(&s.ID, &s.Tenant, &s.Project, &s.Owner, &s.Name, &s.Changes, &s.Created, &s.Updated)
	s.Created, s.Updated = s.Created.UTC(), s.Updated.UTC()
	return s, err
}

// ways are the parts of what the viewer sees that a tab shows.
func (f Filter) ways(viewer projaccess.Filter) ([]projaccess.Way, []any) {
	switch f.Scope {
	case ScopeGlobal:
		return viewer.Global("t", nil)
	case ScopeGroup:
		return viewer.Group("t", nil)
	case ScopePersonal:
		return viewer.Personal("t", nil)
	default:
		return viewer.Ways("t", nil)
	}
}

// scope is a tab as a condition, for counting; it begins with AND.
func (f Filter) scope(viewer projaccess.Filter, args []any) (string, []any) {
	switch f.Scope {
	case ScopeGlobal:
		return " AND t.reach = 2", args
	case ScopeGroup:
		return fmt.Sprintf(" AND t.reach = 1 AND t.project = ANY($%d)", len(args)+1), append(args, viewer.Projects)
	case ScopePersonal:
		return fmt.Sprintf(" AND t.owner = $%d", len(args)+1), append(args, viewer.User)
	default:
		return "", args
	}
}

// pageSQL is the query for a page of a table. Each way is walked in the order
// asked for, no further than a page, and the pages are merged.
func pageSQL(columns, table string, ways []projaccess.Way, where string, o page.Order, p page.Page, args []any) (string, []any) {
	bound, tail, args := page.SQL(o, p, args)
	parts := make([]string, len(ways))
	for i, w := range ways {
		parts[i] = "(SELECT t.* FROM " + table + " t WHERE " + w.Cond + where + " AND " + bound + " " + tail + ")"
		if w.Each != "" {
			parts[i] = "(SELECT t.* FROM " + w.Each + " CROSS JOIN LATERAL " + parts[i] + " t)"
		}
	}
	return "SELECT " + columns + " FROM (" + strings.Join(parts, " UNION ALL ") + ") t " + tail, args
}

// algorithmsCut are the conditions of a filter, each with AND before it.
func algorithmsCut(viewer projaccess.Filter, f Filter, args []any) (string, []any) {
	conds, args := common(nil, args, f)
	if f.Favorites {
		args = append(args, viewer.User)
		conds = append(conds, fmt.Sprintf("t.id IN (SELECT x.algorithm FROM {g}.algorithm_favorites x WHERE x.user_id = $%d)", len(args)))
	}
	return and(conds), args
}

func and(conds []string) string {
	var b strings.Builder
	for _, c := range conds {
		b.WriteString(" AND " + c)
	}
	return b.String()
}

// common are the conditions that algorithms and versions share.
func common(conds []string, args []any, f Filter) ([]string, []any) {
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
	if !f.From.IsZero() {
		add("t.updated_at >= $%d", f.From)
	}
	if !f.To.IsZero() {
		add("t.updated_at < $%d", f.To)
	}
	return conds, args
}

func (q Queries) count(ctx context.Context, from string, args []any) (int, error) {
	rows, err := q.Reader.Query(ctx, "SELECT count(*) FROM "+from, args...)
	if err != nil {
		return 0, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
}

// OwnedBy gives all that a user owns, in the order of the ids.
func (q Queries) OwnedBy(ctx context.Context, tenant, owner uuid.UUID) ([]algorithm.State, error) {
	rows, err := q.Reader.Query(ctx, "SELECT "+algorithmColumns+" FROM {g}.algorithms t WHERE t.tenant = $1 AND t.owner = $2 ORDER BY t.id", tenant, owner)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanAlgorithm)
}

// InProject gives all that lives in a project, in the order of the ids.
func (q Queries) InProject(ctx context.Context, tenant, project uuid.UUID) ([]algorithm.State, error) {
	rows, err := q.Reader.Query(ctx, "SELECT "+algorithmColumns+" FROM {g}.algorithms t WHERE t.tenant = $1 AND t.project = $2 ORDER BY t.id", tenant, project)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanAlgorithm)
}

// FavoritesOf tells which of the algorithms the viewer likes.
func (q Queries) FavoritesOf(ctx context.Context, viewer projaccess.Filter, ids []uuid.UUID) (map[uuid.UUID]bool, error) {
	rows, err := q.Reader.Query(ctx, `SELECT algorithm FROM {g}.algorithm_favorites WHERE user_id = $1 AND algorithm = ANY($2)`, viewer.User, ids)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	m := make(map[uuid.UUID]bool, len(list))
	for _, id := range list {
		m[id] = true
	}
	return m, err
}

func decode[T any](data []byte, into *T) error {
	if data == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}
