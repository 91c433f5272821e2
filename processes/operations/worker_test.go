package operations_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/operation"
	"tallyard/infra/eventstore/storetest"
	"tallyard/processes/internal/proctest"
	"tallyard/processes/lifecycle"
	"tallyard/processes/operations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	tenant = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	alice  = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	bob    = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
)

type everybody struct{}

func (everybody) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	return access.Grants{Tenant: tenant, User: user, Active: true}, nil
}

// world is a store with operations in it and hands that do the work.
type world struct {
	t       *testing.T
	rt      *es.Runtime
	handler *operation.Handler
	hands   *hands

	mu      sync.Mutex
	queued  []operations.Ref
	samples map[operations.Ref][]operations.Progress
	forgot  map[operations.Ref]bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, rt: proctest.Runtime(t, storetest.Open(t), es.SystemClock{}, operation.Types), hands: newHands(),
		samples: map[operations.Ref][]operations.Progress{}, forgot: map[operations.Ref]bool{},
	}
	w.handler = &operation.Handler{Runtime: w.rt, Access: everybody{}}
	return w
}

// queue puts an operation in line; its path tells the hands what to do.
func (w *world) queue(owner uuid.UUID, path string, kind operation.WorkKind) operations.Ref {
	w.t.Helper()
	id := w.rt.IDs.New()
	cmd := es.System(w.rt.IDs.New(), "test", "queue", tenant)
	cmd.Request = "request-of-" + path
	work := operation.Work{Kind: kind, Space: uuid.New(), Path: path, Artefact: uuid.New()}
	spec := operation.Spec{Kind: operation.PublishAlgorithm, Owner: owner, Work: work, Subject: es.Ref{Kind: "algorithmVersion", ID: id}}
	if _, err := w.handler.Queue(w.t.Context(), cmd, id, spec); err != nil {
		w.t.Fatal(err)
	}
	ref := operations.Ref{Tenant: tenant, ID: id}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queued = append(w.queued, ref)
	return ref
}

// Pending gives all that was ever queued, as a read model that is far behind would.
func (w *world) Pending(context.Context) ([]operations.Ref, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.queued), nil
}

func (w *world) Record(_ context.Context, ref operations.Ref, p operations.Progress) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.samples[ref] = append(w.samples[ref], p)
	return nil
}

func (w *world) Forget(_ context.Context, ref operations.Ref) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgot[ref] = true
	return nil
}

func (w *world) state(ref operations.Ref) operation.State {
	w.t.Helper()
	s, err := w.handler.Load(w.t.Context(), ref.Tenant, ref.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) becomes(ref operations.Ref, status operation.Status) operation.State {
	w.t.Helper()
	proctest.Eventually(w.t, fmt.Sprintf("%s becomes %s", ref.ID, status), func() bool { return w.state(ref).Status == status })
	return w.state(ref)
}

func (w *world) events(ref operations.Ref) (list []string) {
	for env, err := range es.Events(w.t.Context(), w.rt, operation.Aggregate.Stream(ref.Tenant, ref.ID), 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, strings.TrimSuffix(strings.TrimPrefix(env.Name, "operation."), ".v1"))
	}
	return list
}

func (w *world) cancel(ref operations.Ref, by uuid.UUID) {
	w.t.Helper()
	cmd := es.Command{ID: w.rt.IDs.New(), Action: "cancelOperation", Tenant: tenant, Actor: es.Actor{Kind: es.ActorUser, User: by}}
	if _, err := w.handler.Cancel(w.t.Context(), cmd, ref.ID); err != nil {
		w.t.Fatal(err)
	}
}

// work starts a worker and gives what stops it.
func (w *world) work(change func(*operations.Config)) (stop func()) {
	c := operations.Config{
		Operations: w.handler, Pending: w.Pending, Samples: w, Logger: slog.New(slog.DiscardHandler),
		Work: map[operation.WorkKind]operations.Work{
			operation.CopyOut:        {Do: w.hands.do, Undo: w.hands.undo},
			operation.RemoveArtefact: {Do: w.hands.do},
		},
		Times: operations.Times{
			Poll: 200 * time.Millisecond, Soon: 10 * time.Millisecond, Sample: 10 * time.Millisecond,
			Pause: lifecycle.Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond},
		},
	}
	if change != nil {
		change(&c)
	}
	worker := operations.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					w.t.Errorf("run: %v", err)
				}
			case <-time.After(10 * time.Second):
				w.t.Error("the worker did not stop")
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

