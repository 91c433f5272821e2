package runner_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/projections/runner"
)

func TestE16RebuildWithNoEventsFinishes(t *testing.T) {
	f := newFixture(t)
	r := f.start()
	f.ready(r)
	report, err := r.Rebuild(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Events || report.Generation != 2 || !strings.Contains(report.Text(), "no events") {
		t.Fatalf("%+v: %s", report, report.Text())
	}
}

func TestE16RebuildRemovesRowsThatReplayCannotMake(t *testing.T) {
	f := newFixture(t)
	id := uuid.New()
	f.append(id, added{"a"}, changed{1})
	r := f.start()
	f.ready(r)
	schema, err := r.reader.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`INSERT INTO {g}.things VALUES (gen_random_uuid(), 'stray', 1, 1)`,
		`DELETE FROM {g}.entries WHERE revision = 1`,
		`UPDATE {g}.things SET total = 77 WHERE name = 'a'`,
	} {
		if _, err := f.db.Exec(t.Context(), strings.ReplaceAll(sql, runner.Placeholder, schema)); err != nil {
			t.Fatal(err)
		}
	}
	before, err := r.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]runner.TableReport{}
	for _, table := range before.Tables {
		found[table.Table] = table
	}
	things, entries := found["things"], found["entries"]
	if before.Equal || things.Extra != 2 || things.Missing != 1 || entries.Missing != 1 || entries.Extra != 0 ||
		things.MissingSamples[0] != id.String() || !strings.Contains(before.Text(), "DIFFERENT") {
		t.Fatalf("verify does not see it:\n%s", before.Text())
	}
	if report, err := r.Rebuild(t.Context()); err != nil || !report.Events {
		t.Fatal(report, err)
	}
	if n := one[int](t, r.reader, `SELECT count(*) FROM {g}.things`); n != 1 {
		t.Fatalf("%d things after the rebuild, want 1", n)
	}
	f.equal(r)
	// Everything replaced or only compared is gone after a while.
	eventually(t, 10*time.Second, func() error {
		var schemas int
		err := f.db.QueryRow(t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'gen\_%'`).Scan(&schemas)
		if err != nil {
			return err
		}
		return expect(schemas == 1, "%d schemas of generations are left", schemas)
	})
}

func TestRebuildWhileReadersReadNoErrorNoGap(t *testing.T) {
	f := newFixture(t)
	f.times.Keep = 300 * time.Millisecond
	r := f.start()
	f.ready(r)
	ids := []uuid.UUID{}
	for range 50 {
		id := uuid.New()
		ids = append(ids, id)
		f.append(id, added{"a"}, changed{1})
	}
	f.caughtUp(r)
	// Uneven work, so that the two generations are not in step by chance.
	f.faults.set(func(string, es.Envelope) error {
		if rand.N(20) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	read := make([]int, 4)
	for i := range read {
		api := f.reader()
		wg.Go(func() {
			seen := 0
			for ctx.Err() == nil {
				var n int
				if err := api.QueryRow(t.Context(), `SELECT coalesce(sum(changes), 0)::int FROM {g}.things`).Scan(&n); err != nil {
					t.Errorf("reading failed: %v", err)
					return
				}
				if n < seen {
					t.Errorf("%d changes after %d: time went back", n, seen)
					return
				}
				seen = n
				read[i]++
			}
		})
	}
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			p := f.append(ids[i%len(ids)], changed{1})
			if err := r.reader.WaitFor(t.Context(), p, "things", "entries"); err != nil {
				t.Errorf("own write not seen: %v", err)
				return
			}
		}
	})
	for range 6 {
		if _, err := r.Rebuild(t.Context()); err != nil {
			t.Error(err)
		}
	}
	cancel()
	wg.Wait()
	f.caughtUp(r)
	f.equal(r)
	for _, n := range read {
		if n < 10 {
			t.Errorf("a reader read %d times only", n)
		}
	}
}

func TestChangedDigestBuildsBesideAndReadsGoOn(t *testing.T) {
	f := newFixture(t)
	id := uuid.New()
	f.append(id, added{"a"}, changed{1})
	old := f.start()
	f.ready(old)
	oldReader := f.reader()
	if n := one[int](t, oldReader, `SELECT changes FROM {g}.things`); n != 1 {
		t.Fatal(n)
	}
	old.stop()
	list := projections(f.faults)
	list[0].Version++
	digest := f.set.Digest()
	f.use(list...)
	if f.set.Digest() == digest {
		t.Fatal("the digest does not depend on the version")
	}
	f.times.Keep = 2 * time.Second
	r := f.start()
	f.ready(r)
	if n := one[int](t, r.reader, `SELECT changes FROM {g}.things`); n != 1 {
		t.Fatal(n)
	}
	// A process of the old program reads its own tables as long as they are there.
	if n := one[int](t, oldReader, `SELECT changes FROM {g}.things`); n != 1 {
		t.Fatal(n)
	}
	f.equal(r)
}

func TestTablesThatCannotBeMadeFailTheRebuildNotTheLiveOnes(t *testing.T) {
	f := newFixture(t)
	list := projections(f.faults)
	list[0].Schema += `; SELECT * FROM public.needed`
	f.use(list...)
	if _, err := f.db.Exec(t.Context(), `CREATE TABLE public.needed ()`); err != nil {
		t.Fatal(err)
	}
	r := f.start()
	f.ready(r)
	if _, err := f.db.Exec(t.Context(), `DROP TABLE public.needed`); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rebuild(t.Context()); err == nil || !strings.Contains(err.Error(), "tables of things") {
		t.Fatal("the rebuild says", err)
	}
	f.append(uuid.New(), added{"a"})
	f.caughtUp(r)
	if _, err := f.db.Exec(t.Context(), `CREATE TABLE public.needed ()`); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rebuild(t.Context()); err != nil {
		t.Fatal("the next one fails too:", err)
	}
}

// A rebuild that would put a projection back behind where it is is given up.
func TestRebuildThatHaltsBehindTheLiveTablesIsGivenUp(t *testing.T) {
	f := newFixture(t)
	f.registry = registry(t, thingTypes, newerTypes)
	id := uuid.New()
	f.append(id, added{"a"}, noted{"x"}, changed{1})
	r := f.start()
	f.ready(r)
	f.caughtUp(r)
	r.stop()
	f.registry = registry(t, thingTypes) // an older program takes over
	r = f.start()
	f.ready(r)
	_, err := r.Rebuild(t.Context())
	if err == nil || !strings.Contains(err.Error(), "halted before it was where the live one is") {
		t.Fatal("the rebuild says", err)
	}
	f.append(id, changed{1})
	f.caughtUp(r)
	if n := one[int](t, r.reader, `SELECT changes FROM {g}.things`); n != 2 {
		t.Fatalf("%d changes, want 2", n)
	}
	eventually(t, 10*time.Second, func() error {
		s, err := r.Status(t.Context())
		if err != nil {
			return err
		}
		return expect(len(s.Generations) == 1, "%d generations are left", len(s.Generations))
	})
}

// Verify compares at one position although the log goes on.
func TestVerifyUnderLoadComparesAtOnePosition(t *testing.T) {
	f := newFixture(t)
	r := f.start()
	f.ready(r)
	id := uuid.New()
	f.append(id, added{"a"})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			f.append(id, changed{1})
		}
	})
	for range 5 {
		report, err := r.Verify(t.Context())
		if err != nil || !report.Equal {
			t.Errorf("%v\n%s", err, report.Text())
		}
	}
	cancel()
	wg.Wait()
}

// The pointer moves only when the new generation is not behind the live one.
func TestPointerWaitsForTheNewGeneration(t *testing.T) {
	f := newFixture(t)
	r := f.start()
	f.ready(r)
	id := uuid.New()
	f.append(id, added{"a"}, changed{1})
	f.caughtUp(r)
	// The first event of the new generation waits for this lock, at whatever
	// moment its tables come into being.
	gate, err := f.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gate.Exec(t.Context(), `SELECT pg_advisory_xact_lock(77)`); err != nil {
		t.Fatal(err)
	}
	_, err = f.db.Exec(t.Context(), `CREATE FUNCTION public.wait_for_gate() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM pg_advisory_xact_lock_shared(77); RETURN NEW; END $$;
		CREATE TRIGGER gate BEFORE UPDATE ON tallyard.checkpoints FOR EACH ROW
			WHEN (new.generation = 2 AND new.projection = 'things') EXECUTE FUNCTION public.wait_for_gate()`)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := r.Rebuild(t.Context())
		done <- err
	}()
	for range 20 {
		p := f.append(id, changed{1})
		if err := r.reader.WaitFor(t.Context(), p, "things"); err != nil {
			t.Error("the live tables stand still:", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if schema, err := r.reader.Schema(t.Context()); err != nil || schema != "gen_1" {
		t.Errorf("%s is live, %v", schema, err)
	}
	if err := gate.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, r.reader, `SELECT changes FROM {g}.things`); n != 21 {
		t.Fatalf("%d changes, want 21", n)
	}
}
