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
func (a *API) Events(ctx context.Context, in gqlmodel.OperationEventsFilter, after *string) (<-chan *gqlmodel.OperationEvent, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	w, err := a.watch(in)
	if err != nil {
		return nil, err
	}
	if w.id != uuid.Nil {
		s, err := a.Handler.Load(ctx, v.Tenant, w.id)
		if err != nil {
			return nil, err
		}
		if !w.sees(v.Grants, s) {
			return nil, access.Missing().At("filter", "operationId")
		}
	}
	return live.Stream(ctx, a.Live, after, live.Source[gqlmodel.OperationEvent]{
		Projections: []string{"operation"},
		Categories:  []string{operation.Category},
		Snapshot:    w.snapshot,
		Item:        w.item,
		Tick:        w.tick,
		Resync: func(cursor string) *gqlmodel.OperationEvent {
			return &gqlmodel.OperationEvent{Cursor: cursor, Kind: gqlmodel.EventKindResync, Operations: []*gqlmodel.Operation{}}
		},
	})
}

func (a *API) watch(in gqlmodel.OperationEventsFilter) (*watch, error) {
	var faults fault.List
	w := &watch{
		api:     a,
		id:      idOf(relay.Operation, in.OperationID.Value(), "operationId", &faults),
		subject: idOf(0, in.SubjectID.Value(), "subjectId", &faults),
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
func (w *watch) snapshot(ctx context.Context, at es.Position, cursor string) (*gqlmodel.OperationEvent, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	ev := &gqlmodel.OperationEvent{Cursor: cursor, Kind: gqlmodel.EventKindSnapshot, Operations: []*gqlmodel.Operation{}}
	if w.id != uuid.Nil {
		s, err := w.api.at(ctx, v.Tenant, w.id, at)
		if err == nil && w.sees(v.Grants, s) {
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
		if w.sees(v.Grants, s) {
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

// item is what an event means to this viewer at this moment: nothing, a
// change, or something coming into view or going out of it.
func (w *watch) item(ctx context.Context, env es.Envelope, cursor string) (*gqlmodel.OperationEvent, error) {
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
	saw, sees := w.sees(v.Grants, before), w.sees(v.Grants, after)
	w.follow(after, sees)
	if !saw && !sees {
		return nil, nil
	}
	ev := &gqlmodel.OperationEvent{
		Cursor: cursor, Kind: gqlmodel.EventKindChanged, Change: w.api.History.Entry(env), Operations: []*gqlmodel.Operation{},
	}
	switch {
	case !saw:
		ev.Kind = gqlmodel.EventKindCreated
	case !sees:
		ev.Kind = gqlmodel.EventKindRemoved
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
