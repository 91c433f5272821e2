package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/projections/runner"
)

func TestRowsFollowEvents(t *testing.T) {
	f := newFixture(t)
	before := uuid.New()
	f.append(before, added{"from before the start"}, changed{3})
	r := f.start()
	f.ready(r)
	if n := one[int](t, r.reader, `SELECT total FROM {g}.things WHERE id = $1`, before); n != 3 {
		t.Fatalf("total %d, want 3: the first event must be delivered", n)
	}
	a, b := uuid.New(), uuid.New()
	f.append(a, added{"a"}, changed{1}, changed{2})
	f.append(b, added{"b"})
	f.append(b, removed{})
	f.caughtUp(r)
	if n := one[int](t, r.reader, `SELECT total FROM {g}.things WHERE id = $1`, a); n != 3 {
		t.Fatalf("total %d, want 3", n)
	}
	if n := one[int](t, r.reader, `SELECT count(*) FROM {g}.things`); n != 2 {
		t.Fatalf("%d things, want 2", n)
	}
	if n := one[int](t, r.reader, `SELECT count(*) FROM {g}.entries`); n != 7 {
		t.Fatalf("%d entries, want 7", n)
	}
	f.equal(r)
}

func TestE9CheckpointIsNeitherRepeatedNorPassedOver(t *testing.T) {
	f := newFixture(t)
	id := uuid.New()
	f.append(id, added{"first"})
	for range 4 {
		r := f.start()
		f.ready(r)
		f.caughtUp(r)
		f.append(id, changed{1})
		f.caughtUp(r)
		r.stop()
	}
	r := f.start()
	f.ready(r)
	if n := one[int](t, r.reader, `SELECT changes FROM {g}.things WHERE id = $1`, id); n != 4 {
		t.Fatalf("%d changes, want 4: each exactly once over restarts", n)
	}
}

func TestE7IdleAndUnmatchedEventsMoveTheCheckpoint(t *testing.T) {
	f := newFixture(t)
	f.append(uuid.New(), added{"a"})
	r := f.start()
	f.ready(r)
	f.caughtUp(r)
	for range 50 {
		w, err := f.log.Append(t.Context(), "unmatched-"+es.PlatformTenant.String()+"."+uuid.NewString(), es.NoStream(),
			encode(t, f.registry, changed{1}, f.clock))
		if err != nil {
			t.Fatal(err)
		}
		f.head = w.Position
	}
	eventually(t, 5*time.Second, func() error {
		s, err := r.Status(t.Context())
		if err != nil {
			return err
		}
		for _, p := range s.Projections {
			if p.Lag.Events != 0 || p.Lag.Seconds != 0 || p.Position < f.head {
				return expect(false, "%s lags %+v at %d, the head is %d", p.Name, p.Lag, p.Position, f.head)
			}
		}
		return expect(len(s.Projections) == 3, "%d projections", len(s.Projections))
	})
	r.stop()
	counting := &countingLog{Log: f.log}
	f.log = counting
	r = f.start()
	f.ready(r)
	f.append(uuid.New(), added{"b"})
	f.caughtUp(r)
	if n := counting.events.Load(); n != 1 {
		t.Fatalf("the restart read %d events, want only the new one", n)
	}
}

func TestE11AnotherStoreIsRefusedAndARebuildOffered(t *testing.T) {
	f := newFixture(t)
	f.append(uuid.New(), added{"a"})
	r := f.start()
	f.ready(r)
	r.stop()
	cfg := f.config()
	cfg.Store = uuid.New()
	other, err := runner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = other.Start(t.Context())
	if !errors.Is(err, runner.ErrOtherStore) || !strings.Contains(err.Error(), "tallyard projections rebuild --accept-new-store") {
		t.Fatalf("start says %v", err)
	}
	if n, err := runner.AcceptStore(t.Context(), cfg); n != 1 || err != nil {
		t.Fatalf("%d generations dropped, %v", n, err)
	}
	f.store = cfg.Store
	r = f.start()
	f.ready(r)
	f.equal(r)
}

