package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

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

// A call ends with its context, whatever the server does, and the log works
// again once the server does.
func TestDeadlines(t *testing.T) {
	server := storetest.Serve(t, embedded.Config{})
	proxy := storetest.NewProxy(t, server.Address())
	log := storetest.Connect(t, eventstore.Config{Address: proxy.Address(), CallTimeout: 1500 * time.Millisecond})
	mustAppend(t, log, "s", es.NoStream(), raw("made", 1))
	calls := map[string]func(context.Context) error{
		"Append": func(ctx context.Context) error {
			_, err := log.Append(ctx, "s", es.Any(), raw("made", 1))
			return err
		},
		"Delete":    func(ctx context.Context) error { return log.Delete(ctx, "s2", es.Any()) },
		"Tombstone": func(ctx context.Context) error { return log.Tombstone(ctx, "s3", es.Any()) },
		"KeepLast":  func(ctx context.Context) error { return log.KeepLast(ctx, "s", 5) },
		"ReadStream": func(ctx context.Context) error {
			for _, err := range log.ReadStream(ctx, "s", 0, es.Forward, 1) {
				return err
			}
			return nil
		},
		"ReadAll": func(ctx context.Context) error {
			for _, err := range log.ReadAll(ctx, 0, es.Forward, 1) {
				return err
			}
			return nil
		},
		"Subscribe from the end": func(ctx context.Context) error {
			s, err := log.Subscribe(ctx, es.FromEnd(), es.Filter{})
			if err == nil {
				s.Close()
			}
			return err
		},
	}
	proxy.SilenceAll(true)
	t.Run("silent server", func(t *testing.T) {
		for name, f := range calls {
			for own, limit := range map[string]time.Duration{"own deadline": 3 * time.Second, "context's deadline": time.Second, "cancelled": time.Second} {
				t.Run(name+", "+own, func(t *testing.T) {
					t.Parallel()
					ctx, want := t.Context(), context.DeadlineExceeded
					var cancel context.CancelFunc
					switch own {
					case "context's deadline":
						ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
						defer cancel()
					case "cancelled":
						ctx, cancel = context.WithCancel(ctx)
						time.AfterFunc(200*time.Millisecond, cancel)
						want = context.Canceled
					}
					began := time.Now()
					err := f(ctx)
					if d := time.Since(began); d > limit+2*time.Second {
						t.Errorf("it took %v", d)
					}
					if !errors.Is(err, es.ErrUnavailable) || !errors.Is(err, want) {
						t.Errorf("error: %v", err)
					}
				})
			}
		}
	})
	proxy.SilenceAll(false)
	proxy.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := log.Append(ctx, "after", es.NoStream(), raw("made", 1)); err != nil {
		t.Fatal(err)
	}
}

// A black hole between client and server is noticed within one call, which
// still succeeds over another connection.
func TestAppendGoesOnOverAnotherConnection(t *testing.T) {
	server := storetest.Serve(t, embedded.Config{})
	proxy := storetest.NewProxy(t, server.Address())
	log := storetest.Connect(t, eventstore.Config{Address: proxy.Address()})
	mustAppend(t, log, "s", es.NoStream(), raw("made", 1))
	proxy.Silence()
	mustAppend(t, log, "s", es.At(0), raw("made", 1))
	if got := collect(t, log.ReadStream(t.Context(), "s", 0, es.Forward, 10)); len(got) != 2 {
		t.Fatalf("%d events", len(got))
	}
}

// An append whose answer is lost is retried with the same ids and is there once.
func TestAppendWithUnknownOutcomeIsThereOnce(t *testing.T) {
	server := storetest.Serve(t, embedded.Config{})
	proxy := storetest.NewProxy(t, server.Address())
	log := storetest.Connect(t, eventstore.Config{Address: proxy.Address()})
	for i := range 20 {
		for name, x := range map[string]es.Expected{"any": es.Any(), "none": es.NoStream(), "rev": es.At(0)} {
			stream := fmt.Sprint(name, "-", i)
			first := 0
			if name == "rev" {
				mustAppend(t, log, stream, es.NoStream(), raw("made", 0))
				first = 1
			}
			proxy.CutNextAnswer()
			w := mustAppend(t, log, stream, x, raws("made", 3)...)
			if int(w.Revision) != first+2 {
				t.Fatalf("%s: revision %d", stream, w.Revision)
			}
			if got := collect(t, log.ReadStream(t.Context(), stream, 0, es.Forward, 10)); len(got) != first+3 {
				t.Fatalf("%s: %d events", stream, len(got))
			}
		}
	}
}

