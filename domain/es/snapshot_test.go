package es_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
)

// table keeps snapshots the way that the table does.
type table struct {
	mu    sync.Mutex
	rows  map[string]row
	saved int
	err   error
}

type row struct {
	rev  es.Revision
	fold int
	data []byte
}

func (s *table) Load(_ context.Context, stream string, fold int) (es.Revision, []byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[stream]
	return r.rev, r.data, ok && r.fold == fold, s.err
}

func (s *table) Save(_ context.Context, stream string, rev es.Revision, fold int, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[stream], s.saved = row{rev, fold, data}, s.saved+1
	return s.err
}

// reads counts the events that are read from streams.
type reads struct {
	es.Log
	n int
}

func (r *reads) ReadStream(ctx context.Context, stream string, from es.Revision, dir es.Direction, limit int) iter.Seq2[es.Recorded, error] {
	return func(yield func(es.Recorded, error) bool) {
		for rec, err := range r.Log.ReadStream(ctx, stream, from, dir, limit) {
			if err == nil {
				r.n++
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

func long(t testing.TB, rt *es.Runtime, id uuid.UUID, n int) {
	t.Helper()
	must[es.Outcome[counter]](t)(es.Execute(t.Context(), rt, command(""), counters, id, func(counter) ([]es.Event, error) {
		list := make([]es.Event, n)
		for i := range list {
			list[i] = added{i}
		}
		return list, nil
	}))
}

func TestSnapshots(t *testing.T) {
	setup := func(t *testing.T) (*es.Runtime, *table, *reads, uuid.UUID) {
		rt, s := alone(t), &table{rows: map[string]row{}}
		r := &reads{Log: rt.Log}
		rt.Snapshots, rt.Log = s, r
		return rt, s, r, uuid.New()
	}
	load := func(t *testing.T, rt *es.Runtime, a es.Aggregate[counter], id uuid.UUID) es.Loaded[counter] {
		t.Helper()
		return must[es.Loaded[counter]](t)(es.Load(t.Context(), rt, a, acme, id))
	}
	t.Run("every_200_events_and_read_from_there", func(t *testing.T) {
		rt, s, r, id := setup(t)
		long(t, rt, id, es.SnapshotEvery-1)
		if s.saved != 0 {
			t.Fatal("saved too early")
		}
		long(t, rt, id, 1)
		long(t, rt, id, 1)
		if s.saved != 1 {
			t.Fatalf("saved %d times", s.saved)
		}
		r.n = 0
		if l := load(t, rt, counters, id); l.State.Events != es.SnapshotEvery+1 || l.Revision != es.SnapshotEvery || r.n > 2 {
			t.Errorf("%d events of %d read: %+v", r.n, l.Revision+1, l.State.Events)
		}
		long(t, rt, id, es.SnapshotEvery)
		if s.saved != 2 {
			t.Errorf("saved %d times", s.saved)
		}
	})
	t.Run("void_by_another_fold", func(t *testing.T) {
		rt, _, r, id := setup(t)
		long(t, rt, id, es.SnapshotEvery)
		twice := counters
		twice.Fold, twice.Evolve = 2, func(s counter, e es.Envelope) counter { s.Sum += 2; return s }
		r.n = 0
		if l := load(t, rt, twice, id); l.State.Sum != 2*es.SnapshotEvery || r.n != es.SnapshotEvery {
			t.Errorf("%d read: %+v", r.n, l.State.Sum)
		}
	})
	for name, spoil := range map[string]func(*table, string){
		"unreadable": func(s *table, k string) { r := s.rows[k]; r.data = []byte("nonsense"); s.rows[k] = r },
		"away":       func(s *table, _ string) { s.err = errCrash },
		"of_another_history": func(s *table, k string) {
			r := s.rows[k]
			r.data = []byte(`{"state":{"sum":-1},"event":"` + uuid.NewString() + `"}`)
			s.rows[k] = r
		},
		"ahead_of_a_log_from_a_backup": func(s *table, k string) { r := s.rows[k]; r.rev += 100; s.rows[k] = r },
	} {
		t.Run("left_aside_when_"+name, func(t *testing.T) {
			rt, s, _, id := setup(t)
			long(t, rt, id, es.SnapshotEvery)
			spoil(s, counters.Stream(acme, id).String())
			if l := load(t, rt, counters, id); l.State.Events != es.SnapshotEvery || l.Revision != es.SnapshotEvery-1 {
				t.Errorf("%+v at %d", l.State.Events, l.Revision)
			}
			if _, err := es.Execute(t.Context(), rt, command(""), counters, id, add(1)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("LIV-02_the_past_is_folded_from_the_log", func(t *testing.T) {
		rt, _, _, id := setup(t)
		long(t, rt, id, es.SnapshotEvery)
		at := load(t, rt, counters, id).Position
		long(t, rt, id, 5)
		if l := must[es.Loaded[counter]](t)(es.LoadUntil(t.Context(), rt, counters, acme, id, at)); l.State.Events != es.SnapshotEvery {
			t.Errorf("at the position %d", l.State.Events)
		}
		if l := must[es.Loaded[counter]](t)(es.LoadRevision(t.Context(), rt, counters, acme, id, 9)); l.State.Events != 10 {
			t.Errorf("at the revision %d", l.State.Events)
		}
	})
}

// TestLoadsAreEqual: however a stream is loaded, its state is that of the full
// fold: plain, from snapshots, from the cache, in two processes at once.
func TestLoadsAreEqual(t *testing.T) {
	log := storetest.Open(t)
	cached := counters
	cached.Cached = true
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same histories each time
	for range 15 {
		plain, snap, other := process(t, log), process(t, log), process(t, log)
		snap.Snapshots = &table{rows: map[string]row{}}
		id := uuid.New()
		for range 1 + random.IntN(6) {
			long(t, []*es.Runtime{plain, snap, other}[random.IntN(3)], id, []int{1, 3, 199, 200, 201}[random.IntN(5)])
			var got []string
			for _, l := range []es.Loaded[counter]{
				must[es.Loaded[counter]](t)(es.Load(t.Context(), plain, counters, acme, id)),
				must[es.Loaded[counter]](t)(es.Load(t.Context(), snap, counters, acme, id)),
				must[es.Loaded[counter]](t)(es.Load(t.Context(), other, cached, acme, id)),
			} {
				got = append(got, fmt.Sprint(l.State, l.Revision, l.Position))
			}
			if got[0] != got[1] || got[0] != got[2] {
				t.Fatalf("plain    %.200s\nsnapshot %.200s\ncached   %.200s", got[0], got[1], got[2])
			}
		}
	}
}