func TestE11StorePutBackToAnEarlierStateIsRefused(t *testing.T) {
	f := newFixture(t)
	f.append(uuid.New(), added{"a"})
	r := f.start()
	f.ready(r)
	f.caughtUp(r)
	r.stop()
	// The same installation, its last event gone: as a restored backup is.
	if _, err := f.db.Exec(t.Context(), `UPDATE tallyard.checkpoints SET event_id = $1`, uuid.New()); err != nil {
		t.Fatal(err)
	}
	again, err := runner.New(f.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Start(t.Context()); !errors.Is(err, runner.ErrOtherStore) {
		t.Fatalf("start says %v", err)
	}
	if n, err := runner.AcceptStore(t.Context(), f.config()); n != 1 || err != nil {
		t.Fatalf("%d generations dropped, %v", n, err)
	}
	f.ready(f.start())
}

func TestUnknownEventHaltsOnlyItsReaders(t *testing.T) {
	f := newFixture(t)
	list := projections(f.faults)
	other := runner.Projection{
		Name: "others", Version: 1, Schema: `CREATE TABLE others (id text PRIMARY KEY)`, Categories: []string{"other"},
		On: map[string]runner.Handler{"thing.added.v1": func(w *runner.Writer, env es.Envelope) error {
			w.Insert("others", "id", env.Stream.Key)
			return nil
		}},
	}
	f.use(append(list, other)...)
	id := uuid.New()
	f.append(id, added{"a"})
	r := f.start()
	f.ready(r)
	f.foreign(id, "thing.noted.v1")
	f.append(id, changed{1})
	o := es.StreamOf("other", es.PlatformTenant, uuid.New())
	w, err := f.log.Append(t.Context(), o.String(), es.NoStream(), encode(t, f.registry, added{"o"}, f.clock))
	if err != nil {
		t.Fatal(err)
	}
	f.head = w.Position
	f.caughtUp(r, "others", runner.TimelineName)
	eventually(t, 5*time.Second, func() error {
		s, err := r.Status(t.Context())
		if err != nil {
			return err
		}
		halted := map[string]string{}
		for _, p := range s.Projections {
			if p.Halted != "" {
				halted[p.Name] = p.Halted
			}
		}
		return expect(len(halted) == 2 && strings.Contains(halted["things"], "thing.noted.v1") &&
			strings.Contains(s.Text(), "HALTED: unknown event type"), "halted: %v", halted)
	})
	eventually(t, 5*time.Second, func() error {
		halted := 0
		for _, g := range r.Gauges() {
			if g.Halted {
				halted++
			}
		}
		return expect(halted == 2, "%d halted in the metrics", halted)
	})
	if n := one[int](t, r.reader, `SELECT changes FROM {g}.things WHERE id = $1`, id); n != 0 {
		t.Fatalf("%d changes: what lies behind the unknown event was projected", n)
	}
	if n := one[int](t, r.reader, `SELECT count(*) FROM {g}.others`); n != 1 {
		t.Fatal("the projection that has nothing to do with it stands still too")
	}
	r.stop()
	// A program that knows the event goes on where the old one stopped; what was
	// ahead meets events that it has already among new ones.
	w, err = f.log.Append(t.Context(), o.String(), es.At(w.Revision), encode(t, f.registry, changed{1}, f.clock))
	if err != nil {
		t.Fatal(err)
	}
	f.head = w.Position
	f.registry = registry(t, thingTypes, newerTypes)
	r = f.start()
	f.caughtUp(r)
	if n := one[int](t, r.reader, `SELECT changes FROM {g}.things WHERE id = $1`, id); n != 1 {
		t.Fatalf("%d changes, want 1", n)
	}
	if s, err := r.Status(t.Context()); err != nil || len(s.Parked) > 0 {
		t.Fatalf("projections that were ahead got events again: %+v, %v", s.Parked, err)
	}
	f.equal(r)
}

func TestWaitForEndsStale(t *testing.T) {
	f := newFixture(t)
	r := f.start()
	f.ready(r)
	start := time.Now()
	err := r.reader.WaitFor(t.Context(), f.head+1_000_000, "things")
	if !errors.Is(err, runner.ErrStale) || time.Since(start) < runner.WaitLimit {
		t.Fatalf("%v after %v", err, time.Since(start))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.reader.WaitFor(ctx, f.head+1_000_000, "things"); !errors.Is(err, context.Canceled) {
		t.Fatalf("a caller that left gets %v", err)
	}
	if err := r.reader.WaitFor(t.Context(), 1, "nothing"); err == nil {
		t.Fatal("a projection that does not exist was waited for")
	}
	if err := r.reader.WaitFor(t.Context(), f.head+1_000_000); err != nil {
		t.Fatal("no projections, nothing to wait for:", err)
	}
}

func TestOtherProcessesSeeTheProgress(t *testing.T) {
	f := newFixture(t)
	r := f.start()
	f.ready(r)
	api := f.reader() // as in a process that does not project
	known := api.Progress()
	p := f.append(uuid.New(), added{"a"})
	if err := api.WaitFor(t.Context(), p, f.set.ProjectionsFor("thing.added.v1")...); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, api, `SELECT count(*) FROM {g}.things`); n != 1 {
		t.Fatal("waited for a row that is not there")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for {
		now, err := api.Follow(ctx, known)
		if err != nil {
			t.Fatal(err)
		}
		if now.At["entries"] >= p {
			break
		}
		known = now
	}
}