// A read that loses its connection in the middle goes on where it was.
func TestReadGoesOnOverAnotherConnection(t *testing.T) {
	server := storetest.Serve(t, embedded.Config{})
	proxy := storetest.NewProxy(t, server.Address())
	log := storetest.Connect(t, eventstore.Config{Address: proxy.Address()})
	const n = 3000
	for range n / 1000 {
		mustAppend(t, log, "s", es.Any(), raws("made", 1000)...)
	}
	reads := map[string]func(func(es.Recorded, error) bool){
		"stream forward":  log.ReadStream(t.Context(), "s", 0, es.Forward, es.Everything),
		"stream backward": log.ReadStream(t.Context(), "s", es.NoRevision, es.Backward, es.Everything),
		"all forward":     log.ReadAll(t.Context(), es.StartPosition, es.Forward, es.Everything),
		"all backward":    log.ReadAll(t.Context(), es.StartPosition, es.Backward, es.Everything),
		"all, limited":    log.ReadAll(t.Context(), es.StartPosition, es.Forward, n),
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			i := 0
			for e, err := range read {
				if err != nil {
					t.Fatal(err)
				}
				want := es.Revision(i)
				if strings.HasSuffix(name, "backward") {
					want = es.Revision(n - 1 - i)
				}
				if e.Revision != want {
					t.Fatalf("revision %d where %d was due", e.Revision, want)
				}
				if i++; i%1000 == 500 {
					proxy.Cut()
				}
			}
			if i != n {
				t.Fatalf("%d events", i)
			}
		})
	}
}

