package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// processorTime is what the program and its Postgres have used of the
// processors so far. On a machine that others use it says more than the clock.
type processorTime struct{ program, postgres time.Duration }

// tick is the unit of /proc/<pid>/stat on Linux.
const tick = 10 * time.Millisecond

func (w *world) processorTime(b *testing.B) (t processorTime) {
	b.Helper()
	own := strconv.Itoa(w.p.PID())
	pid, err := os.ReadFile(filepath.Join(w.data, "postgres", "pgdata", "postmaster.pid"))
	if err != nil {
		b.Fatal(err)
	}
	postmaster, _, _ := strings.Cut(string(pid), "\n")
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range stats {
		raw, err := os.ReadFile(file) //nolint:gosec // G304: the list is the kernel's
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 15 {
			continue
		}
		switch id := filepath.Base(filepath.Dir(file)); {
		case id == own:
			t.program += ticks(fields[11:13])
		case id == postmaster: // with backends that have ended
			t.postgres += ticks(fields[11:15])
		case fields[1] == postmaster:
			t.postgres += ticks(fields[11:13])
		}
	}
	return t
}

func ticks(fields []string) time.Duration {
	var n int64
	for _, f := range fields {
		v, _ := strconv.ParseInt(f, 10, 64)
		n += v
	}
	return time.Duration(n) * tick
}
