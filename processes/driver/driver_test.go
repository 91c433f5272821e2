package driver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
	"tallyard/processes/driver"
	"tallyard/processes/internal/proctest"
	"tallyard/processes/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type noted struct {
	Text string `json:"text"`
}

func (noted) Changes() []es.Change { return nil }

type erased struct{}

func (erased) Changes() []es.Change { return nil }

type other struct{}

func (other) Changes() []es.Change { return nil }

var (
	types   = []es.TypeDef{es.Type[noted]("note.noted.v1"), es.Type[erased]("note.erased.v1"), es.Type[other]("other.done.v1")}
	notes   = es.Aggregate[int]{Category: "note", Fold: 1, Evolve: func(n int, _ es.Envelope) int { return n + 1 }}
	others  = es.Aggregate[int]{Category: "other", Fold: 1, Evolve: func(n int, _ es.Envelope) int { return n + 1 }}
	tenant  = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	retries = lifecycle.Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond}
)

func write(t *testing.T, rt *es.Runtime, a es.Aggregate[int], events ...es.Event) {
	t.Helper()
	for _, e := range events {
		cmd := es.System(rt.IDs.New(), "test", "write", tenant)
		if _, err := es.Execute(t.Context(), rt, cmd, a, rt.IDs.New(), func(int) ([]es.Event, error) { return []es.Event{e}, nil }); err != nil {
			t.Fatal(err)
		}
	}
}

func texts(from, to int) []es.Event {
	var list []es.Event
	for i := from; i < to; i++ {
		list = append(list, noted{fmt.Sprint(i)})
	}
	return list
}

// seen is a process that notes what it is given.
type seen struct {
	mu   sync.Mutex
	got  []string
	fail func(text string, times int) error
	n    map[string]int
}

func (s *seen) process() es.Process {
	return es.Process{Name: "seen", On: map[string]func(context.Context, es.Envelope) error{
		"note.noted.v1": func(_ context.Context, env es.Envelope) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			text := env.Event.(noted).Text
			if s.n == nil {
				s.n = map[string]int{}
			}
			s.n[text]++
			if s.fail != nil {
				if err := s.fail(text, s.n[text]); err != nil {
					return err
				}
			}
			s.got = append(s.got, text)
			return nil
		},
	}}
}

