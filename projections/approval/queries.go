package approval

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/approval"
	"tallyard/projections/access"
	"tallyard/projections/page"
	"tallyard/projections/runner"
)

// Queries reads the table.
type Queries struct{ Reader *runner.Reader }

// Filter cuts lists of requests; what is zero does not cut.
type Filter struct {
	Statuses    []approval.Status
	SubjectKind string
	Subject     uuid.UUID // the thing, or the one that it is part of
	Requester   uuid.UUID
	// NotOf leaves out what a person asked for: nobody decides that themselves.
	NotOf uuid.UUID
	// Nothing cuts all.
	Nothing bool
}

// ByRequested orders by the time of the request.
var ByRequested = page.Column{SQL: "t.requested_at", Cast: "timestamptz"}

// Order is the order of lists.
func Order(oldestFirst bool) page.Order {
	return page.Order{Column: ByRequested, IDColumn: "t.id", Descending: !oldestFirst}
}

// Key is the place of a request in the order.
func Key(s approval.State) page.Key {
	return page.Key{Value: page.TimeValue(s.Requested), ID: s.ID}
}

const columns = `t.id, t.tenant, t.project, t.owner, t.action, t.subject_kind, t.subject, t.subject_parent, t.digest, t.reason,
	t.status, t.requested_at, t.expires_at, t.ended_at, t.ended_by, t.answer`

// List gives a page of requests.
func (q Queries) List(ctx context.Context, viewer access.Filter, f Filter, o page.Order, p page.Page) (page.Rows[approval.State], error) {
	cond, args := where(viewer, f)
	bound, tail, args := page.SQL(o, p, args)
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM {g}.approvals t WHERE "+cond+" AND "+bound+" "+tail, args...)
	if err != nil {
		return page.Rows[approval.State]{}, err
	}
	items, err := pgx.CollectRows(rows, scan)
	return page.Cut(items, p), err
}

// Count counts what List would go through.
func (q Queries) Count(ctx context.Context, viewer access.Filter, f Filter) (int, error) {
	cond, args := where(viewer, f)
	var n int
	err := q.Reader.QueryRow(ctx, "SELECT count(*) FROM {g}.approvals t WHERE "+cond, args...).Scan(&n)
	return n, err
}

// ByIDs gives the requests that the viewer sees.
func (q Queries) ByIDs(ctx context.Context, viewer access.Filter, ids []uuid.UUID) (map[uuid.UUID]approval.State, error) {
	cond, args := viewer.Owned("t", nil)
	args = append(args, ids)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT "+columns+" FROM {g}.approvals t WHERE %s AND t.id = ANY($%d)", cond, len(args)), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scan)
	found := make(map[uuid.UUID]approval.State, len(list))
	for _, s := range list {
		found[s.ID] = s
	}
	return found, err
}

// Others gives the ids of requests of a tenant that are not a user's own, in
// their order, behind one that was given before.
func (q Queries) Others(ctx context.Context, tenant, user, after uuid.UUID, limit int) ([]uuid.UUID, error) {
	rows, err := q.Reader.Query(ctx, `SELECT t.id FROM {g}.approvals t WHERE t.tenant = $1 AND t.owner <> $2 AND t.id > $3
		ORDER BY t.id LIMIT $4`, tenant, user, after, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// Ref names a request of any tenant.
type Ref struct{ Tenant, ID uuid.UUID }

// Due lists what waits longer than it may, of all tenants.
func (q Queries) Due(ctx context.Context, now time.Time, limit int) ([]Ref, error) {
	rows, err := q.Reader.Query(ctx, `SELECT t.tenant, t.id FROM {g}.approvals t WHERE t.status = 'PENDING' AND t.expires_at <= $1
		ORDER BY t.expires_at, t.id LIMIT $2`, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Ref])
}

func where(viewer access.Filter, f Filter) (string, []any) {
	cond, args := viewer.Owned("t", nil)
	conds := []string{cond}
	add := func(cond string, v any) {
		args = append(args, v)
		conds = append(conds, fmt.Sprintf(cond, len(args)))
	}
	if len(f.Statuses) > 0 {
		list := make([]string, len(f.Statuses))
		for i, s := range f.Statuses {
			list[i] = string(s)
		}
		add("t.status = ANY($%d)", list)
	}
	if f.SubjectKind != "" {
		add("t.subject_kind = $%d", f.SubjectKind)
	}
	if f.Subject != uuid.Nil {
		add("(t.subject = $%[1]d OR t.subject_parent = $%[1]d)", f.Subject)
	}
	if f.Requester != uuid.Nil {
		add("t.owner = $%d", f.Requester)
	}
	if f.NotOf != uuid.Nil {
		add("t.owner <> $%d", f.NotOf)
	}
	if f.Nothing {
		conds = append(conds, "false")
	}
	return strings.Join(conds, " AND "), args
}

func scan(row pgx.CollectableRow) (approval.State, error) {
	var (
		s     approval.State
		ended *time.Time
		by    *uuid.UUID
	)
	err := row.Scan(&s.ID, &s.Tenant, &s.Project, &s.Requester, &s.Subject.Action, &s.Subject.Kind, &s.Subject.ID, &s.Subject.Parent,
		&s.Subject.Digest, &s.Reason, &s.Status, &s.Requested, &s.Expires, &ended, &by, &s.Answer)
	s.Requested, s.Expires = s.Requested.UTC(), s.Expires.UTC()
	if ended != nil {
		s.Ended = ended.UTC()
	}
	if by != nil {
		s.By = *by
	}
	return s, err
}
