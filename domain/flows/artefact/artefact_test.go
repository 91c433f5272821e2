package artefact_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/operation"
)

func TestFlow(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	defer w.run(w.program)()
	published := w.create("published", script("code"))
	t.Run("ALG-05_published_with_its_files", func(t *testing.T) {
		w.publish(published)
		v := w.comes(published, algorithm.Published)
		m, err := w.disk.ArtefactManifest(ctx, acme, v.ID)
		if err != nil || v.Files == nil || v.Files.Count != 1 || m.Fingerprint != v.Files.Fingerprint || v.PublishedBy != alice ||
			v.Fingerprint != algorithm.FingerprintOf(v.Settings, m.Fingerprint) {
			t.Errorf("%+v, %+v, %v", v, m, err)
		}
	})
	t.Run("ALG-11_a_failed_publication_is_retried_to_success", func(t *testing.T) {
		w.put("gone/main.py")
		r := w.create("retried", script("gone"))
		if err := os.Rename(w.path("gone"), w.path("away")); err != nil {
			t.Fatal(err)
		}
		w.publish(r)
		v := w.comes(r, algorithm.PublishFailed)
		if v.Problem == "" {
			t.Error("nobody says why")
		}
		if err := os.Rename(w.path("away"), w.path("gone")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.operations.Retry(ctx, by(), v.Operation); err != nil {
			t.Fatal(err)
		}
		if v := w.comes(r, algorithm.Published); v.Problem != "" {
			t.Errorf("the problem stays: %s", v.Problem)
		}
	})
	t.Run("ALG-03_the_files_of_a_published_version_are_copied", func(t *testing.T) {
		r := w.create("based", algorithm.VersionInput{Label: "1", BasedOn: &published})
		w.comes(r, algorithm.Created)
		if _, err := os.Stat(w.path("based_1/main.py")); err != nil {
			t.Error(err)
		}
	})
	t.Run("ALG-11_an_edit_that_copies_to_the_same_place_ends_too", func(t *testing.T) {
		w.put("blocked_1/own.txt") // somebody's own: the copy does not overwrite it
		r := w.create("blocked", algorithm.VersionInput{Label: "1", BasedOn: &published})
		w.comes(r, algorithm.CreateFailed)
		if err := os.RemoveAll(w.path("blocked_1")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.algorithms.UpdateVersion(ctx, by(), algorithm.UpdateInput{VersionRef: r, BasedOn: &published}); err != nil {
			t.Fatal(err)
		}
		w.comes(r, algorithm.Created)
	})
	t.Run("OPS-02_what_a_failed_copy_left_goes_with_its_version", func(t *testing.T) {
		source := w.create("torn", script("code"))
		w.publish(source)
		w.comes(source, algorithm.Published)
		w.tear(source.Version)
		r := w.create("leaves", algorithm.VersionInput{Label: "1", BasedOn: &source})
		v := w.comes(r, algorithm.CreateFailed)
		if len(w.named(v.Operation)) == 0 {
			t.Fatal("the failed copy left nothing that could go")
		}
		if _, err := w.algorithms.DeleteVersion(ctx, by(), r, nil); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(30 * time.Second); ; {
			s, err := w.operations.Load(ctx, acme, v.Operation)
			if err != nil {
				t.Fatal(err)
			}
			left := w.named(v.Operation)
			if s.Status == operation.Cancelled && s.Withdrawn && len(left) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s, withdrawn %v, left %v", s.Status, s.Withdrawn, left)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if _, err := w.operations.Retry(ctx, by(), v.Operation); !fault.Is(err, fault.CodeInvalidState) {
			t.Errorf("it is retried: %v", err)
		}
	})
	t.Run("ALG-12_a_failed_deletion_goes_back_and_is_retried", func(t *testing.T) {
		r := w.create("deleted", script("code"))
		w.publish(r)
		w.comes(r, algorithm.Published)
		if err := os.WriteFile(w.broken(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.algorithms.DeleteVersion(ctx, by(), r, nil); err != nil {
			t.Fatal(err)
		}
		waitFailed(t, w, r)
		v := w.comes(r, algorithm.Published)
		if v.Problem == "" || v.Fingerprint == "" {
			t.Errorf("%+v", v)
		}
		if err := os.Remove(w.broken()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.operations.Retry(ctx, by(), v.Operation); err != nil {
			t.Fatal(err)
		}
		w.comes(r, algorithm.Deleted)
		// The name is free soon after: it is the last step.
		for ctx.Err() == nil {
			_, err := w.algorithms.Create(ctx, by(), algorithm.CreateInput{Project: vision, Name: "deleted", VersionInput: script("code")})
			if err == nil {
				break
			}
			if !fault.Is(err, fault.CodeNameTaken) {
				t.Fatal(err)
			}
		}
	})
}

// waitFailed waits until a version has a problem.
func waitFailed(t *testing.T, w *world, r algorithm.VersionRef) {
	t.Helper()
	for ctx := t.Context(); ctx.Err() == nil; {
		if v := w.comes(r, algorithm.Published); v.Problem != "" {
			return
		}
		w.comes(r, algorithm.Published)
	}
}

// TestCancel: nobody works while the publication is taken back, so it is
// cancelled before anything was done, and nothing is left of it.
func TestCancel(t *testing.T) {
	t.Run("OPS-03_a_publication_that_waits_is_taken_back", func(t *testing.T) {
		w := newWorld(t)
		r := w.create("cancelled", script("code"))
		w.publish(r)
		started := last(t, w, r, "algorithm.publication_started.v1")
		if err := w.flow.Process().On[started.Name](t.Context(), started); err != nil {
			t.Fatal(err)
		}
		op := started.Event.(algorithm.PublicationStarted).Operation
		if _, err := w.operations.Cancel(t.Context(), by(), op); err != nil {
			t.Fatal(err)
		}
		defer w.run(w.program)()
		v := w.comes(r, algorithm.Created)
		if _, err := w.disk.ArtefactManifest(t.Context(), acme, v.ID); err == nil || v.Artefact {
			t.Errorf("something is left: %+v, %v", v, err)
		}
	})
}

func last(t *testing.T, w *world, r algorithm.VersionRef, name string) (found es.Envelope) {
	t.Helper()
	for env, err := range es.Events(t.Context(), w.rt, algorithm.Aggregate.Stream(acme, r.Algorithm), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if env.Name == name {
			found = env
		}
	}
	return found
}

// TestMayRetry: what people are shown of a retry is what the command decides,
// in every state that an operation and its version come through.
func TestMayRetry(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	system := func() es.Command { return es.System(uuid.New(), "test", "test", acme) }
	begin := func(t *testing.T, name string) (algorithm.VersionRef, uuid.UUID) {
		t.Helper()
		r := w.create(name, script("code"))
		w.publish(r)
		started := last(t, w, r, "algorithm.publication_started.v1")
		if err := w.flow.Process().On[started.Name](ctx, started); err != nil {
			t.Fatal(err)
		}
		return r, started.Event.(algorithm.PublicationStarted).Operation
	}
	// hear tells the process of how the operation ended.
	hear := func(t *testing.T, op uuid.UUID) {
		t.Helper()
		for env, err := range es.Events(ctx, w.rt, operation.Aggregate.Stream(acme, op), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if on, ok := w.flow.Process().On[env.Name]; ok {
				if err := on(ctx, env); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	must := func(_ es.Outcome[operation.State], err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	failed := operation.Failure{Code: "INTERNAL", Message: "x"}
	for name, c := range map[string]struct {
		come func(t *testing.T, r algorithm.VersionRef, op uuid.UUID)
		may  bool
	}{
		"ALG-11_queued":  {func(*testing.T, algorithm.VersionRef, uuid.UUID) {}, false},
		"ALG-11_running": {func(_ *testing.T, _ algorithm.VersionRef, op uuid.UUID) { must(w.operations.Start(ctx, system(), op)) }, false},
		"ALG-11_failed": {func(t *testing.T, _ algorithm.VersionRef, op uuid.UUID) {
			must(w.operations.Start(ctx, system(), op))
			must(w.operations.Fail(ctx, system(), op, 1, failed, operation.Amount{}))
			hear(t, op)
		}, true},
		"ALG-11_failed_and_published_anew": {func(t *testing.T, r algorithm.VersionRef, op uuid.UUID) {
			must(w.operations.Start(ctx, system(), op))
			must(w.operations.Fail(ctx, system(), op, 1, failed, operation.Amount{}))
			hear(t, op)
			w.publish(r)
		}, false},
		"ALG-11_cancelled": {func(t *testing.T, _ algorithm.VersionRef, op uuid.UUID) {
			if _, err := w.operations.Cancel(ctx, by(), op); err != nil {
				t.Fatal(err)
			}
			hear(t, op)
		}, false},
		"ALG-11_succeeded": {func(t *testing.T, _ algorithm.VersionRef, op uuid.UUID) {
			must(w.operations.Start(ctx, system(), op))
			must(w.operations.Succeed(ctx, system(), op, 1, operation.Result{Fingerprint: "f", Files: 1}, operation.Amount{}))
			hear(t, op)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, op := begin(t, strings.ReplaceAll(name, "-", "_"))
			c.come(t, r, op)
			g, err := everybody{}.Grants(ctx, acme, by().Actor.User)
			if err != nil {
				t.Fatal(err)
			}
			s, err := w.operations.Load(ctx, acme, op)
			if err != nil {
				t.Fatal(err)
			}
			told := w.operations.MayRetry(ctx, g, s)
			if (told == nil) != c.may || told != nil && !fault.Is(told, fault.CodeInvalidState) {
				t.Errorf("one is told %v", told)
			}
			if _, err := w.operations.Retry(ctx, by(), op); (err == nil) != (told == nil) || err != nil && err.Error() != told.Error() {
				t.Errorf("one is told %v, then %v", told, err)
			}
		})
	}
}

// TestLate: the process is behind while a person retries. The end of the first
// attempt, heard of late, is not the end of the second.
func TestLate(t *testing.T) {
	t.Run("ALG-11_a_retry_before_the_failure_was_heard_of", func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		r := w.create("late", script("code"))
		w.publish(r)
		on := w.flow.Process().On
		started := last(t, w, r, "algorithm.publication_started.v1")
		if err := on[started.Name](ctx, started); err != nil {
			t.Fatal(err)
		}
		op := started.Event.(algorithm.PublicationStarted).Operation
		system := func() es.Command { return es.System(uuid.New(), "test", "test", acme) }
		if _, err := w.operations.Start(ctx, system(), op); err != nil {
			t.Fatal(err)
		}
		if _, err := w.operations.Fail(ctx, system(), op, 1, operation.Failure{Code: "INTERNAL", Message: "x"}, operation.Amount{}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.operations.Retry(ctx, by(), op); err != nil {
			t.Fatal(err)
		}
		defer w.run(w.program)() // hears of it all only now
		w.comes(r, algorithm.Published)
	})
}

var errDied = errors.New("the program died")

// dying is the log of a program that dies at its n-th append: before or after
// it is written.
type dying struct {
	es.Log
	mu    sync.Mutex
	left  int
	after bool
	died  chan struct{}
}

func (d *dying) Append(ctx context.Context, stream string, expected es.Expected, events ...es.Raw) (es.Written, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	switch {
	case d.left > 0:
		return d.Log.Append(ctx, stream, expected, events...)
	case d.left == 0:
		if d.after {
			_, _ = d.Log.Append(ctx, stream, expected, events...)
		}
		close(d.died)
	}
	return es.Written{}, errDied
}

// TestDied lets the program die at each append of a publication and of a
// deletion; the next one finishes both.
func TestDied(t *testing.T) {
	w := newWorld(t)
	for n := 1; n <= 4; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("W2_died_at_append_%d_after_%v", n, after), func(t *testing.T) {
				r := w.create(fmt.Sprintf("died%d_%v", n, after), script("code"))
				w.publish(r)
				life := func() {
					d := &dying{Log: w.log, left: n, after: after, died: make(chan struct{})}
					stop := w.run(w.newProgram(d))
					<-d.died
					stop()
				}
				life()
				stop := w.run(w.newProgram(w.log))
				v := w.comes(r, algorithm.Published)
				stop()
				if m, err := w.disk.ArtefactManifest(t.Context(), acme, v.ID); err != nil || m.Fingerprint != v.Files.Fingerprint {
					t.Errorf("%+v, %v", m, err)
				}
				if _, err := w.algorithms.DeleteVersion(t.Context(), by(), r, nil); err != nil {
					t.Fatal(err)
				}
				life()
				stop = w.run(w.newProgram(w.log))
				w.comes(r, algorithm.Deleted)
				stop()
				if _, err := w.disk.ArtefactManifest(t.Context(), acme, v.ID); err == nil {
					t.Error("files are left")
				}
			})
		}
	}
}
