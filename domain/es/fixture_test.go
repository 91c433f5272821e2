package es_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	acme  = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	alice = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
)

// added is the event of the counters that the tests count with.
type added struct {
	N int `json:"n"`
}

func (e added) Changes() []es.Change { return []es.Change{es.Set("n", e.N)} }

// moved is a second event, so that one command can leave two.
type moved struct{}

func (moved) Changes() []es.Change { return nil }

type counter struct {
	Sum    int   `json:"sum"`
	Events int   `json:"events"`
	Seen   []int `json:"seen"`
}

func evolve(s counter, e es.Envelope) counter {
	s.Events++
	if ev, ok := e.Event.(added); ok {
		s.Sum += ev.N
		s.Seen = append(append([]int(nil), s.Seen...), ev.N)
	}
	return s
}

var counters = es.Aggregate[counter]{Category: "counter", Fold: 1, Evolve: evolve}

var counterTypes = []es.TypeDef{es.Type[added]("counter.added.v1"), es.Type[moved]("counter.moved.v1")}

// clock stands still until it is moved, or goes on by a step whenever it is asked.
type clock struct {
	mu   sync.Mutex
	at   time.Time
	step time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(c.step)
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newClock() *clock { return &clock{at: time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)} }

func registry(t testing.TB) *es.Registry {
	t.Helper()
	reg, err := es.NewRegistry(es.Types, counterTypes)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// process is a program on a log: nothing is shared with another one but the log.
func process(t testing.TB, log es.Log) *es.Runtime {
	t.Helper()
	return &es.Runtime{
		Log: log, Registry: registry(t), Clock: es.SystemClock{}, IDs: es.RandomIDs{}, NameKey: []byte("key"),
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
}

func alone(t testing.TB) *es.Runtime {
	t.Helper()
	return process(t, storetest.Open(t))
}

func command(key string) es.Command {
	return es.Command{
		ID: uuid.New(), Action: "count", Tenant: acme, Key: key, Digest: []byte("input"),
		Actor: es.Actor{Kind: es.ActorUser, User: alice},
	}
}

// add decides that a counter counts n, whatever it holds.
func add(n int) es.Decide[counter] {
	return func(counter) ([]es.Event, error) { return []es.Event{added{n}}, nil }
}

func history(t testing.TB, rt *es.Runtime, stream es.StreamID) []es.Envelope {
	t.Helper()
	var list []es.Envelope
	for env, err := range es.Events(context.WithoutCancel(t.Context()), rt, stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, env)
	}
	return list
}

// impatient is a process that does not wait for one that died in the middle.
func impatient(t testing.TB, log es.Log) *es.Runtime {
	t.Helper()
	rt, c := process(t, log), newClock()
	c.step = time.Second
	rt.Clock = c
	return rt
}

// must gives a value or ends the test.
func must[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var errCrash = errors.New("the program died")

// failing is a log whose appends fail where the test says: before they are
// written, or after, when only the answer is lost.
type failing struct {
	es.Log
	mu   sync.Mutex
	fail func(n int) (before, after error)
	n    int
}

func (f *failing) Append(ctx context.Context, stream string, expected es.Expected, events ...es.Raw) (es.Written, error) {
	f.mu.Lock()
	f.n++
	before, after := f.fail(f.n)
	f.mu.Unlock()
	if before != nil {
		return es.Written{}, before
	}
	w, err := f.Log.Append(ctx, stream, expected, events...)
	if after != nil {
		return es.Written{}, after
	}
	return w, err
}

// dying dies at the n-th append, before or after it is written, for good.
func dying(log es.Log, n int, after bool) es.Log {
	return &failing{Log: log, fail: func(i int) (error, error) {
		switch {
		case i > n || i == n && !after:
			return errCrash, nil
		case i == n:
			return nil, errCrash
		}
		return nil, nil
	}}
}
