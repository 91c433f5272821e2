package operation

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/operation"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
)

// samples is a source of progress that counts how often it is asked.
type samples struct {
	asked int
	now   map[uuid.UUID]loader.Progress
}

func (s *samples) Find(_ context.Context, _ uuid.UUID, ids []uuid.UUID) (map[uuid.UUID]loader.Progress, error) {
	s.asked++
	found := map[uuid.UUID]loader.Progress{}
	for _, id := range ids {
		if p, ok := s.now[id]; ok {
			found[id] = p
		}
	}
	return found, nil
}

func viewer(g access.Grants) context.Context {
	return authn.With(context.Background(), authn.Viewer{Session: user.Session{
		Tenant: g.Tenant, Actor: es.Actor{Kind: es.ActorUser, User: g.User}, Grants: g,
	}})
}

func running(g access.Grants) operation.State {
	return operation.State{
		Tenant: g.Tenant, ID: uuid.New(), Kind: operation.PublishAlgorithm, Owner: g.User, Status: operation.Running, Attempt: 1,
		Subject: es.Ref{Kind: "algorithmVersion", ID: uuid.New(), Parent: uuid.New()},
	}
}

// TestProgressIsToldWhenItMoves: only of what runs and is in view, only what
// changed, one question per tick and none while nothing runs.
func TestProgressIsToldWhenItMoves(t *testing.T) {
	me := access.Grants{Tenant: uuid.New(), User: uuid.New(), Active: true}
	source := &samples{now: map[uuid.UUID]loader.Progress{}}
	w := &watch{api: &API{Progress: source}, running: map[uuid.UUID]*sample{}}
	ctx := viewer(me)
	tick := func(ctx context.Context, want ...int64) {
		t.Helper()
		items, err := w.tick(ctx, me, "cursor")
		if err != nil {
			t.Fatal(err)
		}
		if len(items) != len(want) {
			t.Fatalf("%d items, want %d", len(items), len(want))
		}
		for i, item := range items {
			if item.Kind != gqlmodel.EventKindProgress || item.Cursor != "cursor" || item.Change != nil || *item.Operation.DoneBytes != want[i] {
				t.Errorf("item %d is %+v", i, item)
			}
		}
	}
	tick(ctx)
	if source.asked != 0 {
		t.Error("it asks though nothing runs")
	}
	s, theirs := running(me), running(access.Grants{Tenant: me.Tenant, User: uuid.New()})
	w.follow(s, true)
	w.follow(theirs, w.sees(me, theirs))
	tick(ctx) // no sample yet
	source.now[s.ID], source.now[theirs.ID] = loader.Progress{DoneBytes: 1, TotalBytes: 9}, loader.Progress{DoneBytes: 5}
	tick(ctx, 1)
	tick(ctx) // nothing moved
	source.now[s.ID] = loader.Progress{DoneBytes: 2, TotalBytes: 9}
	s.CancelRequested = true
	w.follow(s, true) // another change of the same attempt keeps what was told
	tick(ctx, 2)
	tick(ctx)
	if source.asked != 5 {
		t.Errorf("five ticks asked %d times", source.asked)
	}

	lost := me
	lost.Active = false
	source.now[s.ID] = loader.Progress{DoneBytes: 3, TotalBytes: 9}
	tick(viewer(lost))
	tick(ctx, 3) // the right is back

	s.Attempt++
	w.follow(s, true) // a new attempt begins anew
	tick(ctx, 3)
	s.Status = operation.Succeeded
	w.follow(s, true)
	source.now[s.ID] = loader.Progress{DoneBytes: 4}
	tick(ctx)
}

// TestViewsOfOperations: by id, by subject or the thing that it is part of, or
// the list, from which dismissed ones are gone.
func TestViewsOfOperations(t *testing.T) {
	me := access.Grants{Tenant: uuid.New(), User: uuid.New(), Active: true}
	admin := access.Grants{Tenant: me.Tenant, User: uuid.New(), Active: true, Roles: []access.Role{access.TenantAdmin}}
	other := access.Grants{Tenant: me.Tenant, User: uuid.New(), Active: true}
	foreign := access.Grants{Tenant: uuid.New(), User: me.User, Active: true, Roles: []access.Role{access.TenantAdmin}}
	s := running(me)
	gone := s
	gone.Dismissed = true
	for name, c := range map[string]struct {
		w    watch
		g    access.Grants
		s    operation.State
		want bool
	}{
		"owner":             {watch{}, me, s, true},
		"admin":             {watch{}, admin, s, true},
		"another":           {watch{}, other, s, false},
		"another tenant":    {watch{}, foreign, s, false},
		"nothing":           {watch{}, me, operation.State{}, false},
		"dismissed":         {watch{}, me, gone, false},
		"dismissed by id":   {watch{id: s.ID}, me, gone, true},
		"another id":        {watch{id: uuid.New()}, me, s, false},
		"subject":           {watch{subject: s.Subject.ID}, me, s, true},
		"subject's parent":  {watch{subject: s.Subject.Parent}, me, s, true},
		"another's subject": {watch{subject: uuid.New()}, me, s, false},
	} {
		if got := c.w.sees(c.g, c.s); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAmounts: what is not known is null, never a guess (GEN-07).
func TestAmounts(t *testing.T) {
	me := access.Grants{Tenant: uuid.New(), User: uuid.New(), Active: true}
	a := &API{}
	show := func(change func(*operation.State)) *gqlmodel.Operation {
		s := running(me)
		change(&s)
		return Show(s)
	}
	is := func(p *int64, want int64) bool { return (p == nil) == (want < 0) && (p == nil || *p == want) }
	for name, c := range map[string]struct {
		op                                 *gqlmodel.Operation
		doneBytes, totalBytes, done, total int64 // -1: null
	}{
		"queued": {show(func(s *operation.State) { s.Status = operation.Queued }), -1, -1, -1, -1},
		"past":   {showPast(running(me)), -1, -1, -1, -1},
		"succeeded": {show(func(s *operation.State) {
			s.Status, s.Amount, s.Result = operation.Succeeded, operation.Amount{DoneBytes: 7, TotalBytes: 7}, operation.Result{Files: 2}
		}), 7, 7, 2, 2},
		"empty": {show(func(s *operation.State) { s.Status = operation.Succeeded }), 0, 0, 0, 0},
		"failed": {show(func(s *operation.State) {
			s.Status, s.Amount = operation.Failed, operation.Amount{DoneBytes: 3, TotalBytes: 7}
		}), 3, 7, -1, -1},
		"cancelled": {show(func(s *operation.State) { s.Status = operation.Cancelled }), 0, -1, -1, -1},
		"progress":  {showProgress(running(me), loader.Progress{DoneBytes: 1, TotalBytes: 2, DoneFiles: 3, TotalFiles: 4}), 1, 2, 3, 4},
	} {
		for field, f := range map[string]struct {
			get  func(context.Context, *gqlmodel.Operation) (*int64, error)
			want int64
		}{"doneBytes": {a.DoneBytes, c.doneBytes}, "totalBytes": {a.TotalBytes, c.totalBytes}, "doneFiles": {a.DoneFiles, c.done}, "totalFiles": {a.TotalFiles, c.total}} {
			if got, err := f.get(context.Background(), c.op); err != nil || !is(got, f.want) {
				t.Errorf("%s.%s is not %d: %v, %v", name, field, f.want, got, err)
			}
		}
	}
}
