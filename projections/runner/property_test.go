package runner_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/projections/runner"
)

// TestAnyHistoryWithAnyFailuresEndsLikeACleanRebuild appends random events in
// random lots, lets random ones fail for a while, restarts, replays and
// rebuilds in between; in the end the tables are what a rebuild makes.
func TestAnyHistoryWithAnyFailuresEndsLikeACleanRebuild(t *testing.T) {
	f := newFixture(t)
	f.times.Retry = time.Millisecond
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	var mu sync.Mutex
	share := 0.02
	failures := func(p string, env es.Envelope) error {
		mu.Lock()
		defer mu.Unlock()
		if rng.Float64() < share {
			if rng.IntN(2) == 0 {
				panic("random")
			}
			return fmt.Errorf("random failure of %s", p)
		}
		return nil
	}
	random := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	var ids []uuid.UUID
	gone := map[uuid.UUID]bool{}
	r := f.start()
	f.ready(r)
	for range 6 {
		f.faults.set(failures)
		for range 10 + random(60) {
			if len(ids) == 0 || random(5) == 0 {
				id := uuid.New()
				ids = append(ids, id)
				f.append(id, added{"thing"})
				continue
			}
			id := ids[random(len(ids))]
			if gone[id] {
				continue
			}
			lot := []es.Event{}
			for range 1 + random(8) {
				lot = append(lot, changed{random(100)})
			}
			if random(6) == 0 {
				lot = append(lot, removed{})
				gone[id] = true
			}
			f.append(id, lot...)
		}
		switch random(4) {
		case 0:
			r.stop()
			r = f.start()
			f.ready(r)
		case 1:
			if _, err := r.ReplayParked(t.Context(), runner.ReplayArgument{}); err != nil {
				t.Fatal(err)
			}
		case 2:
			if _, err := r.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.caughtUp(r)
	s, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d streams parked in the end", len(s.Parked))
	f.faults.set(nil)
	report, err := r.ReplayParked(t.Context(), runner.ReplayArgument{})
	if err != nil || len(report.Streams) != len(s.Parked) {
		t.Fatalf("%v: %s", err, report.Text())
	}
	f.equal(r)
}
