package live

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

func TestSizeOf(t *testing.T) {
	type inner struct{ Text string }
	type outer struct {
		N    int
		When time.Time
		Ref  *inner
		List []inner
		Any  any
		Map  map[string][]byte
		Own  [2]string
	}
	text := strings.Repeat("x", 1000)
	empty := sizeOf(outer{})
	for name, c := range map[string]struct {
		v    outer
		adds int
	}{
		"nothing":     {outer{When: time.Now()}, 0},
		"a pointer":   {outer{Ref: &inner{text}}, 1000 + 16},
		"a list":      {outer{List: []inner{{text}, {text}}}, 2 * (1000 + 16)},
		"its room":    {outer{List: make([]inner, 0, 10)}, 160},
		"an any":      {outer{Any: inner{text}}, 1000 + 16},
		"a map":       {outer{Map: map[string][]byte{"key": make([]byte, 1000)}}, 16 + 24 + perEntry + 3 + 1000},
		"own texts":   {outer{Own: [2]string{text, text}}, 2000},
		"a pointer 2": {outer{Any: &outer{Ref: &inner{text}}}, 8 + empty + 1000 + 16},
	} {
		if got := sizeOf(c.v) - empty; got != c.adds {
			t.Errorf("%s adds %d, not %d", name, got, c.adds)
		}
	}
	type ring struct{ Next *ring }
	r := &ring{}
	r.Next = r
	if n := sizeOf(r); n > 1000 { // it ends
		t.Error(n)
	}
	if sizeOf(nil) != 0 {
		t.Error("nothing holds something")
	}
}

// TestHeld has a subscriber that does not read while large events come.
func TestHeld(t *testing.T) {
	const large, most = 64 << 10, 1 << 20
	w := newWorld(t, 0)
	w.mu.Lock()
	w.keepBytes = most
	w.mu.Unlock()
	src := w.source()
	src.Snapshot = func(_ context.Context, _ access.Grants, _ es.Position, cursor string) (*item, error) {
		return &item{"snapshot", 0, cursor}, nil
	}
	s := &stream[item]{hub: w.Hub, src: src, tenant: w.tenant, out: make(chan *item), feed: feed{hub: w.Hub, at: w.Head()}}
	ended := make(chan error, 1)
	go func() {
		ended <- s.items(w.ctx, true, false)
		close(s.out)
	}()
	w.chime(10, large) // while it looks at the snapshot
	first := w.next(s.out)
	queued := s.feed.queue.bytes.Load
	for deadline := time.Now().Add(30 * time.Second); queued() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it takes nothing")
		}
	}
	var highest int
	for range 19 {
		w.chime(10, large)
		events, _ := w.Held()
		highest = max(highest, events)
	}
	t.Run("LIV-04_a_reader_that_does_not_read_large_events_holds_little", func(t *testing.T) {
		if highest > most || highest < large {
			t.Errorf("%d bytes are kept for all, at most %d were allowed", highest, most)
		}
		if n := queued(); n == 0 || n > batchBytes+large {
			t.Errorf("%d bytes are kept for one", n)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		sum := 0
		for _, k := range w.kept {
			sum += sizeOf(k.Envelope)
		}
		if w.bytes != sum {
			t.Errorf("counted %d bytes, there are %d", w.bytes, sum)
		}
	})
	t.Run("LIV-04_it_misses_nothing", func(t *testing.T) {
		got, _ := w.events(s.out, 200)
		if !slices.Equal(got, numbers(0, 200)) {
			t.Errorf("came %v", got)
		}
		if n := s.feed.queue.bytes.Load(); n != 0 {
			t.Errorf("%d bytes are held of what was delivered", n)
		}
	})
	t.Run("LIV-04_a_replay_holds_no_more", func(t *testing.T) {
		l, _, bad := w.Sealer.OpenLive(w.tenant, first.cursor, w.Store)
		if bad != nil {
			t.Fatal(bad)
		}
		f := feed{hub: w.Hub, at: l.Position}
		for i := range 200 {
			env, err := f.next(t.Context())
			if err != nil || env.Event.(chimed).N != i {
				t.Fatalf("event %d: %v %v", i, env.Event, err)
			}
			if n := f.queue.bytes.Load(); n > batchBytes+large {
				t.Fatalf("%d bytes are taken at once", n)
			}
		}
	})
}

func TestFolds(t *testing.T) {
	f := folds{most: 10_000}
	key := func(i int) foldKey { return foldKey{es.StreamOf("x", uuid.UUID{}, uuid.UUID{}), es.Revision(i)} }
	state := func(bytes int) string { return strings.Repeat("x", bytes) }
	t.Run("LIV-04_states_are_bounded_by_bytes", func(t *testing.T) {
		for i := range 100 {
			f.put(key(i), state(1000))
			if f.held() > 10_000 {
				t.Fatalf("%d bytes after %d states", f.held(), i)
			}
		}
		if _, ok := f.get(key(99)); !ok {
			t.Error("the newest is gone")
		}
		if _, ok := f.get(key(0)); ok {
			t.Error("the oldest is there")
		}
	})
	t.Run("LIV-04_one_that_is_too_large_is_not_kept", func(t *testing.T) {
		if f.put(key(1000), state(20_000)); f.held() != 0 || len(f.items) != 0 {
			t.Errorf("%d bytes, %d states", f.held(), len(f.items))
		}
	})
}