// hands do what an operation's path says: copy blocks until it is let go, fail
// with a fault, break with another error, hang without progress.
type hands struct {
	mu       sync.Mutex
	atOnce   int
	most     int
	begun    []string
	undone   []string
	let      map[string]chan struct{}
	undoFail int
	ownersAt map[uuid.UUID]int
	overlap  bool
}

func newHands() *hands {
	return &hands{let: map[string]chan struct{}{}, ownersAt: map[uuid.UUID]int{}}
}

func (h *hands) gate(path string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.let[path] == nil {
		h.let[path] = make(chan struct{})
	}
	return h.let[path]
}

func (h *hands) started(path string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.begun {
		if p == path {
			n++
		}
	}
	return n
}

func (h *hands) do(ctx context.Context, job operations.Job, report func(operations.Progress)) (operation.Result, error) {
	path := job.Work.Path
	h.mu.Lock()
	h.begun = append(h.begun, path)
	h.atOnce++
	h.most = max(h.most, h.atOnce)
	h.ownersAt[job.Owner]++
	h.overlap = h.overlap || h.ownersAt[job.Owner] > 1
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.atOnce--
		h.ownersAt[job.Owner]--
	}()
	report(operations.Progress{DoneBytes: 10, TotalBytes: 100, DoneFiles: 1, TotalFiles: 2})
	switch {
	case strings.HasPrefix(path, "fail"):
		return operation.Result{}, fault.New(fault.NotFound, fault.CodeNotFound, "The directory is gone; put it back and retry.")
	case strings.HasPrefix(path, "break"):
		return operation.Result{}, errors.New("open /var/lib/secret/place: input/output error")
	case strings.HasPrefix(path, "panic"):
		panic("a mistake")
	case strings.HasPrefix(path, "quick"):
	default:
		select {
		case <-ctx.Done():
			return operation.Result{}, ctx.Err()
		case <-h.gate(path):
		}
	}
	return operation.Result{Fingerprint: "f-" + path, Files: 2, Bytes: 100}, nil
}

func (h *hands) undo(_ context.Context, job operations.Job, _ bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.undoFail > 0 {
		h.undoFail--
		return errors.New("busy")
	}
	h.undone = append(h.undone, job.Work.Path)
	return nil
}

func (h *hands) wasUndone(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.undone, path)
}

