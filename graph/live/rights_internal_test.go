package live

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/user"
	"tallyard/graph/authn"
)

var project = uuid.UUID{7}

// things are what the member of the project loses sight of with it.
var things = []uuid.UUID{{1}, {2}, {3}, {4}, {5}}

// member is a person of the world's tenant whose rights stand in the log.
type member struct {
	*user.Handler
	w  *world
	id uuid.UUID
}

func newMember(w *world) *member {
	m := &member{&user.Handler{Runtime: w.Runtime}, w, uuid.New()}
	m.write("user.created.v1", `{}`)
	return m
}

func (m *member) write(name, data string) {
	m.w.t.Helper()
	end, err := m.Runtime.Log.Append(m.w.t.Context(), user.Aggregate.Stream(m.w.tenant, m.id).String(), es.Any(),
		es.Raw{ID: uuid.New(), Type: name, Data: []byte(data), Metadata: []byte(`{}`)})
	if err != nil {
		m.w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(m.w.t.Context(), 30*time.Second)
	defer cancel()
	if err := m.w.Reach(ctx, end.Position); err != nil {
		m.w.t.Fatal(err)
	}
}

func (m *member) joins() {
	m.write("user.role_granted.v1", fmt.Sprintf(`{"role":"MEMBER","project":%q}`, project))
}

func (m *member) leaves() {
	m.write("user.role_revoked.v1", fmt.Sprintf(`{"role":"MEMBER","project":%q}`, project))
}

// Verify implements authn.Verifier: who asks is the member.
func (m *member) Verify(ctx context.Context, _ string) (authn.Viewer, error) {
	g, err := m.Grants(ctx, m.w.tenant, m.id)
	return authn.Viewer{Session: user.Session{Tenant: m.w.tenant, Actor: es.Actor{Kind: es.ActorUser, User: m.id}, Grants: g}}, err
}

// with is a context whose viewer has the rights of this moment and keeps them.
func (m *member) with() context.Context {
	m.w.t.Helper()
	v, err := m.Verify(m.w.t.Context(), "")
	if err != nil {
		m.w.t.Fatal(err)
	}
	return authn.With(m.w.t.Context(), v)
}

// source tells of events to members of the project alone.
func (m *member) source() Source[item] {
	src := m.w.source()
	src.Snapshot = func(_ context.Context, _ access.Grants, _ es.Position, cursor string) (*item, error) {
		return &item{"snapshot", 0, cursor}, nil
	}
	show := src.Item
	src.Item = func(ctx context.Context, then access.Grants, env es.Envelope, cursor string) (*item, error) {
		if v, err := authn.Must(ctx); err != nil || env.Stream.Category != "clock" || !then.In(project) || !v.Grants.In(project) {
			return nil, err
		}
		return show(ctx, then, env, cursor)
	}
	src.Turn = func(_ context.Context, t Turn) (parts []Part[item], next uuid.UUID, err error) {
		if t.Is.In(project) {
			return []Part[item]{{Item: func(cursor string) *item { return &item{"snapshot", 0, cursor} }}}, uuid.Nil, nil
		}
		for i, id := range things {
			if slices.Compare(id[:], t.After[:]) <= 0 {
				continue
			}
			if len(parts) == 2 { // pages of two
				return parts, parts[1].Thing, nil
			}
			parts = append(parts, Part[item]{Thing: id, Item: func(cursor string) *item { return &item{"removed", i, cursor} }})
		}
		return parts, uuid.Nil, nil
	}
	return src
}

// stream subscribes and gives the items as they come.
func (m *member) stream(ctx context.Context, after *string) <-chan *item {
	m.w.t.Helper()
	ctx, stop := context.WithCancel(ctx)
	ch, err := Stream(ctx, m.w.Hub, after, m.source())
	if err != nil {
		m.w.t.Fatal(err)
	}
	m.w.t.Cleanup(func() {
		stop()
		for range ch { //nolint:revive // until it is closed
		}
	})
	return ch
}

// expect reads items and gives their cursors.
func (w *world) expect(ch <-chan *item, want ...string) (cursors []string) {
	w.t.Helper()
	for n, kind := range want {
		i := w.next(ch)
		if i == nil || fmt.Sprint(i.kind, i.n) != kind {
			w.t.Fatalf("item %d of %v is %+v", n, want, i)
		}
		cursors = append(cursors, i.cursor)
	}
	return cursors
}

func TestRights(t *testing.T) {
	w := newWorld(t, 0)
	m := newMember(w)
	m.joins()
	auth := authn.New(m, es.SystemClock{}, w.Logger, m)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = auth.Run(ctx, w.Runtime.Log) })
	defer wg.Wait()
	defer stop()
	viewer, err := auth.Authenticate(ctx, "token")
	if err != nil {
		t.Fatal(err)
	}
	before := m.with()
	ch := m.stream(viewer, nil)
	start := w.expect(ch, "snapshot0")[0]
	w.write(2)
	w.expect(ch, "event0", "event1")
	m.leaves()
	w.write(2)
	m.joins()
	w.write(1)
	all := []string{"event0", "event1", "removed0", "removed1", "removed2", "removed3", "removed4", "snapshot0", "event4"}
	cursors := w.expect(ch, all[2:]...)
	t.Run("LIV-03_what_is_gone_and_what_comes_is_told_in_order", func(t *testing.T) {
		seen := map[string]bool{}
		for _, c := range cursors {
			if seen[c] {
				t.Error("two items have one cursor")
			}
			seen[c] = true
		}
	})
	t.Run("LIV-02_who_resumes_in_the_middle_of_it_gets_the_rest_once", func(t *testing.T) {
		for i, c := range cursors {
			again := m.stream(m.with(), &c)
			if rest := w.expect(again, all[3+i:]...); !slices.Equal(rest, cursors[i+1:]) {
				t.Errorf("after %s other cursors came", all[2+i])
			}
		}
		w.expect(m.stream(m.with(), &start), all...)
	})
	t.Run("LIV-03_the_past_is_shown_by_the_rights_of_this_moment", func(t *testing.T) {
		m.leaves()
		again := m.stream(m.with(), &start)
		// What one left is told; what happened while one was there is not shown.
		w.expect(again, "removed0", "removed1", "removed2", "removed3", "removed4", "snapshot0", "removed0", "removed1", "removed2", "removed3", "removed4")
	})
	var last string
	t.Run("LIV-03_a_connection_that_knows_of_it_late_changes_nothing", func(t *testing.T) {
		late := m.stream(before, nil) // its viewer is in the project for ever
		w.expect(late, "snapshot0")
		w.write(1)
		m.joins()
		early := m.stream(authn.With(t.Context(), stale(m)), nil) // and this one never is
		w.expect(early, "snapshot0")
		w.write(1)
		w.expect(late, "snapshot0", "event6")
		last = w.expect(early, "event6")[0]
	})
	t.Run("TEN-07_who_is_suspended_hears_no_more", func(t *testing.T) {
		m.write("user.suspended.v1", `{}`)
		deadline := time.After(30 * time.Second)
		for {
			select {
			case i, open := <-ch:
				if !open {
					return
				}
				if i.kind == "event" && i.n > 6 {
					t.Errorf("comes %+v", i)
				}
			case <-deadline:
				t.Fatal("it goes on")
			}
		}
	})
	t.Run("LIV-03_a_suspension_that_is_over_took_nothing_out_of_sight", func(t *testing.T) {
		m.write("user.reinstated.v1", `{}`)
		w.write(1)
		w.expect(m.stream(m.with(), &last), "event7")
	})
}

