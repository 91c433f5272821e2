package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/runner"
)

func TestE14PostgresAwayProjectionsGoOnWithoutARestart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of its own")
	}
	cfg := pgtest.Config(pgtest.TempDir(t))
	cluster, err := postgres.StartCluster(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopCluster := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := cluster.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
	defer func() { stopCluster() }()
	db, err := postgres.Open(t.Context(), cluster.URL(), postgres.Options{MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := postgres.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	f := fixtureOn(t, db, storetest.Open(t))
	r := f.start()
	defer r.stop()
	f.ready(r)
	id := uuid.New()
	f.append(id, added{"a"})
	f.caughtUp(r)

	stopCluster()
	for range 100 {
		f.append(id, changed{1})
	}
	if err := r.reader.WaitFor(t.Context(), f.head, "things"); !errors.Is(err, runner.ErrStale) {
		t.Fatalf("waiting while Postgres is away: %v", err)
	}
	if s, err := r.Status(t.Context()); err == nil && s.Trouble == "" {
		t.Fatal("nothing says that Postgres is away")
	}
	if cluster, err = postgres.StartCluster(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	f.caughtUp(r)
	if n := one[int](t, r.reader, `SELECT changes FROM {g}.things WHERE id = $1`, id); n != 100 {
		t.Fatalf("%d changes, want 100", n)
	}
	f.equal(r)
}

func TestE14ConnectionsCutAgainAndAgain(t *testing.T) {
	f := newFixture(t)
	r := f.start()
	f.ready(r)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			// Also the leader's: the term ends and another begins.
			_, _ = f.db.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`) // its own connection may be cut as well
			time.Sleep(30 * time.Millisecond)
		}
	})
	id := uuid.New()
	f.append(id, added{"a"})
	for range 500 {
		f.append(id, changed{1})
		time.Sleep(time.Millisecond)
	}
	cancel()
	wg.Wait()
	f.caughtUp(r)
	if n := one[int](t, r.reader, `SELECT changes FROM {g}.things WHERE id = $1`, id); n != 500 {
		t.Fatalf("%d changes, want 500", n)
	}
	f.equal(r)
}

func TestE21AProjectionThatCannotWriteShows(t *testing.T) {
	f := newFixture(t)
	r := f.start()
	f.ready(r)
	schema, err := r.reader.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.db.Exec(t.Context(), fmt.Sprintf(`
		CREATE FUNCTION %[1]s.refuse() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'permission denied for table things' USING ERRCODE = '42501'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON %[1]s.things FOR EACH ROW EXECUTE FUNCTION %[1]s.refuse()`, schema))
	if err != nil {
		t.Fatal(err)
	}
	f.append(uuid.New(), added{"a"})
	eventually(t, 10*time.Second, func() error {
		s, err := r.Status(t.Context())
		if err != nil {
			return err
		}
		if !strings.Contains(s.Trouble, "permission denied") || len(s.Parked) > 0 {
			return expect(false, "trouble %q, parked %d", s.Trouble, len(s.Parked))
		}
		for _, g := range r.Gauges() {
			if g.Projection == "things" && g.Stalled > 0 && g.Lag.Events > 0 {
				return nil
			}
		}
		return expect(false, "the metrics say %+v", r.Gauges())
	})
	if _, err := f.db.Exec(t.Context(), `DROP TRIGGER refuse ON `+schema+`.things`); err != nil {
		t.Fatal(err)
	}
	f.caughtUp(r)
	if s, err := r.Status(t.Context()); err != nil || s.Trouble != "" {
		t.Fatalf("still in trouble: %q, %v", s.Trouble, err)
	}
	f.equal(r)
}

func TestE15AStalledCommitShowsAsAge(t *testing.T) {
	f := newFixture(t)
	f.clock = time.Now().UTC()
	r := f.start()
	f.ready(r)
	schema, err := r.reader.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := f.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE `+schema+`.things`); err != nil {
		t.Fatal(err)
	}
	f.append(uuid.New(), added{"a"})
	gauge := func() (runner.Gauge, bool) {
		for _, g := range r.Gauges() {
			if g.Projection == "things" {
				return g, true
			}
		}
		return runner.Gauge{}, false
	}
	eventually(t, 10*time.Second, func() error {
		g, ok := gauge()
		s, err := r.Status(t.Context())
		if err != nil {
			return err
		}
		var age float64
		for _, p := range s.Projections {
			if p.Name == "things" {
				age = p.Lag.Seconds
			}
		}
		return expect(ok && g.Lag.Seconds > 0.5 && g.Lag.Events == 1 && age > 0.5, "gauge %+v, age %v", g, age)
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.caughtUp(r)
	eventually(t, 10*time.Second, func() error {
		g, ok := gauge()
		return expect(ok && g.Lag == runner.Lag{}, "gauge %+v", g)
	})
}

// TestTwoLeadersAtOnceAreKeptApartByTheFence gives two projectors no lock.
func TestTwoLeadersAtOnceAreKeptApartByTheFence(t *testing.T) {
	f := newFixture(t)
	ids := make([]uuid.UUID, 20)
	for i := range ids {
		ids[i] = uuid.New()
		f.append(ids[i], added{"a"})
	}
	first := f.start()
	f.ready(first)
	first.stop()
	var stops []func()
	for range 2 {
		cfg := f.config()
		cfg.Reader = f.reader()
		cfg.Lead = func(ctx context.Context, work func(context.Context) error) error {
			for ctx.Err() == nil {
				_ = work(ctx) // what ends it is the fence: that is the test
				time.Sleep(5 * time.Millisecond)
			}
			return nil
		}
		r, err := runner.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		stops = append(stops, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := r.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 600 {
		f.append(ids[i%len(ids)], changed{1})
	}
	err := f.reader().Await(t.Context(), f.head, f.set.Names()...)
	for _, stop := range stops {
		stop()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := f.start()
	f.ready(r)
	f.caughtUp(r)
	if n := one[int](t, r.reader, `SELECT sum(changes)::int FROM {g}.things`); n != 600 {
		t.Fatalf("%d changes, want 600: each exactly once", n)
	}
	if s, err := r.Status(t.Context()); err != nil || len(s.Parked) > 0 {
		t.Fatalf("the fence was taken for an event's failure: %+v, %v", s.Parked, err)
	}
	f.equal(r)
}

func TestTheNextLeaderTakesOver(t *testing.T) {
	f := newFixture(t)
	a, b := f.start(), f.start()
	f.ready(a)
	f.ready(b)
	if a.Leading() == b.Leading() {
		t.Fatalf("leading: %v and %v", a.Leading(), b.Leading())
	}
	if b.Leading() {
		a, b = b, a
	}
	id := uuid.New()
	f.append(id, added{"a"})
	f.caughtUp(b)
	a.stop()
	f.append(id, changed{1})
	f.caughtUp(b)
	if !b.Leading() {
		t.Fatal("nobody leads")
	}
	if n := one[int](t, b.reader, `SELECT changes FROM {g}.things`); n != 1 {
		t.Fatalf("%d changes", n)
	}
}
