package operation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/fault"
	"tallyard/domain/operation"
	"tallyard/projections/access"
	"tallyard/projections/page"
	"tallyard/projections/runner"
)

// Queries reads the table.
type Queries struct{ Reader *runner.Reader }

// Filter cuts lists of operations; what is zero does not cut.
type Filter struct {
	Statuses  []operation.Status
	Kinds     []operation.Kind
	Subject   uuid.UUID // the thing, or the one that it is part of
	Owner     uuid.UUID
	Project   uuid.UUID
	Dismissed bool // those taken off the list, too
}

// ByQueued orders by the time of the first queueing.
var ByQueued = page.Column{SQL: "t.queued_at", Cast: "timestamptz"}

// Newest is the order of the list: the last queued first.
var Newest = page.Order{Column: ByQueued, IDColumn: "t.id", Descending: true}

// Key is the place of an operation in the order.
func Key(s operation.State) page.Key {
	return page.Key{Value: page.TimeValue(s.Queued), ID: s.ID}
}

const columns = `t.id, t.tenant, t.project, t.owner, t.kind, t.subject_kind, t.subject, t.subject_parent, t.work, t.status, t.attempt,
	t.done_bytes, t.total_bytes, t.fingerprint, t.files, t.bytes, t.error_code, t.error_message,
	t.cancel_requested, t.dismissed, t.queued_at, t.started_at, t.ended_at`

// List gives a page of operations. Of their work the kind alone is filled in.
func (q Queries) List(ctx context.Context, viewer access.Filter, f Filter, o page.Order, p page.Page) (page.Rows[operation.State], error) {
	cond, args := where(viewer, f)
	bound, tail, args := page.SQL(o, p, args)
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM {g}.operations t WHERE "+cond+" AND "+bound+" "+tail, args...)
	if err != nil {
		return page.Rows[operation.State]{}, err
	}
	items, err := pgx.CollectRows(rows, scan)
	return page.Cut(items, p), err
}

// Count counts what List would go through.
func (q Queries) Count(ctx context.Context, viewer access.Filter, f Filter) (int, error) {
	cond, args := where(viewer, f)
	var n int
	err := q.Reader.QueryRow(ctx, "SELECT count(*) FROM {g}.operations t WHERE "+cond, args...).Scan(&n)
	return n, err
}

// ByIDs gives the operations that the viewer sees.
func (q Queries) ByIDs(ctx context.Context, viewer access.Filter, ids []uuid.UUID) (map[uuid.UUID]operation.State, error) {
	cond, args := viewer.Owned("t", nil)
	args = append(args, ids)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT "+columns+" FROM {g}.operations t WHERE %s AND t.id = ANY($%d)", cond, len(args)), args...)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scan)
	found := make(map[uuid.UUID]operation.State, len(list))
	for _, s := range list {
		found[s.ID] = s
	}
	return found, err
}

// Others asks for operations that are not a user's own.
type Others struct {
	Tenant, User uuid.UUID
	Subject      uuid.UUID // the thing, or the one that it is part of; nil: any
	After        uuid.UUID // the last one that was given before
	Limit        int
}

// Others gives the ids of others' operations in their order, also of those
// taken off the list.
func (q Queries) Others(ctx context.Context, o Others) ([]uuid.UUID, error) {
	cond, args := "", []any{o.Tenant, o.User, o.After, o.Limit}
	if o.Subject != uuid.Nil {
		cond, args = " AND (t.subject = $5 OR t.subject_parent = $5)", append(args, o.Subject)
	}
	rows, err := q.Reader.Query(ctx, `SELECT t.id FROM {g}.operations t WHERE t.tenant = $1 AND t.owner <> $2 AND t.id > $3`+cond+`
		ORDER BY t.id LIMIT $4`, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// Ref names an operation of any tenant, for the worker.
type Ref struct{ Tenant, ID uuid.UUID }

// perOwner and pendingMost bound what the worker is told of: enough of every
// owner that none is left out, since one person's copies run one by one.
const (
	perOwner    = 4
	pendingMost = 500
)

// Pending lists what the worker is to do: what runs, then what waits in the
// order in which it was put in line, the first few of each owner.
func (q Queries) Pending(ctx context.Context) ([]Ref, error) {
	rows, err := q.Reader.Query(ctx, `SELECT tenant, id FROM (
			SELECT t.tenant, t.id, t.status, t.line, row_number() OVER (PARTITION BY t.tenant, t.owner, t.status ORDER BY t.line) AS place
			FROM {g}.operations t WHERE t.status IN ('QUEUED', 'RUNNING')) AS p
		WHERE place <= $1 ORDER BY status = 'RUNNING' DESC, line LIMIT $2`, perOwner, pendingMost)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Ref])
}

// Unfinished gives a user's operations that wait or run, oldest first.
func (q Queries) Unfinished(ctx context.Context, tenant, owner uuid.UUID) ([]operation.State, error) {
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM {g}.operations t WHERE t.tenant = $1 AND t.owner = $2 AND t.status IN ('QUEUED', 'RUNNING') ORDER BY t.line", tenant, owner)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

func where(viewer access.Filter, f Filter) (string, []any) {
	cond, args := viewer.Owned("t", nil)
	conds := []string{cond}
	add := func(cond string, v any) {
		args = append(args, v)
		conds = append(conds, fmt.Sprintf(cond, len(args)))
	}
	if len(f.Statuses) > 0 {
		add("t.status = ANY($%d)", texts(f.Statuses))
	}
	if len(f.Kinds) > 0 {
		add("t.kind = ANY($%d)", texts(f.Kinds))
	}
	if f.Subject != uuid.Nil {
		add("(t.subject = $%[1]d OR t.subject_parent = $%[1]d)", f.Subject)
	}
	if f.Owner != uuid.Nil {
		add("t.owner = $%d", f.Owner)
	}
	if f.Project != uuid.Nil {
		add("t.project = $%d", f.Project)
	}
	if !f.Dismissed {
		conds = append(conds, "NOT t.dismissed")
	}
	return strings.Join(conds, " AND "), args
}

func texts[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

func scan(row pgx.CollectableRow) (operation.State, error) {
	var (
		s              operation.State
		code, message  *string
		started, ended *time.Time
	)
	err := row.Scan(&s.ID, &s.Tenant, &s.Project, &s.Owner, &s.Kind, &s.Subject.Kind, &s.Subject.ID, &s.Subject.Parent, &s.Work.Kind,
		&s.Status, &s.Attempt, &s.Amount.DoneBytes, &s.Amount.TotalBytes, &s.Result.Fingerprint, &s.Result.Files, &s.Result.Bytes,
		&code, &message, &s.CancelRequested, &s.Dismissed, &s.Queued, &started, &ended)
	if code != nil && message != nil {
		s.Failure = &operation.Failure{Code: fault.Code(*code), Message: *message}
	}
	s.Queued, s.Started, s.Ended = s.Queued.UTC(), utc(started), utc(ended)
	return s, err
}

func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
