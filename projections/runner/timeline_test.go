package runner_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
)

// TestPositionAtIsTheLastPositionWhoseRunningMaximumIsNotLater compares with
// the definition, on clocks that jump and run back, over restarts and a rebuild.
func TestPositionAtIsTheLastPositionWhoseRunningMaximumIsNotLater(t *testing.T) {
	f := newFixture(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	type point struct {
		pos     es.Position
		highest time.Time
	}
	var (
		points  []point
		highest time.Time
	)
	r := f.start()
	f.ready(r)
	for round := range 3 {
		for range 15 {
			id := uuid.New()
			raws := make([]es.Raw, 1+rng.IntN(100))
			var times []time.Time
			for i := range raws {
				step := time.Duration(rng.IntN(2_000_000)) * time.Microsecond
				if rng.IntN(10) == 0 {
					step = -10 * step
				}
				f.clock = f.clock.Add(step)
				times = append(times, f.clock)
				raws[i] = encode(t, f.registry, changed{1}, f.clock)
				if rng.IntN(8) == 0 {
					raws[i].ID[15] = 0 // more marks than chance would make
				}
			}
			if _, err := f.log.Append(t.Context(), stream(id), es.NoStream(), raws...); err != nil {
				t.Fatal(err)
			}
			i := 0
			for rec, err := range f.log.ReadStream(t.Context(), stream(id), 0, es.Forward, es.Everything) {
				if err != nil {
					t.Fatal(err)
				}
				if times[i].After(highest) {
					highest = times[i]
				}
				points = append(points, point{rec.Position, highest})
				f.head = rec.Position
				i++
			}
		}
		if round == 1 {
			r.stop()
			r = f.start()
			f.ready(r)
		}
	}
	f.caughtUp(r)
	check := func() {
		t.Helper()
		for range 300 {
			var at time.Time
			switch rng.IntN(4) {
			case 0:
				at = points[rng.IntN(len(points))].highest
			case 1:
				at = points[rng.IntN(len(points))].highest.Add(-time.Microsecond)
			case 2:
				at = points[0].highest.Add(-time.Hour)
			default:
				at = points[rng.IntN(len(points))].highest.Add(time.Duration(rng.IntN(1_000_000_000)))
			}
			want := es.StartPosition
			for _, p := range points {
				if p.highest.After(at) {
					break
				}
				want = p.pos
			}
			got, err := r.reader.PositionAt(t.Context(), at)
			if err != nil || got != want {
				t.Fatalf("position at %v: %d, %v, want %d", at, got, err, want)
			}
		}
	}
	check()
	f.equal(r)
	if _, err := r.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	check()
	if n := one[int](t, r.reader, `SELECT count(*) FROM {g}.timeline`); n < 50 {
		t.Fatalf("%d marks only: nothing was shown", n)
	}
}
