package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tallyard/test/program"
)

// BenchmarkP10Start measures how long the program takes from its start until it
// is ready: the very first time, without a history, and with it, after a clean
// stop and after a kill.
func BenchmarkP10Start(b *testing.B) {
	const rounds = 5
	w := filled(b)
	for b.Loop() {
		fmt.Printf("\n%-36s %9s  %9s\n", "start until ready", "median", "slowest")
		show := func(what string, times []time.Duration) {
			slices.Sort(times)
			fmt.Printf("%-36s %6.2f s   %6.2f s\n", what, times[len(times)/2].Seconds(), times[len(times)-1].Seconds())
		}
		var made, again []time.Duration
		for range rounds {
			e := bare(b)
			made = append(made, e.start(b))
			e.stop(b)
			again = append(again, e.start(b))
			e.stop(b)
		}
		show("empty, everything is made", made)
		show("empty, again", again)
		w.stop(b)
		var clean, killed []time.Duration
		for range rounds {
			clean = append(clean, w.start(b))
			w.stop(b)
		}
		w.start(b)
		for range rounds {
			w.p.Kill()
			killed = append(killed, w.start(b))
		}
		show(fmt.Sprintf("%d events, after a stop", w.events), clean)
		show(fmt.Sprintf("%d events, after a kill", w.events), killed)
	}
}

// BenchmarkP8Rebuild measures how long all projections take for the whole
// history, beside the live ones.
func BenchmarkP8Rebuild(b *testing.B) {
	w := filled(b)
	for b.Loop() {
		before := w.processorTime(b)
		start := time.Now()
		out, err := program.Command(b.Context(), w.path, "projections", "rebuild", "--data-dir", w.data)
		if err != nil {
			b.Fatal(out)
		}
		took := time.Since(start)
		after := w.processorTime(b)
		perEvent := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(w.events) }
		fmt.Printf("\nrebuild of %d events: %.1f s, %.0f events/s, %.1f s per 10^5 events; processor time per event: program %.0f µs, Postgres %.0f µs\n%s",
			w.events, took.Seconds(), float64(w.events)/took.Seconds(), took.Seconds()*1e5/float64(w.events),
			perEvent(after.program-before.program), perEvent(after.postgres-before.postgres), out)
	}
}
