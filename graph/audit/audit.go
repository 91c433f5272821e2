// Package audit is between the schema of the audit and its read model, and
// feeds its tail from the log.
package audit

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/history"
	"tallyard/graph/live"
	"tallyard/graph/problem"
	"tallyard/graph/relay"
	proj "tallyard/projections/audit"
)

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
		func(e proj.Entry) *gqlmodel.AuditEntry { return a.show(v, e, f.Cut) },
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

// ByID is an entry that the viewer may read: all of the tenant's for who reads
// its audit, all of the platform's for operators, else one's own and those of
// things that one sees.
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
	may, cut, err := a.may(ctx, v, e)
	if err != nil || !may {
		return nil, err
	}
	return a.show(v, e, cut), nil
}

func (a *API) show(v authn.Viewer, e proj.Entry, cut proj.Cut) *gqlmodel.AuditEntry {
	if cut.Outside && e.Mixed() {
		e.Changes = nil
	}
	if e.Tenant == es.PlatformTenant && !v.Grants.ReadsPlatform() && e.Actor.User != v.User() {
		// Who acts for the platform belongs to another tenant (TEN-01).
		e.Address, e.UserAgent = "", ""
	}
	m := &gqlmodel.AuditEntry{
		ID: relay.Of(relay.AuditEntry, e.ID), At: e.At, Actor: history.Actor(e.Actor), Action: e.Action,
		Subject: &gqlmodel.AuditSubject{Kind: e.Subject.Kind, ID: relay.OfRef(e.Subject), Ref: e.Subject},
		Outcome: gqlmodel.AuditOutcome(e.Outcome), Refusals: []*gqlmodel.UserError{}, Changes: history.Changes(e.Changes), Events: e.Events,
		CommandID: relay.Of(relay.Command, e.Command), Address: gqlmodel.NotEmpty(e.Address), UserAgent: gqlmodel.NotEmpty(e.UserAgent), Reason: gqlmodel.NotEmpty(e.Reason),
		Position: a.Sealer.Position(v.Tenant, e.Position),
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
