package approval

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/approval"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/live"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/approval"
	"tallyard/projections/page"
)

// snapshotRows is how many rows the SNAPSHOT of a list holds.
const snapshotRows = 100

// watch is one subscription to requests.
type watch struct {
	api *API
	// What is watched: one request, those that the viewer may decide, or all in view.
	id      uuid.UUID
	waiting bool
}

// Events is the subscription approvalEvents.
func (a *API) Events(ctx context.Context, in gqlmodel.ApprovalEventsFilter, after, atLeast *string) (<-chan *gqlmodel.ApprovalEvent, error) {
	w, err := a.watch(in)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.LiveAtLeast(ctx, atLeast, a.Live); err != nil {
		return nil, err
	}
	return live.Stream(ctx, a.Live, after, live.Source[gqlmodel.ApprovalEvent]{
		Projections: []string{"approval"},
		Categories:  []string{approval.Category},
		Begin:       w.begin,
		Snapshot:    w.snapshot,
		Item:        w.item,
		Turn:        w.turn,
		Resync: func(cursor string) *gqlmodel.ApprovalEvent {
			return newEvent(gqlmodel.EventKindResync, cursor)
		},
	})
}

func newEvent(kind gqlmodel.EventKind, cursor string) *gqlmodel.ApprovalEvent {
	return &gqlmodel.ApprovalEvent{Cursor: cursor, Kind: kind, Approvals: []*gqlmodel.Approval{}, RemovedIds: []string{}}
}

func (a *API) watch(in gqlmodel.ApprovalEventsFilter) (*watch, error) {
	var faults fault.List
	w := &watch{api: a, id: relay.Optional(relay.Approval, in.ApprovalID.Value(), &faults, "filter", "approvalId")}
	for field, flag := range map[string]*bool{"all": in.All.Value(), "waitingForMe": in.WaitingForMe.Value()} {
		if flag != nil && !*flag {
			faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "Give true, or name a request.").At("filter", field))
		}
	}
	w.waiting = in.WaitingForMe.Value() != nil
	return w, faults.Err()
}

// begin refuses to watch a request that the viewer does not see, unless they
// saw it where they go on: its end comes to them then.
func (w *watch) begin(ctx context.Context, then access.Grants, at es.Position) error {
	if w.id == uuid.Nil {
		return nil
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return err
	}
	now, err := w.api.Handler.Load(ctx, v.Tenant, w.id)
	if err != nil || w.sees(v.Grants, now) {
		return err
	}
	past, err := w.api.at(ctx, v.Tenant, w.id, at)
	if err != nil || w.sees(then, past) {
		return err
	}
	return access.Missing().At("filter", "approvalId")
}

// sees tells whether a request is in view: the viewer sees it, and it is watched.
func (w *watch) sees(g access.Grants, s approval.State) bool {
	switch {
	case !s.Exists() || !g.Sees(s.Thing()):
		return false
	case w.id != uuid.Nil:
		return s.ID == w.id
	}
	return !w.waiting || s.Awaits(g)
}

// snapshot is the state at a position: folded from the log, so that what
// follows fits on it without a gap and without an overlap.
func (w *watch) snapshot(ctx context.Context, then access.Grants, at es.Position, cursor string) (*gqlmodel.ApprovalEvent, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	ev := newEvent(gqlmodel.EventKindSnapshot, cursor)
	if w.id != uuid.Nil {
		s, err := w.api.at(ctx, v.Tenant, w.id, at)
		if err == nil && w.sees(then, s) && w.sees(v.Grants, s) {
			ev.Approval = Show(s)
		}
		return ev, err
	}
	var f proj.Filter
	if w.waiting {
		f = waiting(f, v.Grants)
	}
	rows, err := w.api.Queries.List(ctx, projaccess.FilterOf(v.Grants), f, proj.Order(false), page.Page{First: snapshotRows})
	if err != nil {
		return nil, err
	}
	for _, row := range rows.Items {
		s, err := w.api.at(ctx, v.Tenant, row.ID, at)
		if err != nil {
			return nil, err
		}
		if w.sees(then, s) && w.sees(v.Grants, s) {
			ev.Approvals = append(ev.Approvals, Show(s))
		}
	}
	return ev, nil
}

// item is what an event means to this viewer: nothing, a change, or something
// coming into view or going out of it.
func (w *watch) item(ctx context.Context, then access.Grants, env es.Envelope, cursor string) (*gqlmodel.ApprovalEvent, error) {
	if w.id != uuid.Nil && env.Root().ID != w.id {
		return nil, nil
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	before, after, err := live.Around(ctx, w.api.Live, approval.Aggregate, env)
	if err != nil {
		return nil, err
	}
	saw, sees := w.sees(then, before), w.sees(then, after)
	ev := newEvent(gqlmodel.EventKindChanged, cursor)
	shown := after
	switch {
	case !saw && !sees:
		return nil, nil
	case !sees:
		ev.Kind, ev.RemovedIds, shown = gqlmodel.EventKindRemoved, []string{relay.Of(relay.Approval, before.ID)}, before
	case !w.sees(v.Grants, after):
		return nil, nil // it went out of view since, which comes
	case !saw:
		ev.Kind = gqlmodel.EventKindCreated
	}
	if w.sees(v.Grants, shown) {
		ev.Change = w.api.History.Entry(env)
	}
	if sees {
		ev.Approval = Show(after)
	}
	return ev, nil
}
