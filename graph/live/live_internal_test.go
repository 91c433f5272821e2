package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/relay"
	"tallyard/graph/transport"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type ticked struct{ N int }

func (ticked) Changes() []es.Change { return nil }

// chimed is an event of any size.
type chimed struct {
	N    int
	Text string
}

func (chimed) Changes() []es.Change { return nil }

type noWait struct{}

func (noWait) Await(context.Context, es.Position, ...string) error { return nil }

// item is what the subscriptions of these tests tell.
type item struct {
	kind   string
	n      int
	cursor string
}

type world struct {
	*Hub
	t      *testing.T
	tenant uuid.UUID
	ctx    context.Context
	wrote  int
}

func newWorld(t *testing.T, keep int) *world {
	t.Helper()
	registry, err := es.NewRegistry([]es.TypeDef{es.Type[ticked]("clock.ticked.v1"), es.Type[chimed]("clock.chimed.v1")}, user.Types)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := relay.NewSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	w := &world{t: t, tenant: uuid.New(), Hub: &Hub{Sealer: sealer, Waiter: noWait{}, Logger: quiet, Store: uuid.New(), keep: keep, Runtime: &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, Logger: quiet,
	}}}
	w.ctx = authn.With(t.Context(), authn.Viewer{Session: user.Session{Tenant: w.tenant}})
	if err := w.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return w
}

// write appends events to the tenant's log and waits until the hub has them.
func (w *world) write(n int) {
	w.t.Helper()
	w.append(w.tenant, "clock.ticked.v1", n, "")
	w.wrote += n
}

// chime is write with large events.
func (w *world) chime(n, bytes int) {
	w.t.Helper()
	w.append(w.tenant, "clock.chimed.v1", n, strings.Repeat("x", bytes))
	w.wrote += n
}

func (w *world) append(tenant uuid.UUID, name string, n int, text string) {
	w.t.Helper()
	raws := make([]es.Raw, n)
	for i := range raws {
		raws[i] = es.Raw{ID: uuid.New(), Type: name, Data: fmt.Appendf(nil, `{"N":%d,"Text":%q}`, w.wrote+i, text), Metadata: []byte(`{}`)}
	}
	end, err := w.Runtime.Log.Append(w.t.Context(), es.StreamOf("clock", tenant, uuid.Nil).String(), es.Any(), raws...)
	if err != nil {
		w.t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for w.Head() < end.Position {
		if time.Now().After(deadline) {
			w.t.Fatal("the hub does not follow")
		}
		time.Sleep(time.Millisecond)
	}
}

func (w *world) source() Source[item] {
	return Source[item]{
		Snapshot: func(_ context.Context, _ access.Grants, _ es.Position, cursor string) (*item, error) {
			return &item{"snapshot", w.wrote, cursor}, nil
		},
		Item: func(_ context.Context, _ access.Grants, env es.Envelope, cursor string) (*item, error) {
			if large, ok := env.Event.(chimed); ok {
				return &item{"event", large.N, cursor}, nil
			}
			return &item{"event", env.Event.(ticked).N, cursor}, nil
		},
		Resync: func(cursor string) *item { return &item{"resync", 0, cursor} },
	}
}

func (w *world) subscribe(after *string) (<-chan *item, context.CancelFunc) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.ctx)
	ch, err := Stream(ctx, w.Hub, after, w.source())
	if err != nil {
		w.t.Fatal(err)
	}
	return ch, func() {
		stop()
		for range ch { //nolint:revive // until it is closed
		}
	}
}

func (w *world) next(ch <-chan *item) *item {
	w.t.Helper()
	select {
	case i := <-ch:
		return i
	case <-time.After(30 * time.Second):
		w.t.Fatal("nothing comes")
		return nil
	}
}

// events reads the numbers of n events.
func (w *world) events(ch <-chan *item, n int) (list []int, cursors []string) {
	w.t.Helper()
	for range n {
		i := w.next(ch)
		if i == nil || i.kind != "event" {
			w.t.Fatalf("comes %+v", i)
		}
		list, cursors = append(list, i.n), append(cursors, i.cursor)
	}
	return list, cursors
}