func (s *seen) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// run runs a driver until the returned function is called.
func run(t *testing.T, d *driver.Driver) (stop func()) {
	t.Helper()
	d.Pause = retries
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("run: %v", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("the driver did not stop")
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func checkpoints(t *testing.T, rt *es.Runtime) (n int) {
	t.Helper()
	for rec, err := range rt.Log.ReadAll(t.Context(), es.StartPosition, es.Forward, es.Everything) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(rec.Type, "process.") {
			n++
		}
	}
	return n
}

func TestDriver(t *testing.T) {
	clock := proctest.NewClock()
	t.Run("every_event_once_in_order_over_restarts", func(t *testing.T) {
		rt := proctest.Runtime(t, storetest.Open(t), clock, types)
		s := &seen{}
		write(t, rt, notes, texts(0, 5)...)
		for round := range 3 {
			d := driver.New(rt, s.process())
			stop := run(t, d)
			proctest.Eventually(t, "ready", func() bool { return d.Status().Condition == lifecycle.Ready })
			write(t, rt, notes, texts(5+round*5, 10+round*5)...)
			proctest.Eventually(t, "all seen", func() bool { return len(s.list()) == 10+round*5 })
			stop()
			if c := d.Status().Condition; c != lifecycle.Waiting {
				t.Errorf("stopped, and %s", c)
			}
		}
		for i, text := range s.list() {
			if text != fmt.Sprint(i) {
				t.Fatalf("place %d holds %s: %v", i, text, s.list())
			}
		}
		if n := checkpoints(t, rt); n > 4 {
			t.Errorf("%d checkpoints for 20 events", n)
		}
	})

	t.Run("a_failing_event_is_tried_until_it_succeeds_and_never_skipped", func(t *testing.T) {
		rt := proctest.Runtime(t, storetest.Open(t), clock, types)
		s := &seen{fail: func(text string, times int) error {
			if text == "1" && times < 6 {
				if times == 3 {
					panic("a mistake")
				}
				return errors.New("not now")
			}
			return nil
		}}
		write(t, rt, notes, texts(0, 3)...)
		d := driver.New(rt, s.process())
		stop := run(t, d)
		proctest.Eventually(t, "all seen", func() bool { return len(s.list()) == 3 })
		proctest.Eventually(t, "ready again", func() bool { return d.Status().Condition == lifecycle.Ready })
		stop()
		if got := fmt.Sprint(s.list()); got != "[0 1 2]" {
			t.Errorf("order %s", got)
		}
		if r := d.Status().Retries; r != 5 {
			t.Errorf("%d retries, want 5", r)
		}
	})

	t.Run("what_is_stuck_is_visible_and_holds_up_a_stop_not_at_all", func(t *testing.T) {
		rt := proctest.Runtime(t, storetest.Open(t), clock, types)
		s := &seen{fail: func(string, int) error { return errors.New("never") }}
		write(t, rt, notes, texts(0, 2)...)
		d := driver.New(rt, s.process())
		stop := run(t, d)
		proctest.Eventually(t, "stuck", func() bool { return d.Status().Condition == lifecycle.Retrying })
		if !strings.Contains(d.Status().Detail, "never") {
			t.Errorf("detail %q", d.Status().Detail)
		}
		stop()
		if n := len(s.list()); n != 0 {
			t.Errorf("%d events dealt with", n)
		}
	})

	t.Run("unknown_names_halt_the_process_that_they_may_concern_alone", func(t *testing.T) {
		rt := proctest.Runtime(t, storetest.Open(t), clock, types)
		old := *rt.Registry
		newer, err := es.NewRegistry(es.Types, types, []es.TypeDef{es.Type[struct{ noted }]("note.noted.v2"), es.Type[struct{ other }]("other.done.v2")})
		if err != nil {
			t.Fatal(err)
		}
		rt.Registry = newer
		write(t, rt, others, struct{ other }{})
		write(t, rt, notes, texts(0, 1)...)
		write(t, rt, notes, erased{}, struct{ noted }{})
		write(t, rt, notes, texts(1, 2)...)
		rt.Registry = &old
		s := &seen{}
		d := driver.New(rt, s.process())
		run(t, d)
		proctest.Eventually(t, "halted", func() bool {
			return d.Status().Condition == lifecycle.Retrying && strings.Contains(d.Status().Detail, "note.noted.v2")
		})
		if got := fmt.Sprint(s.list()); got != "[0]" {
			t.Errorf("seen %s", got)
		}
	})

	t.Run("E7_an_idle_log_stays_idle_and_a_restart_reads_nothing_again", func(t *testing.T) {
		rt := proctest.Runtime(t, storetest.Open(t), clock, types)
		var events []es.Event
		for range 300 {
			events = append(events, other{})
		}
		write(t, rt, others, events...)
		s := &seen{}
		d := driver.New(rt, s.process())
		stop := run(t, d)
		proctest.Eventually(t, "the checkpoint follows", func() bool {
			at, err := es.ProcessCheckpoint(t.Context(), rt, "seen")
			return err == nil && at > 0
		})
		stop()
		n := checkpoints(t, rt)
		for range 3 { // each stop could keep one more, each start see it
			d := driver.New(rt, s.process())
			stop := run(t, d)
			proctest.Eventually(t, "ready", func() bool { return d.Status().Condition == lifecycle.Ready })
			time.Sleep(1200 * time.Millisecond)
			stop()
		}
		if after := checkpoints(t, rt); after != n || n > 2 {
			t.Errorf("%d checkpoints, then %d, though nothing happened", n, after)
		}
	})

	t.Run("what_is_not_due_waits_for_the_clock", func(t *testing.T) {
		clock := proctest.NewClock()
		rt := proctest.Runtime(t, storetest.Open(t), clock, types)
		due := clock.Now().Add(time.Hour)
		s := &seen{fail: func(text string, _ int) error {
			if text == "0" && clock.Now().Before(due) {
				return driver.NotBefore(due)
			}
			return nil
		}}
		write(t, rt, notes, texts(0, 2)...)
		d := driver.New(rt, s.process())
		run(t, d)
		time.Sleep(300 * time.Millisecond)
		if len(s.list()) != 0 || d.Status().Retries != 0 {
			t.Errorf("seen %v, %d retries, before the time", s.list(), d.Status().Retries)
		}
		clock.Move(time.Hour)
		proctest.Eventually(t, "both seen", func() bool { return fmt.Sprint(s.list()) == "[0 1]" })
	})
}