// stale is the member without the project, as of before everything.
func stale(m *member) authn.Viewer {
	return authn.Viewer{Session: user.Session{
		Tenant: m.w.tenant, Actor: es.Actor{Kind: es.ActorUser, User: m.id},
		Grants: access.Grants{Tenant: m.w.tenant, User: m.id, Active: true, Version: 1},
	}}
}

// TestTurnWithoutRows: what a turn of rights touches is asked of rows. While
// they are behind, the subscription ends in time, and resumes with its cursor.
func TestTurnWithoutRows(t *testing.T) {
	w := newWorld(t, 0)
	rows := &readModel{at: 1 << 40, moved: make(chan struct{})}
	w.Waiter = rows
	m := newMember(w)
	m.joins()
	run := func(after *string) (<-chan *item, <-chan error) {
		s := &stream[item]{hub: w.Hub, src: m.source(), tenant: w.tenant, out: make(chan *item), feed: feed{hub: w.Hub, at: w.Head()}}
		if after != nil {
			if resync, err := s.resume(t.Context(), *after); err != nil || resync {
				t.Fatal(resync, err)
			}
		}
		ctx := m.with()
		v, err := authn.Must(ctx)
		if err == nil {
			s.rights, err = rightsAt(ctx, w.Runtime, v, s.feed.at)
		}
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			defer close(s.out)
			ended <- s.items(ctx, after == nil, false)
		}()
		return s.out, ended
	}
	ch, ended := run(nil)
	w.expect(ch, "snapshot0")
	w.write(1)
	cursor := w.expect(ch, "event0")[0]
	rows.reach(w.Head())
	began := time.Now()
	m.leaves()
	t.Run("LIV-03_it_ends_within_5_s_rather_than_pass_over_what_is_gone", func(t *testing.T) {
		select {
		case err := <-ended:
			if !fault.Is(err, fault.CodeStaleRead) {
				t.Errorf("ended with %v", err)
			}
			t.Logf("ended after %s", time.Since(began).Round(time.Millisecond))
		case i := <-ch:
			t.Errorf("comes %+v", i)
		case <-time.After(5 * time.Second):
			t.Error("it goes on")
		}
	})
	t.Run("LIV-03_LIV-02_it_is_told_when_they_are_there", func(t *testing.T) {
		rows.reach(w.Head())
		again, _ := run(&cursor)
		w.expect(again, "removed0", "removed1", "removed2", "removed3", "removed4")
	})
}