// The kinds of errors that callers tell apart.
func TestErrorKinds(t *testing.T) {
	log := storetest.Open(t)
	ctx := t.Context()
	mustAppend(t, log, "s", es.NoStream(), raws("made", 3)...)
	mustAppend(t, log, "ended", es.NoStream(), raw("made", 1))
	if err := log.Tombstone(ctx, "ended", es.At(0)); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, log, "deleted", es.NoStream(), raw("made", 1))
	if err := log.Delete(ctx, "deleted", es.At(0)); err != nil {
		t.Fatal(err)
	}
	big := raw("made", 1)
	big.Data = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	huge := raw("made", 1)
	huge.Data = []byte(`"` + strings.Repeat("x", 20<<20) + `"`)
	known := raw("made", 1)
	mustAppend(t, log, "known", es.NoStream(), known)
	readErr := func(stream string) error {
		for _, err := range log.ReadStream(ctx, stream, 0, es.Forward, 1) {
			return err
		}
		return nil
	}
	appendErr := func(stream string, x es.Expected, events ...es.Raw) error {
		_, err := log.Append(ctx, stream, x, events...)
		return err
	}
	for name, tc := range map[string]struct{ got, want error }{
		"append, wrong revision":      {appendErr("s", es.At(7), raw("made", 1)), es.ErrWrongRevision},
		"append, stream is there":     {appendErr("s", es.NoStream(), raw("made", 1)), es.ErrWrongRevision},
		"append, stream is not there": {appendErr("missing", es.StreamExists(), raw("made", 1)), es.ErrWrongRevision},
		"E13 append, partly known":    {appendErr("known", es.Any(), known, raw("made", 2)), es.ErrWrongRevision},
		"append, tombstoned":          {appendErr("ended", es.Any(), raw("made", 1)), es.ErrStreamDeleted},
		"append, too large":           {appendErr("s", es.Any(), big), es.ErrTooLarge},
		"append, far too large":       {appendErr("s", es.Any(), huge), es.ErrTooLarge},
		"E12 append, used id":         {appendErr("known", es.At(0), known), nil},
		"read, missing":               {readErr("missing"), es.ErrStreamNotFound},
		"read, deleted":               {readErr("deleted"), es.ErrStreamNotFound},
		"read, tombstoned":            {readErr("ended"), es.ErrStreamDeleted},
		"delete, wrong revision":      {log.Delete(ctx, "s", es.At(7)), es.ErrWrongRevision},
		"delete, tombstoned":          {log.Delete(ctx, "ended", es.Any()), es.ErrStreamDeleted},
		"tombstone, wrong revision":   {log.Tombstone(ctx, "s", es.At(7)), es.ErrWrongRevision},
		"tombstone, tombstoned":       {log.Tombstone(ctx, "ended", es.Any()), es.ErrStreamDeleted},
	} {
		if !errors.Is(tc.got, tc.want) {
			t.Errorf("%s: %v", name, tc.got)
		}
	}
	for name, err := range map[string]error{
		"no id":   appendErr("s", es.Any(), es.Raw{Type: "made"}),
		"no type": appendErr("s", es.Any(), es.Raw{ID: uuid.New()}),
		"no name": appendErr("", es.Any(), raw("made", 1)),
		"keep 0":  log.KeepLast(ctx, "s", 0),
	} {
		if err == nil || errors.Is(err, es.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeepLast(t *testing.T) {
	log := storetest.Open(t)
	ctx := t.Context()
	mustAppend(t, log, "s", es.NoStream(), raws("made", 10)...)
	mustAppend(t, log, "$$s", es.NoStream(), es.Raw{ID: uuid.New(), Type: "$metadata", Data: []byte(`{"$maxCount":9,"color":"red"}`)})
	for range 2 { // the second time changes nothing
		if err := log.KeepLast(ctx, "s", 3); err != nil {
			t.Fatal(err)
		}
	}
	got := collect(t, log.ReadStream(ctx, "s", 0, es.Forward, es.Everything))
	if len(got) != 3 || got[0].Revision != 7 {
		t.Fatalf("%+v", got)
	}
	meta := collect(t, log.ReadStream(ctx, "$$s", es.NoRevision, es.Backward, 1))
	if meta[0].Revision != 1 || string(meta[0].Data) != `{"$maxCount":3,"color":"red"}` {
		t.Fatalf("%d %s", meta[0].Revision, meta[0].Data)
	}
}

// Opening fails in time, and with the reason, where nobody answers.
func TestOpenWithoutServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := eventstore.Open(ctx, eventstore.Config{Address: "unix:" + storetest.Socket(t)})
	if !errors.Is(err, es.ErrUnavailable) || !strings.Contains(err.Error(), "no such file") {
		t.Fatal(err)
	}
}

// Limits count what the caller gets, not the store's own events in between.
func TestReadAllLimit(t *testing.T) {
	log := storetest.Open(t)
	ctx := t.Context()
	for i := range 20 {
		stream := fmt.Sprint("s-", i)
		mustAppend(t, log, stream, es.NoStream(), raw("made", i))
		if err := log.KeepLast(ctx, stream, 5); err != nil {
			t.Fatal(err)
		}
	}
	all := collect(t, log.ReadAll(ctx, es.StartPosition, es.Forward, es.Everything))
	if len(all) != 20 {
		t.Fatalf("%d events", len(all))
	}
	for limit := range 25 {
		want := min(limit, 20)
		if got := collect(t, log.ReadAll(ctx, es.StartPosition, es.Forward, limit)); len(got) != want {
			t.Errorf("forward %d: %d", limit, len(got))
		}
		if got := collect(t, log.ReadAll(ctx, es.StartPosition, es.Backward, limit)); len(got) != want {
			t.Errorf("backward %d: %d", limit, len(got))
		}
	}
	behind := collect(t, log.ReadAll(ctx, all[4].Position, es.Forward, 3))
	before := collect(t, log.ReadAll(ctx, all[4].Position, es.Backward, 3))
	if len(behind) != 3 || behind[0].ID != all[5].ID || len(before) != 3 || before[0].ID != all[3].ID {
		t.Errorf("behind %v, before %v", behind, before)
	}
}

// Zero events check the expectation and tell where the stream stands.
func TestAppendNothing(t *testing.T) {
	log := storetest.Open(t)
	if w := mustAppend(t, log, "s", es.NoStream()); w.Revision != es.NoRevision || w.Position != es.StartPosition {
		t.Errorf("%+v", w)
	}
	want := mustAppend(t, log, "s", es.NoStream(), raw("made", 1))
	if w := mustAppend(t, log, "s", es.At(0)); w != want {
		t.Errorf("%+v, want %+v", w, want)
	}
}
