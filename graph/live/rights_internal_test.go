package live

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/user"
	"tallyard/graph/authn"
)

// rights are those of one user, changed by the test.
type rights struct {
	tenant, user uuid.UUID
	in           atomic.Bool // in the project of the events
	gone         atomic.Bool // suspended
}

var project = uuid.UUID{7}

func (r *rights) session() user.Session {
	g := access.Grants{Tenant: r.tenant, User: r.user, Active: true, Projects: map[uuid.UUID]access.Role{}}
	if r.in.Load() {
		g.Projects[project] = access.Member
	}
	return user.Session{Tenant: r.tenant, Actor: es.Actor{Kind: es.ActorUser, User: r.user}, Grants: g}
}

func (r *rights) Recheck(context.Context, uuid.UUID, es.Actor, time.Time) (user.Session, error) {
	if r.gone.Load() {
		return user.Session{}, user.Unauthenticated()
	}
	return r.session(), nil
}

func (r *rights) Verify(context.Context, string) (authn.Viewer, error) {
	return authn.Viewer{Session: r.session()}, nil
}

func TestRights(t *testing.T) {
	w := newWorld(t, 8)
	r := &rights{tenant: w.tenant, user: uuid.New()}
	r.in.Store(true)
	auth := authn.New(r, es.SystemClock{}, w.Logger, r)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = auth.Run(ctx, w.Runtime.Log) })
	defer wg.Wait()
	defer stop()
	viewer, err := auth.Authenticate(ctx, "token")
	if err != nil {
		t.Fatal(err)
	}
	src := w.source()
	show := src.Item
	var dealt atomic.Uint64 // the position up to which it was decided
	src.Item = func(ctx context.Context, env es.Envelope, cursor string) (*item, error) {
		defer dealt.Store(uint64(env.Position))
		if v, err := authn.Must(ctx); err != nil || !v.Grants.In(project) {
			return nil, err
		}
		return show(ctx, env, cursor)
	}
	ch, err := Stream(viewer, w.Hub, nil, src)
	if err != nil {
		t.Fatal(err)
	}
	w.next(ch)
	// change puts new rights into force the way that an event of the user does.
	change := func(in bool) {
		t.Helper()
		r.in.Store(in)
		if _, err := w.Runtime.Log.Append(ctx, es.StreamOf(user.Category, w.tenant, r.user).String(), es.Any(),
			es.Raw{ID: uuid.New(), Type: "user.role_changed.v1", Data: []byte(`{}`), Metadata: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			if v, _ := authn.From(viewer); v.Grants.In(project) == in || viewer.Err() != nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("the rights do not change")
			}
		}
	}
	t.Run("LIV-03_what_is_seen_follows_the_rights_of_the_moment", func(t *testing.T) {
		w.write(3)
		if got, _ := w.events(ch, 3); got[2] != 2 {
			t.Errorf("came %v", got)
		}
		change(false)
		w.write(3)
		// The events of the middle are decided on before the rights come back.
		for last := uint64(w.Head()); dealt.Load() < last; {
			time.Sleep(time.Millisecond)
		}
		change(true)
		w.write(2)
		got, _ := w.events(ch, 2)
		for _, n := range got {
			if n < 6 {
				t.Errorf("came %v, which was not to be seen", got)
			}
		}
	})
	t.Run("TEN-07_who_is_suspended_hears_no_more", func(t *testing.T) {
		r.gone.Store(true)
		change(false)
		for i := range ch {
			t.Errorf("comes %+v", i)
		}
	})
}
