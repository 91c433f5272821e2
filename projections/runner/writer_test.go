package runner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/projections/runner"
)

// sums is a projection of one row per thing that upserts only.
func sums() runner.Projection {
	kind := runner.Upsert{
		Table: "sums", Columns: "id, total, last",
		Conflict: "(id) DO UPDATE SET total = sums.total + EXCLUDED.total, last = EXCLUDED.last",
		Merge: func(have, more []any) {
			have[1] = have[1].(int) + more[1].(int)
			have[2] = more[2]
		},
	}
	return runner.Projection{
		Name: "sums", Version: 1,
		Schema:     `CREATE TABLE sums (id uuid PRIMARY KEY, total int NOT NULL, last text NOT NULL)`,
		Indexes:    `CREATE INDEX sums_total ON sums (total); CREATE INDEX sums_last ON sums (last)`,
		Categories: []string{"thing"},
		On: map[string]runner.Handler{
			"thing.changed.v1": func(w *runner.Writer, e es.Envelope) error {
				by := e.Event.(changed).By
				w.Upsert(&kind, e.Root().ID, e.Root().ID, by, fmt.Sprint(by))
				return nil
			},
			"thing.removed.v1": func(w *runner.Writer, e es.Envelope) error {
				w.Exec(`DELETE FROM {g}.sums WHERE id = $1`, e.Root().ID)
				return nil
			},
		},
	}
}

// What is added to a row is the same whether its events come in one batch,
// where they are one row of a statement, or one by one.
func TestUpsertsMergeAsConflictsDo(t *testing.T) {
	f := newFixture(t)
	f.use(sums())
	history := func() {
		for range 150 { // more than a statement takes
			f.append(uuid.New(), changed{1}, changed{2}, changed{3})
		}
		gone := uuid.New()
		f.append(gone, changed{100})
		f.append(gone, removed{}, changed{7}, changed{8})
	}
	history() // in large batches
	r := f.start()
	f.ready(r)
	check := func(rows, total int) {
		t.Helper()
		f.caughtUp(r)
		if n := one[int](t, r.reader, `SELECT count(*) FROM {g}.sums`); n != rows {
			t.Errorf("%d rows, want %d", n, rows)
		}
		if n := one[int](t, r.reader, `SELECT sum(total) FROM {g}.sums`); n != total {
			t.Errorf("in all %d, want %d", n, total)
		}
		if n := one[int](t, r.reader, `SELECT count(*) FROM {g}.sums WHERE last NOT IN ('3', '8')`); n != 0 {
			t.Errorf("%d rows do not end with their last event", n)
		}
	}
	check(151, 150*6+15)
	history() // as they come
	check(302, 2*(150*6+15))
	f.equal(r)
}

// Postgres keeps a statement's plan: one made while the table had a few rows
// must not make every later event read the whole table.
func TestHandlersReadNoWholeTable(t *testing.T) {
	f := newFixture(t)
	r := f.start()
	f.ready(r)
	const things = 400
	for range things { // one by one, so that each statement is a use of the plan
		f.append(uuid.New(), added{"a"}, changed{1})
		f.caughtUp(r, "things")
	}
	schema, err := r.reader.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Backends tell the statistics about a second late.
	eventually(t, 30*time.Second, func() error {
		var looked, read int
		err := f.db.QueryRow(t.Context(), `SELECT coalesce(idx_scan, 0), seq_tup_read FROM pg_stat_all_tables
			WHERE schemaname = $1 AND relname = 'things'`, schema).Scan(&looked, &read)
		if err != nil {
			return err
		}
		if read > things {
			t.Fatalf("%d events read %d rows of the table", things, read)
		}
		return expect(looked >= things, "%d of %d updates are in the statistics", looked, things)
	})
}

// Indexes that only readers use are made when the rows are there, before
// anybody reads, also by the leader after one that died before it came to that.
func TestIndexesAreThereWhenAGenerationIsRead(t *testing.T) {
	f := newFixture(t)
	f.use(sums())
	f.append(uuid.New(), changed{1})
	r := f.start()
	f.ready(r)
	indexes := func() int {
		t.Helper()
		schema, err := r.reader.Schema(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := f.db.QueryRow(t.Context(), `SELECT count(*) FROM pg_indexes WHERE schemaname = $1 AND tablename = 'sums'`, schema).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := indexes(); n != 3 {
		t.Fatalf("%d indexes on the first generation, want 3", n)
	}
	if _, err := r.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := indexes(); n != 3 {
		t.Fatalf("%d indexes after a rebuild, want 3", n)
	}
	r.stop()
	// As a leader leaves it that dies between the last event and the indexes.
	if _, err := f.db.Exec(t.Context(), `UPDATE tallyard.generations SET state = 'building', indexed_at = NULL WHERE state = 'live'`); err != nil {
		t.Fatal(err)
	}
	schema := "gen_2"
	if _, err := f.db.Exec(t.Context(), `DROP INDEX `+schema+`.sums_total, `+schema+`.sums_last, `+schema+`.timeline_latest`); err != nil {
		t.Fatal(err)
	}
	r = f.start()
	f.ready(r)
	if n := indexes(); n != 3 {
		t.Fatalf("%d indexes after another leader went on, want 3", n)
	}
}
