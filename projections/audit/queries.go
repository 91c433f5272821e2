package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
	"tallyard/projections/page"
	"tallyard/projections/runner"
)

// Queries reads the audit.
type Queries struct{ Reader *runner.Reader }

// Entry is one line of the audit.
type Entry struct {
	ID       uuid.UUID
	Command  uuid.UUID
	Position es.Position
	Tenant   uuid.UUID
	Project  *uuid.UUID
	Action   string
	Outcome  Outcome
	Actor    es.Actor
	Subject  es.Ref
	Request  *uuid.UUID
	Reason   string
	Faults   []es.StoredFault
	Changes  []es.Change
	Events   []string
	At       time.Time
	// Address and UserAgent tell from where it came, as long as the tenant
	// keeps that; empty afterwards and for what the platform did by itself.
	Address, UserAgent string
}

// Key is the entry's place in the order of the log.
func (e Entry) Key() page.Key {
	return page.Key{Value: strconv.FormatUint(uint64(e.Position), 10), ID: e.ID}
}

// Filter cuts the audit.
type Filter struct {
	Tenant uuid.UUID // es.PlatformTenant: what belongs to none
	// Platform adds what belongs to no tenant. It is for one subject: over a
	// whole tenant no index would give both in one order.
	Platform bool
	Subject  uuid.UUID // entries about it or about something inside it
	Cut
	Actor    uuid.UUID
	Project  uuid.UUID
	Actions  []string
	Outcomes []Outcome
	From, To time.Time
	Search   string
	// Persons leaves out what the platform did by itself.
	Persons bool
}

// Cut is for who sees a subject but not all that is inside it.
type Cut struct {
	// Outside leaves only entries about the subject itself, and no search in
	// what else they tell.
	Outside bool
	// Events leaves only entries that come from these events, by stored names;
	// nil does not cut.
	Events []string
}

// Shows tells whether an entry about the subject is left by the cut on events.
func (c Cut) Shows(e Entry) bool {
	return c.Events == nil || !slices.ContainsFunc(e.Events, func(name string) bool { return !slices.Contains(c.Events, name) })
}

// Newest is the audit's order: newest first, by the log.
func Newest(descending bool) page.Order {
	return page.Order{Column: page.Column{SQL: "t.position", Cast: "bigint"}, IDColumn: "t.id", Descending: descending}
}

const columns = `t.id, t.command, t.position, t.tenant, t.project, t.action, t.outcome, t.actor_kind, t.actor, t.token, t.part,
	t.subject_kind, t.subject, t.subject_parent, t.request, t.reason, t.faults, t.changes, t.events, t.at, o.address, o.user_agent`

const tables = `{g}.audit_entries t LEFT JOIN tallyard.request_origins o ON o.request_id = t.request`

// List gives a page of the audit.
func (q Queries) List(ctx context.Context, f Filter, o page.Order, p page.Page) (page.Rows[Entry], error) {
	where, args := f.where()
	bound, tail, args := page.SQL(o, p, args)
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM "+tables+" WHERE "+where+" AND "+bound+" "+tail, args...)
	if err != nil {
		return page.Rows[Entry]{}, err
	}
	items, err := pgx.CollectRows(rows, scan)
	return page.Cut(items, p), err
}

// Count counts what List would go through.
func (q Queries) Count(ctx context.Context, f Filter) (int, error) {
	where, args := f.where()
	rows, err := q.Reader.Query(ctx, "SELECT count(*) FROM {g}.audit_entries t WHERE "+where, args...)
	if err != nil {
		return 0, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
}

// ByIDs gives entries of a tenant and of the platform.
func (q Queries) ByIDs(ctx context.Context, tenant uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]Entry, error) {
	rows, err := q.Reader.Query(ctx, "SELECT "+columns+" FROM "+tables+" WHERE t.tenant IN ($1, $2) AND t.id = ANY($3)", tenant, es.PlatformTenant, ids)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scan)
	m := make(map[uuid.UUID]Entry, len(list))
	for _, e := range list {
		m[e.ID] = e
	}
	return m, err
}

// Mixed tells whether the entry's changes come from several events, which may be
// about something inside the subject: an algorithm is made together with its
// first version. They are not for who sees the subject from outside only.
func (e Entry) Mixed() bool { return len(e.Events) > 1 }

// ofOneEvent is the opposite of Mixed.
const ofOneEvent = "jsonb_array_length(t.events) = 1"

// searchable is what a search looks through of the changes. The values of
// environment variables are not for finding: people keep credentials in them.
const searchable = `(SELECT string_agg(CASE c ->> 'field' WHEN 'environment' THEN c ->> 'field' ELSE c::text END, ' ')
	FROM jsonb_array_elements(t.changes) c)`

