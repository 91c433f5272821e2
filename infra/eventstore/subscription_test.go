package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/eventstore/storetest"
)

// receiver takes a subscription's messages and checks what holds for all of
// them: positions of events and of checkpoints strictly increase.
type receiver struct {
	t      testing.TB
	sub    es.Subscription
	events []es.Recorded
	seen   es.Position
	live   int
}

func receive(t testing.TB, log *eventstore.Log, start es.Start, filter es.Filter) *receiver {
	t.Helper()
	sub, err := log.Subscribe(t.Context(), start, filter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Close)
	return &receiver{t: t, sub: sub}
}

// until takes messages until the condition holds.
func (r *receiver) until(within time.Duration, done func() bool) {
	r.t.Helper()
	timeout := time.After(within)
	for !done() {
		select {
		case m, ok := <-r.sub.Messages():
			if !ok {
				r.t.Fatalf("the subscription ended: %v", r.sub.Err())
			}
			r.take(m)
		case <-timeout:
			r.t.Fatalf("after %v: %d events, seen %d, live %d", within, len(r.events), r.seen, r.live)
		}
	}
}

func (r *receiver) take(m es.Message) {
	r.t.Helper()
	if m.Kind == es.MessageCaughtUp {
		r.live++
		return
	}
	if m.Position <= r.seen {
		r.t.Fatalf("position %d after %d", m.Position, r.seen)
	}
	r.seen = m.Position
	if m.Kind == es.MessageEvent {
		if m.Event.Position != m.Position {
			r.t.Fatalf("the message is at %d, its event at %d", m.Position, m.Event.Position)
		}
		r.events = append(r.events, m.Event)
	}
}

func (r *receiver) count(n int) func() bool { return func() bool { return len(r.events) >= n } }
func (r *receiver) isLive() bool            { return r.live > 0 }

