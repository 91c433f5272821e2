package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tallyard/processes/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runner runs f.
type runner struct {
	name string
	runs atomic.Int32
	f    func(ctx context.Context, nth int32) error
	is   lifecycle.Condition
}

func (r *runner) Name() string { return r.name }
func (r *runner) Run(ctx context.Context) error {
	return r.f(ctx, r.runs.Add(1))
}

func (r *runner) Status() lifecycle.Status {
	return lifecycle.Status{Name: r.name, Condition: r.is, Handled: 1}
}

func untilEnd(ctx context.Context, _ int32) error { <-ctx.Done(); return nil }

func stop(t *testing.T, s lifecycle.Service, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return s.Stop(ctx)
}

func TestLoop(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	t.Run("starts_and_stops", func(t *testing.T) {
		l := lifecycle.NewLoop(&runner{name: "a", f: untilEnd}, quiet)
		if err := stop(t, l, time.Second); err != nil {
			t.Errorf("stopped before the start: %v", err)
		}
		if err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
		for range 2 {
			if err := stop(t, l, 5*time.Second); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("what_ends_by_itself_or_panics_is_started_again", func(t *testing.T) {
		again := make(chan struct{})
		r := &runner{name: "a", f: func(ctx context.Context, nth int32) error {
			switch nth {
			case 1:
				return errors.New("broken")
			case 2:
				panic("a mistake")
			}
			close(again)
			return untilEnd(ctx, nth)
		}}
		l := lifecycle.NewLoop(r, quiet)
		if err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-again
		if err := stop(t, l, 5*time.Second); err != nil {
			t.Error(err)
		}
	})
	t.Run("what_does_not_stop_is_told_within_the_deadline", func(t *testing.T) {
		let := make(chan struct{})
		l := lifecycle.NewLoop(&runner{name: "a", f: func(context.Context, int32) error { <-let; return nil }}, quiet)
		if err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := stop(t, l, 20*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("told %v", err)
		}
		close(let)
		if err := stop(t, l, 5*time.Second); err != nil {
			t.Error(err)
		}
	})
}

func TestUnder(t *testing.T) {
	t.Run("runners_run_while_it_leads_and_end_together", func(t *testing.T) {
		fails := &runner{name: "fails", is: lifecycle.Retrying, f: func(_ context.Context, nth int32) error { return fmt.Errorf("term %d", nth) }}
		stays := &runner{name: "stays", is: lifecycle.Ready, f: untilEnd}
		var terms []string
		lead := func(ctx context.Context, name string, f func(context.Context) error) error {
			for range 3 {
				terms = append(terms, fmt.Sprint(name, ": ", f(ctx)))
			}
			<-ctx.Done()
			return ctx.Err()
		}
		all := lifecycle.Under(lead, "worker", fails, stays)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := all.Run(ctx); err != nil {
			t.Errorf("an end that was asked for is no error: %v", err)
		}
		if got := strings.Join(terms, "; "); got != "worker: term 1; worker: term 2; worker: term 3" {
			t.Errorf("terms %s", got)
		}
		if stays.runs.Load() != 3 {
			t.Errorf("%d runs", stays.runs.Load())
		}
		if s := all.Status(); s.Condition != lifecycle.Retrying || s.Handled != 2 {
			t.Errorf("status %+v", s)
		}
		loop := lifecycle.NewLoop(all, slog.New(slog.DiscardHandler))
		if each := lifecycle.Statuses(loop); len(each) != 2 || each[0].Name != "fails" {
			t.Errorf("statuses %+v", each)
		}
	})
}

// service notes when it is started and stopped.
type service struct {
	name string
	fail bool
	mu   *sync.Mutex
	log  *[]string
}

func (s service) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.log = append(*s.log, what+s.name)
}

func (s service) Name() string { return s.name }
func (s service) Start(context.Context) error {
	s.note("+")
	if s.fail {
		return errors.New("no")
	}
	return nil
}
func (s service) Stop(context.Context) error { s.note("-"); return nil }

func TestStartAll(t *testing.T) {
	var log []string
	var mu sync.Mutex
	of := func(name string, fail bool) lifecycle.Service { return service{name, fail, &mu, &log} }
	if err := lifecycle.StartAll(t.Context(), of("a", false), of("b", false), of("c", true), of("d", false)); err == nil || !strings.Contains(err.Error(), "start c") {
		t.Errorf("told %v", err)
	}
	if got := strings.Join(log, " "); got != "+a +b +c -b -a" {
		t.Errorf("order %s", got)
	}
}
