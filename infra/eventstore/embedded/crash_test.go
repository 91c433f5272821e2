package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/uuid"
)

const (
	childServe   = "serve"
	childBadDisk = "bad-disk"
	childDir     = "EVENTSTORE_TEST_DIR"
	childSocket  = "EVENTSTORE_TEST_SOCKET"
)

// runChild is the re-executed test binary's main function.
func runChild(mode string) int {
	var err error
	switch mode {
	case childServe:
		err = childServeForEver()
	case childBadDisk:
		err = childMeetBadDisk()
	default:
		err = fmt.Errorf("unknown mode %q", mode)
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

// childServeForEver serves a store until it is killed or its input ends.
func childServeForEver() error {
	s, err := Open(context.Background(), Config{Dir: os.Getenv(childDir), Socket: os.Getenv(childSocket), DiskReserve: -1})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Close(context.Background())
}

type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startChild(t *testing.T, mode string, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childMode+"="+mode), env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, stdin: stdin, lines: bufio.NewScanner(out)}
	t.Cleanup(func() { c.kill() })
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	if !c.lines.Scan() {
		t.Fatalf("the child ended: %v", c.lines.Err())
	}
	return c.lines.Text()
}

// acked is an append that the server has acknowledged.
type acked struct {
	id       uuid.UUID
	stream   string
	revision uint64
	position uint64
}

// eventstore.md, Store: kill -9 loses no acknowledged event. The test kills a
// server under writers, again and again, and compares the log with what was
// acknowledged. EVENTSTORE_CRASH_ROUNDS sets the number of rounds.
func TestCrash(t *testing.T) {
	rounds := 3
	if v, err := strconv.Atoi(os.Getenv("EVENTSTORE_CRASH_ROUNDS")); err == nil {
		rounds = v
	}
	dir := t.TempDir()
	socket := socketPath(t)
	var mu sync.Mutex
	var all []acked
	tried := map[uuid.UUID]bool{}
	for round := range rounds {
		c := startChild(t, childServe, childDir+"="+dir, childSocket+"="+socket)
		if got := c.line(t); got != "ready" {
			t.Fatal(got)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		var writers sync.WaitGroup
		for w := range 8 {
			writers.Go(func() {
				client, err := esdb.NewClient(&esdb.Configuration{Address: "unix:" + socket, DisableTLS: true, MaxDiscoverAttempts: 1, GossipTimeout: 5})
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = client.Close() }()
				for i := 0; ; i++ {
					stream := fmt.Sprintf("s-%d-%d", w, i%3)
					events := newEvents(1 + i%4)
					mu.Lock()
					for _, e := range events {
						tried[e.EventID] = true
					}
					mu.Unlock()
					res, err := client.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, events...)
					if err != nil {
						return // the server is gone
					}
					mu.Lock()
					for j, e := range events {
						behind := uint64(len(events) - 1 - j)
						a := acked{id: e.EventID, stream: stream, revision: res.NextExpectedVersion - behind}
						if behind == 0 {
							a.position = res.CommitPosition
						}
						all = append(all, a)
					}
					mu.Unlock()
				}
			})
		}
		mu.Lock()
		enough := len(all) + 200
		mu.Unlock()
		for waiting := true; waiting && ctx.Err() == nil; time.Sleep(time.Duration(1+round%5) * time.Millisecond) {
			mu.Lock()
			waiting = len(all) < enough
			mu.Unlock()
		}
		c.kill()
		writers.Wait()
		cancel()
		if len(all) < enough {
			t.Fatalf("only %d events were acknowledged in time", len(all))
		}
		checkCrashed(t, dir, all, tried)
		t.Logf("round %d: %d events acknowledged so far", round, len(all))
	}
}