func (f Filter) where() (string, []any) {
	args := []any{f.Tenant}
	conds := []string{"t.tenant = $1"}
	if f.Platform {
		args = append(args, es.PlatformTenant)
		conds[0] = "t.tenant IN ($1, $2)"
	}
	add := func(cond string, v any) {
		args = append(args, v)
		conds = append(conds, fmt.Sprintf(cond, len(args)))
	}
	switch {
	case f.Subject != uuid.Nil && f.Outside:
		add("t.subject = $%d", f.Subject)
	case f.Subject != uuid.Nil:
		add("(t.subject = $%[1]d OR t.subject_parent = $%[1]d)", f.Subject)
	}
	if f.Events != nil {
		add("t.events <@ $%d::jsonb", es.ValueOf(f.Events))
	}
	if f.Actor != uuid.Nil {
		add("t.actor = $%d", f.Actor)
	}
	if f.Project != uuid.Nil {
		add("t.project = $%d", f.Project)
	}
	switch len(f.Actions) {
	case 0:
	case 1: // an index gives them in order
		add("t.action = $%d", f.Actions[0])
	default:
		add("t.action = ANY($%d)", f.Actions)
	}
	if len(f.Outcomes) > 0 {
		names := make([]string, len(f.Outcomes))
		for i, o := range f.Outcomes {
			names[i] = string(o)
		}
		add("t.outcome = ANY($%d)", names)
		if !slices.Contains(f.Outcomes, Done) {
			// Said in the words of the index of what was not simply done.
			conds = append(conds, "t.outcome <> 'DONE'")
		}
	}
	if !f.From.IsZero() {
		add("t.at >= $%d", f.From)
	}
	if !f.To.IsZero() {
		add("t.at < $%d", f.To)
	}
	if f.Persons {
		conds = append(conds, "t.actor IS NOT NULL")
	}
	if f.Search != "" {
		pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(f.Search) + "%"
		changes := searchable + " ILIKE $%[1]d"
		if f.Outside {
			changes += " AND " + ofOneEvent
		}
		add("(t.action ILIKE $%[1]d OR t.reason ILIKE $%[1]d OR "+changes+" OR t.faults::text ILIKE $%[1]d)", pattern)
	}
	return strings.Join(conds, " AND "), args
}

func scan(row pgx.CollectableRow) (Entry, error) {
	var (
		e                              Entry
		position                       int64
		actor, token, subject, parent  *uuid.UUID
		faults, changes, events        []byte
		address, agent                 *string
		actorKind, part, kind, outcome string
	)
	err := row.Scan(&e.ID, &e.Command, &position, &e.Tenant, &e.Project, &e.Action, &outcome, &actorKind, &actor, &token, &part,
		&kind, &subject, &parent, &e.Request, &e.Reason, &faults, &changes, &events, &e.At, &address, &agent)
	if err != nil {
		return e, err
	}
	e.Position, e.Outcome, e.At = es.Position(position), Outcome(outcome), e.At.UTC() //nolint:gosec // written from a position
	e.Actor = es.Actor{Kind: es.ActorKind(actorKind), User: value(actor), Token: value(token), Part: part}
	e.Subject = es.Ref{Kind: kind, ID: value(subject), Parent: value(parent)}
	e.Address, e.UserAgent = value(address), value(agent)
	for data, into := range map[*[]byte]any{&faults: &e.Faults, &changes: &e.Changes, &events: &e.Events} {
		if err := json.Unmarshal(*data, into); err != nil {
			return e, fmt.Errorf("row of audit entry %s: %w", e.ID, err)
		}
	}
	return e, nil
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Matching gives the entry that an event began, when the filter lets it through.
func (q Queries) Matching(ctx context.Context, f Filter, event uuid.UUID) ([]Entry, error) {
	return q.matching(ctx, f, "t.id", event)
}

// MatchingCommand gives the entry of a command, when the filter lets it through.
func (q Queries) MatchingCommand(ctx context.Context, f Filter, command uuid.UUID) ([]Entry, error) {
	return q.matching(ctx, f, "t.command", command)
}

func (q Queries) matching(ctx context.Context, f Filter, column string, id uuid.UUID) ([]Entry, error) {
	where, args := f.where()
	args = append(args, id)
	rows, err := q.Reader.Query(ctx, fmt.Sprintf("SELECT "+columns+" FROM "+tables+" WHERE %s AND %s = $%d", where, column, len(args)), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}
