// Package audit is between the schema of the audit and its read model, and
// feeds its tail from the log.
package audit

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/text"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/history"
	"tallyard/graph/live"
	"tallyard/graph/problem"
	"tallyard/graph/relay"
	proj "tallyard/projections/audit"
)

// Things tells whether the viewer of a context sees something.
type Things interface {
	Sees(ctx context.Context, id relay.ID) (bool, error)
	// SeesInside tells whether the viewer also sees all that is inside of what
	// they see, such as every version of an algorithm.
	SeesInside(ctx context.Context, id relay.ID) (bool, error)
}

// API serves the schema of the audit.
type API struct {
	Queries  proj.Queries
	Commands *command.Gateway
	Sealer   *relay.Sealer
	Live     *live.Hub
	Things   Things
}

// List is the query auditEntries.
func (a *API) List(ctx context.Context, in *gqlmodel.AuditFilter, orderBy *gqlmodel.AuditOrder, args relay.Args, atLeast *string) (*gqlmodel.AuditEntryConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	f, err := a.filter(ctx, v, in)
	if err != nil {
		return nil, err
	}
	o := proj.Newest(orderBy == nil || orderBy.Direction == gqlmodel.OrderDirectionDesc)
	list, err := relay.NewList(a.Sealer, v.Tenant, "auditEntries", f, o)
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	rows, err := a.Queries.List(ctx, f, o, p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.AuditEntryConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.Count(ctx, f) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows, proj.Entry.Key,
		func(e proj.Entry) *gqlmodel.AuditEntry { return a.show(e, f.Outside) },
		func(cursor string, n *gqlmodel.AuditEntry) *gqlmodel.AuditEntryEdge {
			return &gqlmodel.AuditEntryEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

// Get is the query auditEntry.
func (a *API) Get(ctx context.Context, id string) (*gqlmodel.AuditEntry, error) {
	parsed, ok := relay.Parse(id)
	if !ok || parsed.Kind != relay.AuditEntry {
		return nil, nil
	}
	return a.ByID(ctx, parsed.UUID)
}

// ByID is an entry that the viewer may read: all of them for who reads the
// audit, else one's own and those of things that one sees.
func (a *API) ByID(ctx context.Context, id uuid.UUID) (*gqlmodel.AuditEntry, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	found, err := a.Queries.ByIDs(ctx, v.Tenant, []uuid.UUID{id})
	if err != nil {
		return nil, err
	}
	e, ok := found[id]
	if !ok {
		return nil, nil
	}
	may, outside, err := a.may(ctx, v, e.Actor.User, e.Subject)
	if err != nil || !may {
		return nil, err
	}
	return a.show(e, outside), nil
}

// may tells whether the viewer may read what an actor did to a thing (AUD-02),
// and whether only what is about the thing itself.
func (a *API) may(ctx context.Context, v authn.Viewer, actor uuid.UUID, subject es.Ref) (may, outside bool, err error) {
	if v.Grants.ReadsAudit() || actor == v.User() {
		return true, false, nil
	}
	id := relay.OfRef(subject)
	if id == nil {
		return false, false, nil
	}
	parsed, _ := relay.Parse(*id)
	return a.sees(ctx, parsed)
}

func (a *API) sees(ctx context.Context, id relay.ID) (sees, outside bool, err error) {
	if sees, err = a.Things.Sees(ctx, id); err != nil || !sees {
		return false, false, err
	}
	inside, err := a.Things.SeesInside(ctx, id)
	return err == nil, !inside, err
}

// filter reads the filter and refuses one that would show what the viewer may
// not read.
func (a *API) filter(ctx context.Context, v authn.Viewer, in *gqlmodel.AuditFilter) (proj.Filter, error) {
	f := proj.Filter{Tenant: v.Tenant}
	if in == nil {
		in = &gqlmodel.AuditFilter{}
	}
	var faults fault.List
	subject := a.idOf(in.SubjectID.Value(), "subjectId", 0, &faults)
	f.Subject = subject.UUID
	f.Actor = a.idOf(in.ActorID.Value(), "actorId", relay.User, &faults).UUID
	f.Project = a.idOf(in.ProjectID.Value(), "projectId", relay.Project, &faults).UUID
	f.Actions = in.Actions.Value()
	for _, o := range in.Outcomes.Value() {
		f.Outcomes = append(f.Outcomes, proj.Outcome(o))
	}
	if t := in.From.Value(); t != nil {
		f.From = *t
	}
	if t := in.To.Value(); t != nil {
		f.To = *t
	}
	if s := in.Search.Value(); s != nil {
		clean, bad := text.Line(0, 100).Clean(*s, "filter", "search")
		faults.Add(bad)
		f.Search = clean
	}
	f.Persons = in.PersonsOnly.Value() != nil && *in.PersonsOnly.Value()
	if len(faults) > 0 {
		return f, faults
	}
	if v.Grants.ReadsAudit() || f.Actor == v.User() {
		return f, nil
	}
	if subject.UUID != uuid.Nil {
		sees, outside, err := a.sees(ctx, subject)
		if err != nil || sees {
			f.Outside = outside
			return f, err
		}
		return f, access.Missing().At("filter", "subjectId")
	}
	return f, fault.New(fault.Forbidden, fault.CodeForbidden,
		"The whole tenant's audit is for auditors and tenant admins; give subjectId for a thing that you see, or your own id as actorId.")
}

func (a *API) idOf(textID *string, field string, kind relay.Kind, faults *fault.List) relay.ID {
	if textID == nil {
		return relay.ID{}
	}
	id, ok := relay.Parse(*textID)
	if !ok || (kind != 0 && id.Kind != kind) {
		faults.Add(access.Missing().At("filter", field))
	}
	return id
}

func (a *API) show(e proj.Entry, outside bool) *gqlmodel.AuditEntry {
	if outside && e.Mixed() {
		e.Changes = nil
	}
	m := &gqlmodel.AuditEntry{
		ID: relay.Of(relay.AuditEntry, e.ID), At: e.At, Actor: history.Actor(e.Actor), Action: e.Action,
		Subject: &gqlmodel.AuditSubject{Kind: e.Subject.Kind, ID: relay.OfRef(e.Subject), Ref: e.Subject},
		Outcome: gqlmodel.AuditOutcome(e.Outcome), Refusals: []*gqlmodel.UserError{}, Changes: history.Changes(e.Changes), Events: e.Events,
		CommandID: relay.Of(relay.Command, e.Command), Address: maybe(e.Address), UserAgent: maybe(e.UserAgent), Reason: maybe(e.Reason),
		Position: a.Sealer.Position(e.Tenant, e.Position),
	}
	if e.Project != nil {
		m.ProjectID = *e.Project
	}
	if e.Request != nil {
		m.RequestID = relay.Maybe(relay.Request, *e.Request)
	}
	for _, f := range e.Faults {
		m.Refusals = append(m.Refusals, problem.UserError(&fault.Fault{Kind: f.Kind, Code: f.Code, Message: f.Message, Field: f.Field, Details: f.Details}))
	}
	return m
}

func maybe(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Tail is the subscription auditTail.
func (a *API) Tail(ctx context.Context, in gqlmodel.AuditFilter, after *string) (<-chan *gqlmodel.AuditTailEvent, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := a.filter(ctx, v, &in); err != nil {
		return nil, err
	}
	return live.Stream(ctx, a.Live, after, live.Source[gqlmodel.AuditTailEvent]{
		Projections: []string{"audit"},
		FromRows:    true,
		Snapshot: func(_ context.Context, _ es.Position, cursor string) (*gqlmodel.AuditTailEvent, error) {
			return &gqlmodel.AuditTailEvent{Cursor: cursor, Kind: gqlmodel.EventKindSnapshot}, nil
		},
		Item: func(ctx context.Context, env es.Envelope, cursor string) (*gqlmodel.AuditTailEvent, error) {
			return a.line(ctx, in, env, cursor)
		},
		Resync: func(cursor string) *gqlmodel.AuditTailEvent {
			return &gqlmodel.AuditTailEvent{Cursor: cursor, Kind: gqlmodel.EventKindResync}
		},
	})
}

// line is the audit entry that an event began; further events of the same
// command are part of it already. The rights are those of this moment.
func (a *API) line(ctx context.Context, in gqlmodel.AuditFilter, env es.Envelope, cursor string) (*gqlmodel.AuditTailEvent, error) {
	if !proj.Recorded(env) {
		return nil, nil
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	f, err := a.filter(ctx, v, &in)
	if err != nil {
		if _, lost := fault.All(err); lost {
			return nil, nil // what was allowed when it began is not any more
		}
		return nil, err
	}
	kind := gqlmodel.EventKindCreated
	found, err := a.Queries.Matching(ctx, f, env.ID)
	if _, late := env.Event.(es.CommandRefused); err == nil && late && len(found) == 0 {
		// The command was on record before it was refused: its line changed.
		kind = gqlmodel.EventKindChanged
		found, err = a.Queries.MatchingCommand(ctx, f, env.Meta.Command)
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &gqlmodel.AuditTailEvent{Cursor: cursor, Kind: kind, AuditEntry: a.show(found[0], f.Outside)}, nil
}