func mustAppend(t testing.TB, log es.Log, stream string, x es.Expected, events ...es.Raw) es.Written {
	t.Helper()
	w, err := log.Append(t.Context(), stream, x, events...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// same checks that the events are those of the log, all of them, in its order.
func same(t testing.TB, log es.Log, got []es.Recorded) {
	t.Helper()
	i := 0
	for e, err := range log.ReadAll(t.Context(), es.StartPosition, es.Forward, es.Everything) {
		if err != nil {
			t.Fatal(err)
		}
		if i >= len(got) || got[i].ID != e.ID || got[i].Position != e.Position {
			t.Fatalf("event %d of the log is missing or out of its order", i)
		}
		i++
	}
	if i != len(got) {
		t.Fatalf("%d events were delivered, the log has %d", len(got), i)
	}
}

// TestSubscription has the failures of failures.md that the wrapper mends.
func TestSubscription(t *testing.T) {
	t.Run("E1 a server that stops sending without closing", func(t *testing.T) {
		for name, silentAfter := range map[string]time.Duration{"short": time.Second, "default settings": 0} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if silentAfter == 0 && testing.Short() {
					t.Skip("takes 13 s")
				}
				server := storetest.Serve(t, embedded.Config{})
				direct := storetest.Connect(t, eventstore.Config{Address: server.Address()})
				proxy := storetest.NewProxy(t, server.Address())
				log := storetest.Connect(t, eventstore.Config{Address: proxy.Address(), SilentAfter: silentAfter})
				mustAppend(t, direct, "s", es.NoStream(), raws("made", 3)...)
				r := receive(t, log, es.FromStart(), es.Filter{})
				r.until(5*time.Second, r.count(3))
				r.until(5*time.Second, r.isLive)
				proxy.Silence()
				mustAppend(t, direct, "s", es.Any(), raws("made", 5)...)
				r.until(15*time.Second, r.count(8))
				same(t, direct, r.events)
			})
		}
	})
	t.Run("E2 burst of 10,000 events to a slow live subscriber", func(t *testing.T) {
		log := storetest.Open(t)
		r := receive(t, log, es.FromStart(), es.Filter{})
		r.until(5*time.Second, r.isLive)
		for i := range 100 {
			mustAppend(t, log, fmt.Sprint("s-", i%9), es.Any(), raws("made", 100)...)
		}
		for len(r.events) < 10_000 {
			before := len(r.events)
			r.until(10*time.Second, r.count(before+1))
			if before%500 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		same(t, log, r.events)
	})
	t.Run("E7 unmatched events", func(t *testing.T) {
		n := 20_000
		if v, err := strconv.Atoi(os.Getenv("TALLYARD_TEST_UNMATCHED")); err == nil {
			n = v
		}
		log := storetest.Open(t)
		var last es.Written
		for range n / 1000 {
			last = mustAppend(t, log, "other", es.Any(), raws("made", 1000)...)
		}
		filter := es.Filter{StreamPrefixes: []string{"mine-"}}
		r := receive(t, log, es.FromStart(), filter)
		r.until(30*time.Second, func() bool { return r.seen == last.Position }) // lag 0
		r.sub.Close()
		// A restart from the checkpoint rescans nothing: caught up, no other message.
		again := receive(t, log, es.After(r.seen), filter)
		again.until(5*time.Second, again.isLive)
		if again.seen != 0 || len(again.events) != 0 {
			t.Fatalf("seen %d, %d events", again.seen, len(again.events))
		}
	})
	t.Run("E8 64 writers", func(t *testing.T) {
		const writers = 64
		each := 25
		if testing.Short() {
			each = 5
		}
		log := storetest.Open(t)
		r := receive(t, log, es.FromStart(), es.Filter{})
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					if _, err := log.Append(t.Context(), fmt.Sprint("s-", w), es.At(es.Revision(3*i-1)), raws("made", 3)...); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		r.until(60*time.Second, r.count(writers*each*3))
		wg.Wait()
		same(t, log, r.events)
	})
	t.Run("E9 no checkpoint delivers the first event, a checkpoint is not repeated", func(t *testing.T) {
		log := storetest.Open(t)
		first := mustAppend(t, log, "s", es.NoStream(), raw("made", 1))
		mustAppend(t, log, "s", es.At(0), raw("made", 2))
		for start, want := range map[es.Start][]es.Revision{
			es.FromStart():               {0, 1},
			es.After(es.StartPosition):   {0, 1},
			es.After(first.Position):     {1},
			es.After(first.Position - 1): {0, 1},
		} {
			r := receive(t, log, start, es.Filter{})
			r.until(5*time.Second, r.isLive)
			var got []es.Revision
			for _, e := range r.events {
				got = append(got, e.Revision)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v: %v, want %v", start, got, want)
			}
		}
	})
	t.Run("E10 position and revision can't be mixed up", func(t *testing.T) {
		p, r := reflect.TypeFor[es.Position](), reflect.TypeFor[es.Revision]()
		if p.AssignableTo(r) || r.AssignableTo(p) {
			t.Fatal("one is assignable to the other")
		}
	})
	t.Run("E19 an idle subscription still delivers", func(t *testing.T) {
		// Ten minutes can't be waited for, but TALLYARD_TEST_IDLE=10m does.
		// What cuts idle subscriptions in the field is a watchdog that takes
		// idle for dead, made to look often here, and a server that finds the
		// client's pings, one every 10 s, too many, which shows after 31 s.
		idle := 2 * time.Second
		if d, err := time.ParseDuration(os.Getenv("TALLYARD_TEST_IDLE")); err == nil {
			idle = d
		}
		server := storetest.Serve(t, embedded.Config{})
		proxy := storetest.NewProxy(t, server.Address())
		log := storetest.Connect(t, eventstore.Config{Address: proxy.Address(), SilentAfter: 50 * time.Millisecond})
		r := receive(t, log, es.FromStart(), es.Filter{})
		r.until(5*time.Second, r.isLive)
		time.Sleep(idle)
		mustAppend(t, log, "s", es.NoStream(), raw("made", 1))
		r.until(5*time.Second, r.count(1))
		if r.live != 1 || proxy.Accepted() != 1 {
			t.Errorf("the idle subscription was reopened: live %d times over %d connections", r.live, proxy.Accepted())
		}
	})
	t.Run("E20 20 server restarts", func(t *testing.T) {
		restarts := 20
		if testing.Short() {
			restarts = 5
		}
		cfg := embedded.Config{Dir: t.TempDir(), Socket: storetest.Socket(t), DiskReserve: -1}
		ctx := t.Context()
		server, err := embedded.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = server.Close(context.WithoutCancel(ctx)) }()
		log := storetest.Connect(t, eventstore.Config{Address: server.Address()})
		r := receive(t, log, es.FromStart(), es.Filter{})
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := log.Append(ctx, fmt.Sprint("s-", w), es.At(es.Revision(i-1)), raw("made", i)); err != nil {
						t.Errorf("append over a restart: %v", err)
						return
					}
				}
			})
		}
		for range restarts {
			r.until(15*time.Second, r.count(len(r.events)+20))
			if err := server.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if server, err = embedded.Open(ctx, cfg); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		wg.Wait()
		n := len(collect(t, log.ReadAll(ctx, es.StartPosition, es.Forward, es.Everything)))
		r.until(15*time.Second, r.count(n))
		same(t, log, r.events)
	})
	t.Run("from the end, over a connection that breaks at once", func(t *testing.T) {
		server := storetest.Serve(t, embedded.Config{})
		direct := storetest.Connect(t, eventstore.Config{Address: server.Address()})
		proxy := storetest.NewProxy(t, server.Address())
		log := storetest.Connect(t, eventstore.Config{Address: proxy.Address()})
		mustAppend(t, direct, "s", es.NoStream(), raws("made", 2)...)
		r := receive(t, log, es.FromEnd(), es.Filter{})
		proxy.Cut()
		mustAppend(t, direct, "s", es.Any(), raws("made", 2)...)
		r.until(10*time.Second, r.count(2))
		if r.events[0].Revision != 2 {
			t.Fatalf("%+v", r.events[0])
		}
	})
	t.Run("the store's own events are left out", func(t *testing.T) {
		log := storetest.Open(t)
		mustAppend(t, log, "s", es.NoStream(), raw("made", 1))
		if err := log.KeepLast(t.Context(), "s", 5); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, log, "t", es.NoStream(), raw("made", 1))
		if err := log.Tombstone(t.Context(), "t", es.Any()); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, log, "u", es.NoStream(), raw("made", 1))
		r := receive(t, log, es.FromStart(), es.Filter{})
		r.until(5*time.Second, r.isLive)
		if len(r.events) != 3 {
			t.Fatalf("%d events", len(r.events))
		}
		same(t, log, r.events)
	})
	t.Run("filters", func(t *testing.T) {
		log := storetest.Open(t)
		for _, s := range []string{"order-1", "user-1", "order-2"} {
			mustAppend(t, log, s, es.NoStream(), raw(s+".made", 1))
		}
		for _, f := range []es.Filter{{StreamPrefixes: []string{"order-"}}, {TypePrefixes: []string{"order-1.", "order-2."}}} {
			r := receive(t, log, es.FromStart(), f)
			r.until(5*time.Second, r.isLive)
			if len(r.events) != 2 {
				t.Errorf("%+v: %d events", f, len(r.events))
			}
		}
		if _, err := log.Subscribe(t.Context(), es.FromStart(), es.Filter{StreamPrefixes: []string{"a"}, TypePrefixes: []string{"b"}}); err == nil {
			t.Error("a filter of streams and types was taken")
		}
	})
	t.Run("ends by close, by its context and with the log", func(t *testing.T) {
		server := storetest.Serve(t, embedded.Config{})
		log, err := eventstore.Open(t.Context(), eventstore.Config{Address: server.Address()})
		if err != nil {
			t.Fatal(err)
		}
		drain := func(s es.Subscription) error {
			for range s.Messages() {
			}
			return s.Err()
		}
		mustAppend(t, log, "s", es.NoStream(), raws("made", 500)...) // more than anybody takes
		closed, _ := log.Subscribe(t.Context(), es.FromStart(), es.Filter{})
		closed.Close()
		if err := drain(closed); err != nil {
			t.Errorf("closed: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancelled, _ := log.Subscribe(ctx, es.FromStart(), es.Filter{})
		cancel()
		if err := drain(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		orphan, _ := log.Subscribe(t.Context(), es.FromStart(), es.Filter{})
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if err := drain(orphan); !errors.Is(err, es.ErrUnavailable) {
			t.Errorf("closed with the log: %v", err)
		}
		if _, err := log.Subscribe(t.Context(), es.FromStart(), es.Filter{}); !errors.Is(err, es.ErrUnavailable) {
			t.Errorf("after the log was closed: %v", err)
		}
		if _, err := log.Append(t.Context(), "s", es.Any(), raw("made", 1)); !errors.Is(err, es.ErrUnavailable) {
			t.Errorf("after the log was closed: %v", err)
		}
	})
}
