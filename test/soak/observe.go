package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reading is what the process holds at a moment.
type reading struct {
	at         time.Duration // since the start
	heap       uint64        // bytes of live objects, after a garbage collection
	resident   uint64        // bytes
	goroutines int
}

const (
	// readings are taken so often, and every twentieth is printed.
	readings = 200
	shown    = readings / 10
	// window is how many readings make one figure.
	window = readings / 5
)

// observe takes readings until the time is over. Those up to a fifth of it and
// those up to its end make the figures to compare.
func (s *soak) observe(ctx context.Context) (early, late reading, err error) {
	var all []reading
	started := time.Now()
	fmt.Printf("%8s  %10s  %12s  %10s  %10s  %11s\n", "time", "events", "deliveries", "heap MiB", "RSS MiB", "goroutines")
	for i := 1; i <= readings; i++ {
		if !sleep(ctx, time.Until(started.Add(s.time*time.Duration(i)/readings))) {
			return reading{}, reading{}, ctx.Err()
		}
		all = append(all, read(time.Since(started)))
		if i%shown != 0 {
			continue
		}
		r := typical(all[max(0, i-window):])
		fmt.Printf("%8s  %10d  %12d  %10.1f  %10.1f  %11d\n", r.at.Round(time.Second), s.written.Load(), s.got.Load(), mib(r.heap), mib(r.resident), r.goroutines)
		if i == readings/5 {
			early = r
		}
		late = r
	}
	return early, late, nil
}

// typical takes the medians, at the time of the last. Of the heap it takes the
// least: that swings by several memtables, whose life on a busy machine is longer
// than a window, and what leaks is there at the least, too.
func typical(of []reading) reading {
	return reading{
		at:         of[len(of)-1].at,
		heap:       least(of, func(r reading) uint64 { return r.heap }),
		resident:   middle(of, func(r reading) uint64 { return r.resident }),
		goroutines: middle(of, func(r reading) int { return r.goroutines }),
	}
}

func middle[T cmp.Ordered](of []reading, f func(reading) T) T {
	v := make([]T, len(of))
	for i, r := range of {
		v[i] = f(r)
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func least[T cmp.Ordered](of []reading, f func(reading) T) T {
	v := f(of[0])
	for _, r := range of {
		v = min(v, f(r))
	}
	return v
}

func read(at time.Duration) reading {
	runtime.GC()
	runtime.GC() // what the first left in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return reading{at: at, heap: m.HeapAlloc, resident: resident(), goroutines: runtime.NumGoroutine()}
}

// resident is the process's resident memory; 0 where the system doesn't tell.
func resident() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize()) //nolint:gosec // G115: a page has a size
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }

// compare holds the end to what was there after warming up.
func compare(early, late reading) error {
	var all error
	for _, c := range []struct {
		what        string
		early, late float64
	}{
		{"heap", float64(early.heap), float64(late.heap)},
		{"RSS", float64(early.resident), float64(late.resident)},
		{"goroutines", float64(early.goroutines), float64(late.goroutines)},
	} {
		ratio := 1.0
		if c.early > 0 {
			ratio = c.late / c.early
		}
		fmt.Printf("%s at %s / at %s: %.2f (bar %.1f)\n", c.what, late.at.Round(time.Second), early.at.Round(time.Second), ratio, flat)
		if ratio > flat {
			all = errors.Join(all, fmt.Errorf("%s grew to %.2f of what it was", c.what, ratio))
		}
	}
	return all
}