func TestWorker(t *testing.T) {
	t.Run("OPS-01_succeeds_with_result_and_progress", func(t *testing.T) {
		w := newWorld(t)
		ref := w.queue(alice, "copy", operation.CopyOut)
		w.work(nil)
		proctest.Eventually(t, "a sample", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.samples[ref]) > 0 })
		if s := w.state(ref); s.Status != operation.Running || s.Started.IsZero() {
			t.Errorf("while it runs: %+v", s)
		}
		close(w.hands.gate("copy"))
		s := w.becomes(ref, operation.Succeeded)
		if s.Result.Fingerprint != "f-copy" || s.Amount.DoneBytes != 100 || s.Amount.TotalBytes != 100 || s.Ended.IsZero() {
			t.Errorf("at the end: %+v", s)
		}
		if got := fmt.Sprint(w.events(ref)); got != "[queued started succeeded]" {
			t.Errorf("events %s: progress is none", got)
		}
		proctest.Eventually(t, "the sample goes", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.forgot[ref] })
	})

	t.Run("OPS-01_failures_are_told_without_the_host", func(t *testing.T) {
		w := newWorld(t)
		fails, breaks := w.queue(alice, "fail", operation.CopyOut), w.queue(bob, "break", operation.CopyOut)
		panics := w.queue(alice, "panic", operation.RemoveArtefact)
		w.work(nil)
		if f := w.becomes(fails, operation.Failed).Failure; f.Code != fault.CodeNotFound || !strings.Contains(f.Message, "put it back") {
			t.Errorf("fault told as %+v", f)
		}
		for _, ref := range []operations.Ref{breaks, panics} {
			f := w.becomes(ref, operation.Failed).Failure
			if f.Code != fault.CodeInternal || strings.Contains(f.Message, "secret") || strings.Contains(f.Message, "mistake") {
				t.Errorf("told as %+v", f)
			}
		}
	})

	t.Run("OPS-03_running_is_ended_by_the_worker_and_leaves_nothing", func(t *testing.T) {
		w := newWorld(t)
		ref := w.queue(alice, "copy", operation.CopyOut)
		w.hands.undoFail = 3
		w.work(nil)
		proctest.Eventually(t, "it runs", func() bool { return w.hands.started("copy") == 1 })
		w.cancel(ref, alice)
		s := w.becomes(ref, operation.Cancelled)
		if !w.hands.wasUndone("copy") || s.CancelRequested || s.Amount != (operation.Amount{}) {
			t.Errorf("cancelled: %+v", s)
		}
		if got := fmt.Sprint(w.events(ref)); got != "[queued started cancel_requested cancelled]" {
			t.Errorf("events %s", got)
		}
	})

	t.Run("OPS-03_queued_one_that_was_cancelled_never_starts", func(t *testing.T) {
		w := newWorld(t)
		ref := w.queue(alice, "quick", operation.CopyOut)
		w.cancel(ref, alice)
		w.work(nil)
		time.Sleep(300 * time.Millisecond)
		if n := w.hands.started("quick"); n != 0 || w.state(ref).Status != operation.Cancelled {
			t.Errorf("started %d times", n)
		}
	})

	t.Run("OPS-02_a_panic_while_it_is_undone_ends_no_program", func(t *testing.T) {
		w := newWorld(t)
		ref := w.queue(alice, "copy", operation.CopyOut)
		var once sync.Once
		w.work(func(c *operations.Config) {
			work := c.Work[operation.CopyOut]
			undo := work.Undo
			work.Undo = func(ctx context.Context, job operations.Job, finished bool) error {
				once.Do(func() { panic("a mistake") })
				return undo(ctx, job, finished)
			}
			c.Work[operation.CopyOut] = work
		})
		w.becomes(ref, operation.Running)
		w.cancel(ref, alice)
		w.becomes(ref, operation.Cancelled)
	})
	t.Run("OPS-02_a_retry_that_is_cancelled_while_it_waits_leaves_nothing_behind", func(t *testing.T) {
		for name, give := range map[string]func(*world, operations.Ref) error{
			"cancelled": func(w *world, ref operations.Ref) error { w.cancel(ref, alice); return nil },
			"dismissed": func(w *world, ref operations.Ref) error {
				cmd := es.Command{ID: w.rt.IDs.New(), Tenant: tenant, Actor: es.Actor{Kind: es.ActorUser, User: alice}}
				_, err := w.handler.Dismiss(t.Context(), cmd, []uuid.UUID{ref.ID})
				return err
			},
			"given up": func(w *world, ref operations.Ref) error {
				_, err := w.handler.Withdraw(t.Context(), es.System(w.rt.IDs.New(), "test", "cancel", tenant), ref.ID)
				return err
			},
		} {
			w := newWorld(t)
			ref := w.queue(alice, "fail", operation.CopyOut)
			stop := w.work(nil)
			w.becomes(ref, operation.Failed)
			stop()
			if _, err := w.handler.Requeue(t.Context(), es.System(w.rt.IDs.New(), "test", "retry", tenant), ref.ID, 1); err != nil {
				t.Fatal(err)
			}
			if err := give(w, ref); err != nil {
				t.Fatal(err)
			}
			w.work(nil)
			w.becomes(ref, operation.Cancelled)
			if !w.hands.wasUndone("fail") || w.hands.started("fail") != 1 {
				t.Errorf("%s: undone %v, begun %d times", name, w.hands.undone, w.hands.started("fail"))
			}
		}
	})
	t.Run("OPS-02_what_cannot_be_undone_fails_visibly", func(t *testing.T) {
		w := newWorld(t)
		ref := w.queue(alice, "copy", operation.CopyOut)
		w.hands.undoFail = 1 << 30
		w.work(func(c *operations.Config) { c.GiveUp = 50 * time.Millisecond })
		proctest.Eventually(t, "it runs", func() bool { return w.hands.started("copy") == 1 })
		w.cancel(ref, alice)
		if f := w.becomes(ref, operation.Failed).Failure; f == nil || !strings.Contains(f.Message, "could not be removed") {
			t.Errorf("told as %+v", f)
		}
	})

	t.Run("GEN-08_work_without_progress_fails", func(t *testing.T) {
		w := newWorld(t)
		ref := w.queue(alice, "copy", operation.CopyOut)
		w.work(func(c *operations.Config) { c.Stall = 100 * time.Millisecond })
		if f := w.becomes(ref, operation.Failed).Failure; f.Code != fault.CodeTimeout {
			t.Errorf("told as %+v", f)
		}
	})

	t.Run("OPS-02_a_restart_goes_on_and_repeats_no_event", func(t *testing.T) {
		w := newWorld(t)
		running, waiting := w.queue(alice, "copy", operation.CopyOut), w.queue(alice, "quick", operation.CopyOut)
		stop := w.work(nil)
		proctest.Eventually(t, "it runs", func() bool { return w.hands.started("copy") == 1 })
		stop()
		if got := fmt.Sprint(w.events(running), w.events(waiting)); got != "[queued started] [queued]" {
			t.Errorf("after the stop: %s", got)
		}
		close(w.hands.gate("copy"))
		w.work(nil)
		w.becomes(running, operation.Succeeded)
		w.becomes(waiting, operation.Succeeded)
		if got := fmt.Sprint(w.events(running), w.events(waiting)); got != "[queued started succeeded] [queued started succeeded]" {
			t.Errorf("at the end: %s", got)
		}
		if w.hands.started("copy") != 2 || w.hands.wasUndone("copy") {
			t.Error("the work was not simply gone on with")
		}
	})

	t.Run("OPS-02_a_cancellation_outlives_its_worker", func(t *testing.T) {
		w := newWorld(t)
		ref := w.queue(alice, "copy", operation.CopyOut)
		stop := w.work(nil)
		proctest.Eventually(t, "it runs", func() bool { return w.hands.started("copy") == 1 })
		stop()
		w.cancel(ref, alice)
		w.work(nil)
		w.becomes(ref, operation.Cancelled)
		if w.hands.started("copy") != 1 || !w.hands.wasUndone("copy") {
			t.Error("work went on after it was cancelled")
		}
	})

	t.Run("OPS-02_retried_to_success", func(t *testing.T) {
		w := newWorld(t)
		ref := w.queue(alice, "fail", operation.CopyOut)
		w.work(nil)
		w.becomes(ref, operation.Failed)
		cmd := es.System(w.rt.IDs.New(), "test", "retry", tenant)
		if _, err := w.handler.Requeue(t.Context(), cmd, ref.ID, 1); err != nil {
			t.Fatal(err)
		}
		proctest.Eventually(t, "tried again", func() bool { return w.state(ref).Attempt == 2 && w.state(ref).Status == operation.Failed })
		if got := fmt.Sprint(w.events(ref)); got != "[queued started failed retried started failed]" {
			t.Errorf("events %s", got)
		}
	})

	t.Run("OPS-01_few_at_once_and_one_of_each_person_in_order", func(t *testing.T) {
		w := newWorld(t)
		var refs []operations.Ref
		for i := range 6 {
			refs = append(refs, w.queue(alice, fmt.Sprintf("quick-a%d", i), operation.CopyOut))
		}
		for i := range 3 {
			refs = append(refs, w.queue(bob, fmt.Sprintf("quick-b%d", i), operation.CopyOut))
		}
		w.work(nil)
		for _, ref := range refs {
			w.becomes(ref, operation.Succeeded)
		}
		w.hands.mu.Lock()
		defer w.hands.mu.Unlock()
		if w.hands.most > 2 || w.hands.overlap {
			t.Errorf("%d at once, overlap of one person's: %v", w.hands.most, w.hands.overlap)
		}
		of := map[byte][]string{}
		for _, p := range w.hands.begun {
			of[p[6]] = append(of[p[6]], p)
		}
		for who, list := range of {
			if !slices.IsSorted(list) {
				t.Errorf("order of %c: %v", who, list)
			}
		}
	})

	t.Run("AUD-01_steps_name_the_request_that_caused_them", func(t *testing.T) {
		w := newWorld(t)
		ref := w.queue(alice, "quick", operation.CopyOut)
		w.work(nil)
		w.becomes(ref, operation.Succeeded)
		var first es.Envelope
		for env, err := range es.Events(t.Context(), w.rt, operation.Aggregate.Stream(tenant, ref.ID), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if env.Revision == 0 {
				first = env
				continue
			}
			if env.Meta.Request != "request-of-quick" || env.Meta.Correlation != first.Meta.Correlation || env.Meta.Causation != first.ID || env.Meta.Actor.Part != operations.Name {
				t.Errorf("%s carries %+v", env.Name, env.Meta)
			}
		}
	})
}
