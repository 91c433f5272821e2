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
	where, args := q.algorithmsWhere(viewer, f)
	bound, tail, args := page.SQL(o, p, args)
	rows, err := q.Reader.Query(ctx, "SELECT "+algorithmColumns+" FROM {g}.algorithms t WHERE "+where+" AND "+bound+" "+tail, args...)
	if err != nil {
		return page.Rows[algorithm.State]{}, err
	}
	items, err := pgx.CollectRows(rows, scanAlgorithm)
	return page.Cut(items, p), err
}

// Count counts what List would go through.
func (q Queries) Count(ctx context.Context, viewer projaccess.Filter, f Filter) (int, error) {
	where, args := q.algorithmsWhere(viewer, f)
	return q.count(ctx, "{g}.algorithms t WHERE "+where, args)
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

func (q Queries) algorithmsWhere(viewer projaccess.Filter, f Filter) (string, []any) {
	visible, args := viewer.Visible("t", nil)
	conds := []string{visible}
	conds, args = common(conds, args, viewer, f)
	if f.Favorites {
		args = append(args, viewer.User)
		conds = append(conds, fmt.Sprintf("EXISTS (SELECT 1 FROM {g}.algorithm_favorites x WHERE x.user_id = $%d AND x.algorithm = t.id)", len(args)))
	}
	return strings.Join(conds, " AND "), args
}

// common are the conditions that algorithms and versions share.
func common(conds []string, args []any, viewer projaccess.Filter, f Filter) ([]string, []any) {
	add := func(cond string, v any) {
		args = append(args, v)
		conds = append(conds, fmt.Sprintf(cond, len(args)))
	}
	switch f.Scope {
	case ScopeGlobal:
		conds = append(conds, "t.reach = 2")
	case ScopeGroup:
		conds = append(conds, "t.reach = 1")
		add("t.project = ANY($%d)", viewer.Projects)
	case ScopePersonal:
		add("t.owner = $%d", viewer.User)
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
