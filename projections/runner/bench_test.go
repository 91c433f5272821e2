package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/runner"
)

// benchEvents is how many events a benchmark projects; TALLYARD_BENCH_EVENTS sets it.
func benchEvents(b *testing.B) int {
	b.Helper()
	if s := os.Getenv("TALLYARD_BENCH_EVENTS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	return 100_000
}

// fill writes a history: one event in ten makes a thing, the others change one.
func (f *fixture) fill(n int) {
	f.t.Helper()
	for n > 0 {
		lot := make([]es.Event, min(n, 10))
		for i := range lot {
			lot[i] = changed{1}
		}
		lot[0] = added{"thing"}
		f.append(uuid.New(), lot...)
		n -= len(lot)
	}
}

// BenchmarkP4ProjectIntoAllTables measures events per second from the log into
// every table, from the first event to the last, beside COPY of the same rows.
func BenchmarkP4ProjectIntoAllTables(b *testing.B) {
	n := benchEvents(b)
	f := newFixture(b)
	f.times = runner.Times{}
	f.fill(n)
	for b.Loop() {
		g0, p0 := cpus(f)
		start := time.Now()
		var peak uint64
		r := f.start()
		tick := time.NewTicker(100 * time.Millisecond)
		for done := false; !done; {
			select {
			case <-r.Ready():
				done = true
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
		}
		tick.Stop()
		took := time.Since(start)
		g1, p1 := cpus(f)
		b.ReportMetric((g1-g0)*1e6/float64(n), "go-cpu-µs/event")
		b.ReportMetric((p1-p0)*1e6/float64(n), "pg-cpu-µs/event")
		b.ReportMetric(float64(n)/took.Seconds(), "events/s")
		b.ReportMetric(float64(peak)/(1<<20), "peak-MB")
		copied := copyAll(b, f, r)
		b.ReportMetric(float64(n)/copied.Seconds(), "copy-events/s")
		r.stop()
		if _, err := f.db.Exec(b.Context(), `UPDATE tallyard.generations SET state = 'retired', retired_at = 'epoch' WHERE state = 'live'`); err != nil {
			b.Fatal(err)
		}
	}
}

// copyAll copies the finished rows of every table into one of the same shape.
func copyAll(b *testing.B, f *fixture, r *running) time.Duration {
	b.Helper()
	schema, err := r.reader.Schema(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var took time.Duration
	for _, table := range []string{"things", "entries", "entry_fields", "timeline"} {
		rows, err := f.db.Query(b.Context(), `SELECT * FROM `+schema+`.`+table)
		if err != nil {
			b.Fatal(err)
		}
		values, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
		if err != nil {
			b.Fatal(err)
		}
		var columns []string
		for _, d := range rows.FieldDescriptions() {
			columns = append(columns, d.Name)
		}
		if _, err := f.db.Exec(b.Context(), `DROP TABLE IF EXISTS public.copy_`+table+`; CREATE TABLE public.copy_`+table+` (LIKE `+schema+`.`+table+` INCLUDING ALL)`); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		_, err = f.db.CopyFrom(b.Context(), pgx.Identifier{"public", "copy_" + table}, columns, pgx.CopyFromRows(values))
		if err != nil {
			b.Fatal(err)
		}
		took += time.Since(start)
	}
	return took
}

// BenchmarkReadYourWrites measures append → row visible to the writer, in the
// projecting process and in another one.
func BenchmarkReadYourWrites(b *testing.B) {
	for _, c := range []struct {
		name  string
		other bool
	}{{"same-process", false}, {"other-process", true}} {
		b.Run(c.name, func(b *testing.B) {
			f := newFixture(b)
			r := f.start()
			f.ready(r)
			reader := r.reader
			if c.other {
				reader = f.reader()
			}
			id := uuid.New()
			f.append(id, added{"a"})
			var waits, appends []time.Duration
			for b.Loop() {
				start := time.Now()
				p := f.append(id, changed{1})
				appends = append(appends, time.Since(start))
				ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
				start = time.Now()
				if err := reader.Await(ctx, p, "things", "entries"); err != nil {
					b.Fatal(err)
				}
				waits = append(waits, time.Since(start))
				cancel()
			}
			slices.Sort(waits)
			slices.Sort(appends)
			b.ReportMetric(float64(appends[len(appends)/2].Microseconds()), "append-p50-µs")
			b.ReportMetric(float64(waits[len(waits)/2].Microseconds()), "wait-p50-µs")
			b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds()), "wait-p99-µs")
		})
	}
}

// cpus is the processor time used so far by this process and by Postgres: on a
// machine that others use it says more than the clock.
func cpus(f *fixture) (program, server float64) {
	f.t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		f.t.Fatal(err)
	}
	program = time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	postmaster := strconv.Itoa(pgtest.Cluster(f.t).PID())
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		pid := filepath.Base(filepath.Dir(file))
		if len(fields) < 15 || pid != postmaster && fields[1] != postmaster {
			continue
		}
		last := 13 // own time; of the postmaster also that of backends that ended
		if pid == postmaster {
			last = 15
		}
		for _, v := range fields[11:last] {
			ticks, _ := strconv.ParseFloat(v, 64)
			server += ticks / 100
		}
	}
	return program, server
}
