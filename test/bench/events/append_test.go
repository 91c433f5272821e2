package events

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
)

const (
	// appendTime is how long one way of appending is measured in one round. Short
	// rounds, and many, lie closer together than what else the machine does.
	appendTime   = 300 * time.Millisecond
	appendRounds = 15
	// ofCeiling, ofSteps and ofPostgres are the bars of P1.
	ofCeiling, ofSteps, ofPostgres = 0.8, 0.8, 3.0
)

// appender appends one event at the end of its writer's own stream; n is the
// number of events there, all from this writer.
type appender func(ctx context.Context, stream string, n int64) error

// rate is how many appends a second some writers make, each waiting for the
// answer before it appends again.
func rate(b *testing.B, writers int, do appender) figure {
	b.Helper()
	var (
		done    atomic.Int64
		stop    atomic.Bool
		g       sync.WaitGroup
		run     = uuid.NewString()
		started = time.Now()
		used    = processorTime()
	)
	for w := range writers {
		g.Go(func() {
			stream := fmt.Sprintf("bench-%s.%d", run, w)
			for n := int64(0); !stop.Load(); n++ {
				if err := do(b.Context(), stream, n); err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	time.Sleep(appendTime)
	stop.Store(true)
	took, count := time.Since(started), done.Load()
	g.Wait()
	return figure{rate: float64(count) / took.Seconds(), processor: (processorTime() - used).Seconds() * 1e6 / float64(done.Load())}
}

// throughClient appends with the public client.
func throughClient(c *esdb.Client) appender {
	return func(ctx context.Context, stream string, n int64) error {
		var expected esdb.ExpectedRevision = esdb.NoStream{}
		if n > 0 {
			expected = esdb.Revision(uint64(n - 1))
		}
		return appendEvents(ctx, c, stream, expected, newEvent())
	}
}

// ways are the ways of appending that P1 compares.
type ways struct {
	names []string
	do    map[string]appender
}

func (w *ways) add(name string, do appender) {
	if w.do == nil {
		w.do = map[string]appender{}
	}
	w.names = append(w.names, name)
	w.do[name] = do
}

// measure takes the figures of all ways in rounds; in each another one begins.
func (w *ways) measure(b *testing.B, writers int) (rates, processor map[string][]float64) {
	b.Helper()
	rates, processor = map[string][]float64{}, map[string][]float64{}
	for r := range appendRounds {
		for i := range w.names {
			name := w.names[(i+r)%len(w.names)]
			f := rate(b, writers, w.do[name])
			rates[name] = append(rates[name], f.rate)
			processor[name] = append(processor[name], f.processor)
		}
	}
	return rates, processor
}

const (
	wayCeiling  = "in-memory server"
	wayEmbedded = "embedded store"
	wayPebble   = "raw Pebble"
	wayPostgres = "Postgres"
)

// steps is the rate of one writer that makes a call and then waits for the
// disk, from the rates of either alone.
func steps(call, sync []float64) []float64 {
	var r []float64
	for i := range min(len(call), len(sync)) {
		r = append(r, 1/(1/call[i]+1/sync[i]))
	}
	return r
}

// BenchmarkP1Append compares durable appends of 400 bytes into the embedded
// store over its socket with the same client at a server that only
// acknowledges, with what the disk takes, and with Postgres.
func BenchmarkP1Append(b *testing.B) {
	var w ways
	address, _ := open(b, place(b))
	w.add(wayCeiling, throughClient(connect(b, serveCeiling(b, 0, false))))
	w.add(wayEmbedded, throughClient(connect(b, address)))
	w.add(wayPebble, rawPebble(b))
	w.add(wayPostgres, postgresAppend(b, 128))
	for b.Loop() {
		fmt.Printf("\nappends/s, %d B, medians of %d rounds of %s, load %s; in brackets the processor time of client and server, in µs an append\n",
			payload, appendRounds, appendTime, load())
		fmt.Printf("%7s  %16s  %16s  %16s  %16s\n", "writers", wayCeiling, wayEmbedded, wayPebble, wayPostgres)
		var lines []string
		for _, writers := range []int{1, 16, 128} {
			f, cpu := w.measure(b, writers)
			fmt.Printf("%7d  %16s  %16s  %16s  %16.0f\n", writers,
				show(f, cpu, wayCeiling), show(f, cpu, wayEmbedded), show(f, cpu, wayPebble), median(f[wayPostgres]))
			top, bar, what := f[wayCeiling], ofCeiling, "of the in-memory server"
			inTurn := steps(f[wayCeiling], f[wayPebble])
			if writers == 1 {
				top, bar, what = inTurn, ofSteps, "of a call and a sync in turn"
			} else {
				// What the bar asks for is out of reach on a slow disk, whatever the store does.
				lines = append(lines, fmt.Sprintf("%7d  %5.2f of a call and a sync in turn, %.2f of raw Pebble (no bar)", writers,
					median(ratios(f[wayEmbedded], inTurn)), median(ratios(f[wayEmbedded], f[wayPebble]))))
			}
			of, times := median(ratios(f[wayEmbedded], top)), median(ratios(f[wayEmbedded], f[wayPostgres]))
			lines = append(lines,
				fmt.Sprintf("%7d  %5.2f %s (bar %.1f: %s)", writers, of, what, bar, verdict(of, bar)),
				fmt.Sprintf("%7d  %5.2f times Postgres (bar %.0f: %s)", writers, times, ofPostgres, verdict(times, ofPostgres)))
			b.ReportMetric(median(f[wayEmbedded]), fmt.Sprintf("appends%d/s", writers))
		}
		for _, line := range lines {
			fmt.Println(line)
		}
	}
}

// show prints a way's rate and, in brackets, its processor time.
func show(rates, processor map[string][]float64, way string) string {
	return fmt.Sprintf("%.0f (%.0f)", median(rates[way]), median(processor[way]))
}