func numbers(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

func TestResume(t *testing.T) {
	w := newWorld(t, 8)
	w.write(5)
	ch, stop := w.subscribe(nil)
	defer stop()
	first := w.next(ch)
	if first.kind != "snapshot" || first.n != 5 {
		t.Fatalf("begins with %+v", first)
	}
	w.write(30)
	got, cursors := w.events(ch, 30)
	t.Run("LIV-02_the_state_then_every_change_in_order", func(t *testing.T) {
		if !slices.Equal(got, numbers(5, 35)) {
			t.Errorf("came %v", got)
		}
	})
	t.Run("LIV-02_from_every_cursor_the_rest_once", func(t *testing.T) {
		for i, cursor := range append([]string{first.cursor}, cursors...) {
			again, stop := w.subscribe(&cursor)
			rest, same := w.events(again, 30-i)
			if !slices.Equal(rest, numbers(5+i, 35)) || i < 30 && !slices.Equal(same, cursors[i:]) {
				t.Errorf("behind %d came %v", i, rest)
			}
			stop()
		}
	})
	t.Run("LIV-02_a_replay_joins_the_live_flow", func(t *testing.T) {
		again, stop := w.subscribe(&cursors[3])
		defer stop()
		w.events(again, 5)
		w.write(3)
		if rest, _ := w.events(again, 24); !slices.Equal(rest, numbers(14, 38)) {
			t.Errorf("came %v", rest)
		}
	})
	t.Run("LIV-02_RESYNC_for_a_cursor_of_another_store", func(t *testing.T) {
		for name, l := range map[string]relay.Live{
			"store": {Position: 1, Event: uuid.New(), Store: uuid.New()}, "event": {Position: 1, Event: uuid.New(), Store: w.Store},
			"end":      {Position: 1 << 40, Event: uuid.New(), Store: w.Store},
			"snapshot": {Position: 1 << 40, Store: w.Store},
		} {
			cursor := w.Sealer.LiveCursor(w.tenant, l)
			ch, stop := w.subscribe(&cursor)
			if i := w.next(ch); i == nil || i.kind != "resync" {
				t.Errorf("another %s: %+v", name, i)
			}
			if i := w.next(ch); i != nil {
				t.Errorf("another %s: then %+v", name, i)
			}
			stop()
		}
	})
	t.Run("LIV-02_a_snapshots_cursor_names_the_last_event", func(t *testing.T) {
		// In a log that was restored from an older backup and has grown since,
		// something else lies there.
		l, _, bad := w.Sealer.OpenLive(w.tenant, first.cursor, w.Store)
		if bad != nil || l.Event == uuid.Nil {
			t.Fatalf("%+v, %v", l, bad)
		}
		l.Event = uuid.New()
		cursor := w.Sealer.LiveCursor(w.tenant, l)
		ch, stop := w.subscribe(&cursor)
		defer stop()
		if i := w.next(ch); i == nil || i.kind != "resync" {
			t.Errorf("comes %+v", i)
		}
	})
	t.Run("TEN-01_a_cursor_of_another_tenant_is_refused", func(t *testing.T) {
		cursor := w.Sealer.LiveCursor(uuid.New(), relay.Live{Position: 1, Store: w.Store})
		if _, err := Stream(w.ctx, w.Hub, &cursor, w.source()); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("TEN-01_nothing_of_another_tenant_comes", func(t *testing.T) {
		again, stop := w.subscribe(&cursors[29])
		defer stop()
		w.append(uuid.New(), "clock.ticked.v1", 3, "")
		w.append(w.tenant, "clock.unknown.v9", 3, "") // of a newer program: passed over
		w.write(1)
		if rest, _ := w.events(again, 4); !slices.Equal(rest, numbers(35, 39)) {
			t.Errorf("came %v", rest)
		}
	})
}

func TestSlow(t *testing.T) {
	t.Run("LIV-04_who_fell_behind_reads_the_log_and_misses_nothing", func(t *testing.T) {
		w := newWorld(t, 8)
		ch, stop := w.subscribe(nil)
		defer stop()
		w.next(ch)
		w.write(1)
		w.events(ch, 1)
		w.write(600) // the hub keeps 16 of them at most
		if got, _ := w.events(ch, 600); !slices.Equal(got, numbers(1, 601)) {
			t.Errorf("came %v", got)
		}
		if n := len(w.kept); n > 16 {
			t.Errorf("the hub keeps %d", n)
		}
	})
	t.Run("LIV-04_who_falls_behind_twice_is_closed_with_the_last_cursor", func(t *testing.T) {
		w := newWorld(t, 8)
		ctx, stop := context.WithCancel(w.ctx)
		defer stop()
		s := &stream[item]{hub: w.Hub, src: w.source(), tenant: w.tenant, out: make(chan *item), feed: feed{hub: w.Hub, at: w.Head()}}
		ended := make(chan error, 1)
		go func() {
			ended <- s.items(ctx, true, false)
			close(s.out)
		}()
		w.next(s.out)
		var got []int
		last := ""
		for range 6 { // each time a rush, while the subscriber looks away
			w.write(50)
			for len(got) < w.wrote {
				i := w.next(s.out)
				if i == nil {
					break
				}
				got, last = append(got, i.n), i.cursor
			}
		}
		var closed *transport.CloseError
		if err := <-ended; !errors.As(err, &closed) || closed.Code != transport.CloseTooSlow || closed.Reason != last {
			t.Fatalf("ended with %v; the last cursor was %s", err, last)
		}
		again, end := w.subscribe(&closed.Reason)
		defer end()
		rest, _ := w.events(again, w.wrote-len(got))
		if !slices.Equal(append(got, rest...), numbers(0, w.wrote)) {
			t.Errorf("came %v, then %v", got, rest)
		}
	})
}

// TestTicks: however often a tick falls between, and into, the wait for an
// event, no event is lost and none comes twice.
func TestTicks(t *testing.T) {
	t.Run("LIV-02_ticks_lose_no_event", func(t *testing.T) {
		w := newWorld(t, 8)
		s := &stream[item]{hub: w.Hub, feed: feed{hub: w.Hub, at: w.Head()}}
		ctx, stop := context.WithCancel(t.Context())
		tick := make(chan time.Time)
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case tick <- time.Time{}:
				case <-ctx.Done():
					return
				}
			}
		})
		wg.Go(func() {
			for range 40 {
				w.write(5)
			}
		})
		var got []int
		ticks := 0
		for len(got) < 200 {
			env, ticked1, err := s.wait(t.Context(), tick)
			switch {
			case err != nil:
				t.Fatal(err)
			case ticked1:
				ticks++
			default:
				got = append(got, env.Event.(ticked).N)
			}
		}
		stop()
		wg.Wait()
		if !slices.Equal(got, numbers(0, 200)) || ticks == 0 {
			t.Errorf("%d ticks, came %v", ticks, got)
		}
	})
}
