package operation

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/operation"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/live"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/operation"
	"tallyard/projections/page"
)

// snapshotRows is how many rows the SNAPSHOT of a list holds, and how many
// running operations a subscription that resumes begins with.
const snapshotRows = 100

// watch is one subscription to operations.
type watch struct {
	api *API
	// What is watched: one operation, those of a subject, or all in view.
	id, subject uuid.UUID
	// running are the operations whose progress is told, with the last sample
	// that was; nil: not looked up yet.
	running map[uuid.UUID]*sample
}

type sample struct {
	state operation.State
	last  loader.Progress
}

// Events is the subscription operationEvents.
func (a *API) Events(ctx context.Context, in gqlmodel.OperationEventsFilter, after, atLeast *string) (<-chan *gqlmodel.OperationEvent, error) {
	w, err := a.watch(in)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.LiveAtLeast(ctx, atLeast, a.Live); err != nil {
		return nil, err
	}
	return live.Stream(ctx, a.Live, after, live.Source[gqlmodel.OperationEvent]{
		Projections: []string{"operation"},
		Categories:  []string{operation.Category},
		Begin:       w.begin,
		Snapshot:    w.snapshot,
		Item:        w.item,
		Turn:        w.turn,
		Tick:        w.tick,
		Resync: func(cursor string) *gqlmodel.OperationEvent {
			return newEvent(gqlmodel.EventKindResync, cursor)
		},
	})
}

func newEvent(kind gqlmodel.EventKind, cursor string) *gqlmodel.OperationEvent {
	return &gqlmodel.OperationEvent{Cursor: cursor, Kind: kind, Operations: []*gqlmodel.Operation{}, RemovedIds: []string{}}
}

// begin refuses to watch an operation that the viewer does not see, unless they
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
	return access.Missing().At("filter", "operationId")
}

func (a *API) watch(in gqlmodel.OperationEventsFilter) (*watch, error) {
	var faults fault.List
	w := &watch{
		api:     a,
		id:      relay.Optional(relay.Operation, in.OperationID.Value(), &faults, "filter", "operationId"),
		subject: relay.Optional(0, in.SubjectID.Value(), &faults, "filter", "subjectId"),
	}
	if all := in.All.Value(); all != nil && !*all {
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "Give true, or name an operation or a subject.").At("filter", "all"))
	}
	return w, faults.Err()
}

// sees tells whether an operation is in view: the viewer sees it, it is
// watched, and, but where it is watched by its id, it is on the list.
func (w *watch) sees(g access.Grants, s operation.State) bool {
	switch {
	case !s.Exists() || !g.Sees(s.Thing()):
		return false
	case w.id != uuid.Nil:
		return s.ID == w.id
	case s.Dismissed:
		return false
	}
	return w.subject == uuid.Nil || s.Subject.ID == w.subject || s.Subject.Parent == w.subject
}

// snapshot is the state at a position: folded from the log, so that what
// follows fits on it without a gap and without an overlap.
func (w *watch) snapshot(ctx context.Context, then access.Grants, at es.Position, cursor string) (*gqlmodel.OperationEvent, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	ev := newEvent(gqlmodel.EventKindSnapshot, cursor)
	if w.id != uuid.Nil {
		s, err := w.api.at(ctx, v.Tenant, w.id, at)
		if err == nil && w.sees(then, s) && w.sees(v.Grants, s) {
			ev.Operation = Show(s)
		}
		return ev, err
	}
	rows, err := w.list(ctx, v.Grants)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		s, err := w.api.at(ctx, v.Tenant, row.ID, at)
		if err != nil {
			return nil, err
		}
		if w.sees(then, s) && w.sees(v.Grants, s) {
			ev.Operations = append(ev.Operations, Show(s))
		}
	}
	return ev, nil
}

// list gives the last queued operations in view, of some states.
func (w *watch) list(ctx context.Context, g access.Grants, states ...operation.Status) ([]operation.State, error) {
	rows, err := w.api.Queries.List(ctx, projaccess.FilterOf(g), proj.Filter{Subject: w.subject, Statuses: states}, proj.Newest, page.Page{First: snapshotRows})
	return rows.Items, err
}

// item is what an event means to this viewer: nothing, a change, or something
// coming into view or going out of it.
func (w *watch) item(ctx context.Context, then access.Grants, env es.Envelope, cursor string) (*gqlmodel.OperationEvent, error) {
	if w.id != uuid.Nil && env.Root().ID != w.id {
		return nil, nil
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	before, after, err := live.Around(ctx, w.api.Live, operation.Aggregate, env)
	if err != nil {
		return nil, err
	}
	saw, sees := w.sees(then, before), w.sees(then, after)
	w.follow(after, sees)
	ev := newEvent(gqlmodel.EventKindChanged, cursor)
	shown := after
	switch {
	case !saw && !sees:
		return nil, nil
	case !sees:
		ev.Kind, ev.RemovedIds, shown = gqlmodel.EventKindRemoved, []string{relay.Of(relay.Operation, before.ID)}, before
	case !w.sees(v.Grants, after):
		return nil, nil // it went out of view since, which comes
	case !saw:
		ev.Kind = gqlmodel.EventKindCreated
	}
	if w.sees(v.Grants, shown) {
		ev.Change = w.api.History.Entry(env)
	}
	if sees {
		ev.Operation = Show(after)
	}
	return ev, nil
}

// follow keeps in mind whose progress is to be told.
func (w *watch) follow(s operation.State, sees bool) {
	if w.running == nil {
		return // the first tick looks it up
	}
	if !sees || s.Status != operation.Running {
		delete(w.running, s.ID)
		return
	}
	if known := w.running[s.ID]; known != nil && known.state.Attempt == s.Attempt {
		known.state = s
		return
	}
	w.running[s.ID] = &sample{state: s}
}