func checkCrashed(t *testing.T, dir string, all []acked, tried map[uuid.UUID]bool) {
	t.Helper()
	s := newTestStore(t, storeOptions{dir: dir})
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	log := whole(t, s)
	found := make(map[uuid.UUID]event, len(log))
	next := map[string]int64{}
	for i, e := range log {
		if _, twice := found[e.id]; twice {
			t.Fatalf("event %s is there twice", e.id)
		}
		found[e.id] = e
		if !tried[e.id] {
			t.Fatalf("event %s was never written", e.id)
		}
		if e.revision != next[e.stream] {
			t.Fatalf("%s has revision %d where %d was due", e.stream, e.revision, next[e.stream])
		}
		next[e.stream]++
		if e.more > 0 && (i+1 == len(log) || log[i+1].first != e.first) {
			t.Fatalf("the append at %d is there in part", e.first)
		}
	}
	for _, a := range all {
		e, ok := found[a.id]
		if !ok {
			t.Fatalf("acknowledged event %s of %s is lost", a.id, a.stream)
		}
		if e.stream != a.stream || uint64(e.revision) != a.revision || a.position != 0 && e.position != a.position {
			t.Fatalf("acknowledged %+v, found %s/%d at %d", a, e.stream, e.revision, e.position)
		}
	}
	for stream, n := range next {
		if h, err := s.readHead(stream); err != nil || h.last != n-1 {
			t.Fatalf("head of %s: %+v, %v", stream, h, err)
		}
	}
}

// TestBadDisk: a sync that fails is never acknowledged, whatever Pebble does
// about it; appends get Unavailable from then on, and reads go on. It runs in a
// process of its own, since a failed store can't be closed.
func TestBadDisk(t *testing.T) {
	c := startChild(t, childBadDisk, childDir+"="+t.TempDir(), childSocket+"="+filepath.Join(filepath.Dir(socketPath(t)), "s"))
	var out []string
	for c.lines.Scan() {
		out = append(out, c.lines.Text())
	}
	if err := c.cmd.Wait(); err != nil || len(out) == 0 || out[len(out)-1] != "fine" {
		t.Fatalf("%v\n%s", err, strings.Join(out, "\n"))
	}
}

func childMeetBadDisk() error {
	// Writes go through, only syncs of the write-ahead log fail.
	broken := errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		syncs := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		if syncs && strings.HasSuffix(op.Path, ".log") {
			return errorfs.ErrInjected
		}
		return nil
	})}
	broken.Off()
	opt := storeOptions{dir: os.Getenv(childDir), fs: errorfs.Wrap(vfs.Default, &broken), logger: discard(), clock: time.Now}
	st, err := openStore(context.Background(), opt)
	if err != nil {
		return err
	}
	s, err := serveStore(context.Background(), st, Config{Socket: os.Getenv(childSocket), Logger: discard()})
	if err != nil {
		return err
	}
	client, err := esdb.NewClient(&esdb.Configuration{Address: s.Address(), DisableTLS: true, MaxDiscoverAttempts: 1, GossipTimeout: 5})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := client.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{}, newEvents(1)...); err != nil {
		return fmt.Errorf("the disk is still good: %w", err)
	}
	sub, err := client.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.End{}})
	if err != nil {
		return err
	}
	broken.On()
	for range 3 {
		if _, err := client.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{}, newEvents(1)...); code(err) != esdb.ErrorUnavailable {
			return fmt.Errorf("an append on a broken disk: %w", err)
		}
	}
	select {
	case <-s.Failed():
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.Err() == nil {
		return fmt.Errorf("the store doesn't say why it failed")
	}
	broken.Off()
	if _, err := client.AppendToStream(ctx, "s", esdb.AppendToStreamOptions{}, newEvents(1)...); code(err) != esdb.ErrorUnavailable {
		return fmt.Errorf("an append after the failure: %w", err)
	}
	for {
		if m := sub.Recv(); m.SubscriptionDropped != nil {
			break
		} else if m.EventAppeared != nil {
			return fmt.Errorf("an event that was never acknowledged was delivered")
		}
	}
	read, err := client.ReadAll(ctx, esdb.ReadAllOptions{From: esdb.Start{}}, 10)
	if err != nil {
		return err
	}
	n := 0
	for {
		if _, err := read.Recv(); err != nil {
			break
		}
		n++
	}
	if n != 1 {
		return fmt.Errorf("%d events are read, 1 was acknowledged", n)
	}
	if err := s.Close(ctx); err == nil {
		return fmt.Errorf("closing a failed store says nothing")
	}
	returned := make(chan struct{})
	go func() { defer close(returned); st.trap.Fatalf("once more") }()
	select {
	case <-returned:
		return fmt.Errorf("Fatalf has returned")
	case <-time.After(100 * time.Millisecond):
	}
	fmt.Println("fine")
	return nil
}
