package events

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"tallyard/infra/eventstore/embedded"
)

// A child is this test binary, run again, in which there is nothing but the
// embedded store, so that its memory can be told from the measurement's.
const (
	childDir    = "TALLYARD_BENCH_STORE"
	childSocket = "TALLYARD_BENCH_SOCKET"
)

// usage is what a process holds, after a garbage collection.
type usage struct {
	Opened     time.Duration // how long opening the store took
	Heap       uint64        // bytes of live objects
	Stacks     uint64        // bytes of stacks
	RSS        uint64        // resident bytes
	Goroutines int
}

// serveChild serves a store and answers each line of its input with its usage,
// until the input ends.
func serveChild(dir, socket string) error {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	started := time.Now()
	s, err := embedded.Open(ctx, storeConfig(dir, socket))
	if err != nil {
		return err
	}
	opened := time.Since(started)
	out := json.NewEncoder(os.Stdout)
	err = out.Encode(measure(opened))
	for in := bufio.NewScanner(os.Stdin); err == nil && in.Scan(); {
		err = out.Encode(measure(opened))
	}
	closing, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if cerr := s.Close(closing); err == nil {
		err = cerr
	}
	return err
}

func measure(opened time.Duration) usage {
	runtime.GC()
	runtime.GC() // what the first one left to finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{Opened: opened, Heap: m.HeapAlloc, Stacks: m.StackInuse, RSS: resident(), Goroutines: runtime.NumGoroutine()}
}

// resident is the resident memory of this process in bytes.
func resident() uint64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseUint(strings.Fields(string(raw))[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// child is a running child.
type child struct {
	b     *testing.B
	in    io.WriteCloser
	out   *json.Decoder
	cmd   *exec.Cmd
	first usage // when the store was open
	ended bool
}

// startChild opens the store in a directory in a process of its own.
func startChild(b *testing.B, dir, socket string) *child {
	b.Helper()
	c := &child{b: b, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childDir+"="+dir, childSocket+"="+socket)
	c.cmd.Stderr = os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.stop)
	c.out = json.NewDecoder(out)
	if err := c.out.Decode(&c.first); err != nil {
		b.Fatal("the store's process said nothing: ", err)
	}
	return c
}

// usage asks the child what it holds now.
func (c *child) usage() (u usage) {
	c.b.Helper()
	if _, err := fmt.Fprintln(c.in); err != nil {
		c.b.Fatal(err)
	}
	if err := c.out.Decode(&u); err != nil {
		c.b.Fatal(err)
	}
	return u
}

// stop closes the store and waits for the process to end.
func (c *child) stop() {
	if c.ended {
		return
	}
	c.ended = true
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		c.b.Error(err)
	}
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }
