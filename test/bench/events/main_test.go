package events

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"tallyard/infra/eventstore/embedded"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := serveChild(dir, os.Getenv(childSocket)); err != nil {
			fmt.Fprintln(os.Stderr, "store of the measurement:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	// openTimeout bounds opening and closing, also of long logs on a busy machine.
	openTimeout = 5 * time.Minute
)

// sizes are the numbers of events in EVENTS.
func sizes(b *testing.B) []int {
	b.Helper()
	text := os.Getenv("EVENTS")
	if text == "" {
		text = "10000,100000"
	}
	var sizes []int
	for _, s := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < perStream {
			b.Fatalf("EVENTS: numbers of events with commas, at least %d: %q", perStream, text)
		}
		sizes = append(sizes, n)
	}
	return sizes
}

// place is a directory on disk that goes with the benchmark; its path is short
// enough for a socket.
func place(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("", "tallyard-e-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	return dir
}

// storeConfig is that of the product, but for the reserve of disk space.
func storeConfig(dir, socket string) embedded.Config {
	return embedded.Config{Dir: filepath.Join(dir, "log"), Socket: socket, DiskReserve: -1}
}

// open opens the embedded store in a directory and gives its address. The
// function that comes back closes it; the benchmark's end does so too.
func open(b *testing.B, dir string) (address string, closeStore func()) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	s, err := embedded.Open(ctx, storeConfig(dir, filepath.Join(dir, "run", "s")))
	if err != nil {
		b.Fatal(err)
	}
	closeStore = func() {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			b.Error(err)
		}
	}
	b.Cleanup(closeStore)
	return s.Address(), closeStore
}

// connect gives a public client of a server.
func connect(b *testing.B, address string) *esdb.Client {
	b.Helper()
	c, err := esdb.NewClient(&esdb.Configuration{
		Address: address, DisableTLS: true, MaxDiscoverAttempts: 1, DiscoveryInterval: 1, GossipTimeout: 5,
		KeepAliveInterval: 10 * time.Second, KeepAliveTimeout: 10 * time.Second, Logger: esdb.NoopLogging(),
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.GetServerVersion(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// figure is what came out of one round.
type figure struct {
	rate      float64 // events a second
	processor float64 // microseconds of this process's processor time an event
}

// processorTime is what this process, client and server, has used of the
// processors so far. Where others use the machine it says more than the clock.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// median of some figures; 0 of none.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(of))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// ratios are the figures divided by others of the same round.
func ratios(figures, by []float64) []float64 {
	var r []float64
	for i := range min(len(figures), len(by)) {
		r = append(r, figures[i]/by[i])
	}
	return r
}

// verdict tells whether a figure keeps its bar.
func verdict(figure, bar float64) string {
	if figure >= bar {
		return "kept"
	}
	return "MISSED"
}

func load() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:2], " ")
}
