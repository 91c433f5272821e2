package runner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/projections/runner"
)

func TestFailingEventParksItsStreamForThatProjectionOnly(t *testing.T) {
	f := newFixture(t)
	ill, well := uuid.New(), uuid.New()
	f.faults.set(func(p string, env es.Envelope) error {
		if p == "things" && env.Stream.Key == ill.String() && env.Name == "thing.changed.v1" {
			return errRefused
		}
		return nil
	})
	f.append(ill, added{"ill"}, changed{1}, changed{2})
	f.append(well, added{"well"}, changed{1})
	r := f.start()
	f.ready(r)
	f.append(ill, changed{4})
	f.append(well, changed{2})
	f.caughtUp(r)
	if n := one[int](t, r.reader, `SELECT total FROM {g}.things WHERE id = $1`, ill); n != 0 {
		t.Fatalf("total %d of the parked stream, want 0", n)
	}
	if n := one[int](t, r.reader, `SELECT total FROM {g}.things WHERE id = $1`, well); n != 3 {
		t.Fatalf("total %d of the other stream, want 3", n)
	}
	if n := one[int](t, r.reader, `SELECT count(*) FROM {g}.entries`); n != 7 {
		t.Fatalf("%d entries: another projection leaves the stream out too", n)
	}
	s, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Parked) != 1 || s.Parked[0].Stream != stream(ill) || s.Parked[0].Revision != 1 || s.Parked[0].Error != errRefused.Error() {
		t.Fatalf("parked: %+v", s.Parked)
	}
	// Parked streams stay so over a restart.
	r.stop()
	r = f.start()
	f.ready(r)
	f.append(ill, changed{8})
	f.caughtUp(r)

	report, err := r.ReplayParked(t.Context(), runner.ReplayArgument{})
	if err != nil || len(report.Streams) != 1 || report.Streams[0].Error == "" {
		t.Fatalf("a replay that fails again says %+v, %v", report, err)
	}
	f.faults.set(nil)
	report, err = r.ReplayParked(t.Context(), runner.ReplayArgument{Projection: "things", Stream: stream(ill)})
	if err != nil || len(report.Streams) != 1 || report.Streams[0].Error != "" || report.Streams[0].Events != 4 {
		t.Fatalf("the replay says %+v, %v", report, err)
	}
	f.append(ill, changed{16})
	f.caughtUp(r)
	if n := one[int](t, r.reader, `SELECT total FROM {g}.things WHERE id = $1`, ill); n != 31 {
		t.Fatalf("total %d after the replay, want 31", n)
	}
	f.equal(r)
}

// What Postgres, the client or a panic refuses parks the event as a handler's error does.
func TestEveryKindOfEventFailureParks(t *testing.T) {
	f := newFixture(t)
	list := projections(f.faults)
	things := list[0].On["thing.changed.v1"]
	list[0].On["thing.changed.v1"] = func(w *runner.Writer, env es.Envelope) error {
		switch env.Event.(changed).By {
		case 101:
			panic("boom")
		case 102:
			w.Exec(`UPDATE {g}.things SET nothing = 1`)
		case 103:
			w.Exec(`UPDATE {g}.things SET total = $1`, "not a number")
		case 104:
			w.Exec(`UPDATE {g}.things SET total = 1000000 WHERE id = $1`, env.Stream.Key)
		case 105:
			w.Exec(`SELECT $1::uuid, $2::int`, "too few")
		case 106:
			w.Exec(`SELECT 1/0`)
		}
		return things(w, env)
	}
	f.use(list...)
	r := f.start()
	f.ready(r)
	ids := []uuid.UUID{}
	for n := range 6 {
		id := uuid.New()
		ids = append(ids, id)
		f.append(id, added{fmt.Sprint(n)}, changed{1}, changed{101 + n}, changed{1})
	}
	well := uuid.New()
	f.append(well, added{"well"}, changed{5})
	f.caughtUp(r)
	s, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Parked) != 6 {
		t.Fatalf("%d parked: %+v", len(s.Parked), s.Parked)
	}
	for _, p := range s.Parked {
		if p.Revision != 2 || p.Error == "" {
			t.Errorf("%+v", p)
		}
	}
	for _, id := range ids {
		if n := one[int](t, r.reader, `SELECT total FROM {g}.things WHERE id = $1`, id); n != 1 {
			t.Errorf("total %d, want 1: what came before the failure stays", n)
		}
	}
	if n := one[int](t, r.reader, `SELECT total FROM {g}.things WHERE id = $1`, well); n != 5 {
		t.Errorf("total %d of the healthy stream, want 5", n)
	}
	eventually(t, 5*time.Second, func() error {
		for _, g := range r.Gauges() {
			if g.Projection == "things" {
				return expect(g.Parked == 6, "the metric says %d parked", g.Parked)
			}
		}
		return expect(false, "no metric")
	})
}

// A statement that the client can't send, behind others that it has queued, costs
// the connection. That is the event's fault all the same, also when it is alone
// in its batch and its first statement is a good one.
func TestUnsendableStatementsPark(t *testing.T) {
	f := newFixture(t)
	list := projections(f.faults)
	things := list[0].On["thing.changed.v1"]
	list[0].On["thing.changed.v1"] = func(w *runner.Writer, env es.Envelope) error {
		switch env.Event.(changed).By {
		case 101:
			w.Exec(`UPDATE {g}.things SET total = $1`, "not a number")
		case 102:
			w.Exec(`SELECT $1::uuid, $2::int`, "too few")
		case 103:
			w.Exec(`UPDATE {g}.things SET total = total`)
			w.Exec(`UPDATE {g}.things SET total = $1`, "not a number")
		case 104:
			w.Exec(`UPDATE {g}.things SET total = total`)
			w.Exec(`SELECT $1::uuid, $2::int`, "too few")
		}
		return things(w, env)
	}
	f.use(list...)
	r := f.start()
	f.ready(r)
	for n := range 4 {
		id := uuid.New()
		f.append(id, added{fmt.Sprint(n)})
		f.caughtUp(r)
		f.append(id, changed{101 + n}) // alone
		f.caughtUp(r)
		s, err := r.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Parked) != n+1 {
			t.Errorf("%d: %d parked: %+v", 101+n, len(s.Parked), s.Parked)
		}
	}
	well := uuid.New()
	f.append(well, added{"well"}, changed{5})
	f.caughtUp(r)
	if n := one[int](t, r.reader, `SELECT total FROM {g}.things WHERE id = $1`, well); n != 5 {
		t.Errorf("total %d of the healthy stream, want 5", n)
	}
}
