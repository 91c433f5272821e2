package embedded

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

// crashTotals adds up what crashes have left.
type crashTotals struct {
	tally
	kills, losses int
}

// TestCrashes: no crash loses an acknowledged event, leaves one twice, or shows
// an append in part. Half of the crashes are `kill -9` of a process that serves
// a store to writers; the others take the power in the middle of a write, and
// with it all, some or none of what was not synced. EVENTSTORE_CRASHES sets
// their number.
func TestCrashes(t *testing.T) {
	crashes := 16
	if v, err := strconv.Atoi(os.Getenv("EVENTSTORE_CRASHES")); err == nil {
		crashes = v
	}
	seed := uint64(time.Now().UnixNano())
	rng := seeded(seed)
	total := &crashTotals{}
	killAgainAndAgain(t, rng, crashes-crashes/2, total)
	writes := countWrites(t, seed)
	cases := make([]faultCase, crashes/2)
	for i := range cases {
		cases[i] = faultCase{Fault: faultCrash, Index: 1 + rng.Int64N(writes), Seed: rng.Uint64()}
	}
	runFaults(t, cases, func(r faultResult) {
		if r.Error != "" {
			t.Errorf("power loss at write %d (%s), seed %d: %s", r.Index, r.Op, r.Seed, r.Error)
		}
		total.losses++
		total.add(r.tally)
	})
	t.Logf("crashes %d (kill -9 %d, power loss %d), events acknowledged %d, found %d, twice %d, appends half-visible %d, events without an answer that are there %d",
		total.kills+total.losses, total.kills, total.losses, total.Acknowledged, total.Found, total.Twice, total.Half, total.Unknown)
}

// killsPerStore is how often one store is killed before the next one begins;
// every check reads the whole of it.
const killsPerStore = 20

// killAgainAndAgain kills a process under writers and looks at its files, which
// the next one goes on with.
func killAgainAndAgain(t *testing.T, rng *rand.Rand, kills int, total *crashTotals) {
	t.Helper()
	var dir string
	var known *ledgerOfPromises
	for i := range kills {
		if i%killsPerStore == 0 {
			dir, known = t.TempDir(), newPromises()
		}
		socket := socketPath(t)
		c := startChild(t, childServe, childDir+"="+dir, childSocket+"="+socket, childMemtable+"=131072")
		if rng.IntN(6) == 0 {
			// While it opens, or soon after.
			time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
			c.kill()
		} else {
			if !c.lines.Scan() || c.lines.Text() != "ready" {
				t.Fatalf("kill %d: the process does not start: %q", i, c.lines.Text())
			}
			killUnderWriters(t, rng, c, socket, known)
		}
		s := newTestStore(t, storeOptions{dir: dir, memtable: 128 << 10})
		found, err := known.check(context.Background(), s)
		if err != nil {
			t.Errorf("kill %d: %v", i, err)
		}
		if err := s.close(); err != nil {
			t.Errorf("kill %d: %v", i, err)
		}
		total.kills++
		if i%killsPerStore == killsPerStore-1 || i == kills-1 {
			total.add(found) // it counts everything since the store was new
		}
	}
}

// killUnderWriters kills a server at a random moment after writers have begun.
func killUnderWriters(t *testing.T, rng *rand.Rand, c *child, socket string, known *ledgerOfPromises) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), workloadLimit)
	defer cancel()
	var acknowledged atomic.Int64
	var writers sync.WaitGroup
	for w := range 8 {
		seed := rng.Uint64()
		writers.Go(func() {
			client, err := esdb.NewClient(&esdb.Configuration{Address: "unix:" + socket, DisableTLS: true, MaxDiscoverAttempts: 1, GossipTimeout: 5})
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = client.Close() }()
			rng := seeded(seed)
			for i := 0; ; i++ {
				stream := fmt.Sprintf("s-%d", (w+i)%12)
				events := known.events(stream, 1+i%4, 100+rng.IntN(1000))
				data := make([]esdb.EventData, len(events))
				for j, e := range events {
					data[j] = esdb.EventData{EventID: e.id, EventType: e.kind, ContentType: esdb.ContentTypeBinary, Data: e.data}
				}
				res, err := client.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, data...)
				if err != nil {
					return // the server is gone
				}
				known.promised(stream, events, appendResult{current: int64(res.NextExpectedVersion), position: res.CommitPosition})
				acknowledged.Add(1)
			}
		})
	}
	for enough := rng.Int64N(150); acknowledged.Load() < enough && ctx.Err() == nil; {
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
	}
	c.kill()
	writers.Wait()
	if ctx.Err() != nil {
		t.Errorf("only %d appends were acknowledged in time", acknowledged.Load())
	}
}
