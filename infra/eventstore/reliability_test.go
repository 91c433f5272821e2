package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/eventstore/storetest"
)

// A call ends with its context, whatever the server does, and the log works
// again once the server does.
func TestDeadlines(t *testing.T) {
	server := storetest.Serve(t, embedded.Config{})
	proxy := storetest.NewProxy(t, server.Address())
	log := storetest.Connect(t, eventstore.Config{Address: proxy.Address(), CallTimeout: 1500 * time.Millisecond})
	mustAppend(t, log, "s", es.NoStream(), raw("made", 1))
	calls := map[string]func(context.Context) error{
		"Append": func(ctx context.Context) error {
			_, err := log.Append(ctx, "s", es.Any(), raw("made", 1))
			return err
		},
		"Delete":    func(ctx context.Context) error { return log.Delete(ctx, "s2", es.Any()) },
		"Tombstone": func(ctx context.Context) error { return log.Tombstone(ctx, "s3", es.Any()) },
		"KeepLast":  func(ctx context.Context) error { return log.KeepLast(ctx, "s", 5) },
		"ReadStream": func(ctx context.Context) error {
			for _, err := range log.ReadStream(ctx, "s", 0, es.Forward, 1) {
				return err
			}
			return nil
		},
		"ReadAll": func(ctx context.Context) error {
			for _, err := range log.ReadAll(ctx, 0, es.Forward, 1) {
				return err
			}
			return nil
		},
		"Subscribe from the end": func(ctx context.Context) error {
			s, err := log.Subscribe(ctx, es.FromEnd(), es.Filter{})
			if err == nil {
				s.Close()
			}
			return err
		},
	}
	proxy.SilenceAll(true)
	t.Run("silent server", func(t *testing.T) {
		for name, f := range calls {
			for own, limit := range map[string]time.Duration{"own deadline": 3 * time.Second, "context's deadline": time.Second, "cancelled": time.Second} {
				t.Run(name+", "+own, func(t *testing.T) {
					t.Parallel()
					ctx, want := t.Context(), context.DeadlineExceeded
					var cancel context.CancelFunc
					switch own {
					case "context's deadline":
						ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
						defer cancel()
					case "cancelled":
						ctx, cancel = context.WithCancel(ctx)
						time.AfterFunc(200*time.Millisecond, cancel)
						want = context.Canceled
					}
					began := time.Now()
					err := f(ctx)
					if d := time.Since(began); d > limit+2*time.Second {
						t.Errorf("it took %v", d)
					}
					if !errors.Is(err, es.ErrUnavailable) || !errors.Is(err, want) {
						t.Errorf("error: %v", err)
					}
				})
			}
		}
	})
	proxy.SilenceAll(false)
	proxy.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := log.Append(ctx, "after", es.NoStream(), raw("made", 1)); err != nil {
		t.Fatal(err)
	}
}

// A black hole between client and server is noticed within one call, which
// still succeeds over another connection.
func TestAppendGoesOnOverAnotherConnection(t *testing.T) {
	server := storetest.Serve(t, embedded.Config{})
	proxy := storetest.NewProxy(t, server.Address())
	log := storetest.Connect(t, eventstore.Config{Address: proxy.Address()})
	mustAppend(t, log, "s", es.NoStream(), raw("made", 1))
	proxy.Silence()
	mustAppend(t, log, "s", es.At(0), raw("made", 1))
	if got := collect(t, log.ReadStream(t.Context(), "s", 0, es.Forward, 10)); len(got) != 2 {
		t.Fatalf("%d events", len(got))
	}
}

// An append whose answer is lost is retried with the same ids and is there once.
func TestAppendWithUnknownOutcomeIsThereOnce(t *testing.T) {
	server := storetest.Serve(t, embedded.Config{})
	proxy := storetest.NewProxy(t, server.Address())
	log := storetest.Connect(t, eventstore.Config{Address: proxy.Address()})
	for i := range 20 {
		for name, x := range map[string]es.Expected{"any": es.Any(), "none": es.NoStream(), "rev": es.At(0)} {
			stream := fmt.Sprint(name, "-", i)
			first := 0
			if name == "rev" {
				mustAppend(t, log, stream, es.NoStream(), raw("made", 0))
				first = 1
			}
			proxy.CutNextAnswer()
			w := mustAppend(t, log, stream, x, raws("made", 3)...)
			if int(w.Revision) != first+2 {
				t.Fatalf("%s: revision %d", stream, w.Revision)
			}
			if got := collect(t, log.ReadStream(t.Context(), stream, 0, es.Forward, 10)); len(got) != first+3 {
				t.Fatalf("%s: %d events", stream, len(got))
			}
		}
	}
}

// A read that loses its connection in the middle goes on where it was.
func TestReadGoesOnOverAnotherConnection(t *testing.T) {
	server := storetest.Serve(t, embedded.Config{})
	proxy := storetest.NewProxy(t, server.Address())
	log := storetest.Connect(t, eventstore.Config{Address: proxy.Address()})
	const n = 3000
	for range n / 1000 {
		mustAppend(t, log, "s", es.Any(), raws("made", 1000)...)
	}
	reads := map[string]func(func(es.Recorded, error) bool){
		"stream forward":  log.ReadStream(t.Context(), "s", 0, es.Forward, es.Everything),
		"stream backward": log.ReadStream(t.Context(), "s", es.NoRevision, es.Backward, es.Everything),
		"all forward":     log.ReadAll(t.Context(), es.StartPosition, es.Forward, es.Everything),
		"all backward":    log.ReadAll(t.Context(), es.StartPosition, es.Backward, es.Everything),
		"all, limited":    log.ReadAll(t.Context(), es.StartPosition, es.Forward, n),
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			i := 0
			for e, err := range read {
				if err != nil {
					t.Fatal(err)
				}
				want := es.Revision(i)
				if strings.HasSuffix(name, "backward") {
					want = es.Revision(n - 1 - i)
				}
				if e.Revision != want {
					t.Fatalf("revision %d where %d was due", e.Revision, want)
				}
				if i++; i%1000 == 500 {
					proxy.Cut()
				}
			}
			if i != n {
				t.Fatalf("%d events", i)
			}
		})
	}
}

// The kinds of errors that callers tell apart.
func TestErrorKinds(t *testing.T) {
	log := storetest.Open(t)
	ctx := t.Context()
	mustAppend(t, log, "s", es.NoStream(), raws("made", 3)...)
	mustAppend(t, log, "ended", es.NoStream(), raw("made", 1))
	if err := log.Tombstone(ctx, "ended", es.At(0)); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, log, "deleted", es.NoStream(), raw("made", 1))
	if err := log.Delete(ctx, "deleted", es.At(0)); err != nil {
		t.Fatal(err)
	}
	big := raw("made", 1)
	big.Data = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	huge := raw("made", 1)
	huge.Data = []byte(`"` + strings.Repeat("x", 20<<20) + `"`)
	known := raw("made", 1)
	mustAppend(t, log, "known", es.NoStream(), known)
	readErr := func(stream string) error {
		for _, err := range log.ReadStream(ctx, stream, 0, es.Forward, 1) {
			return err
		}
		return nil
	}
	appendErr := func(stream string, x es.Expected, events ...es.Raw) error {
		_, err := log.Append(ctx, stream, x, events...)
		return err
	}
	for name, tc := range map[string]struct{ got, want error }{
		"append, wrong revision":      {appendErr("s", es.At(7), raw("made", 1)), es.ErrWrongRevision},
		"append, stream is there":     {appendErr("s", es.NoStream(), raw("made", 1)), es.ErrWrongRevision},
		"append, stream is not there": {appendErr("missing", es.StreamExists(), raw("made", 1)), es.ErrWrongRevision},
		"E13 append, partly known":    {appendErr("known", es.Any(), known, raw("made", 2)), es.ErrWrongRevision},
		"append, tombstoned":          {appendErr("ended", es.Any(), raw("made", 1)), es.ErrStreamDeleted},
		"append, too large":           {appendErr("s", es.Any(), big), es.ErrTooLarge},
		"append, far too large":       {appendErr("s", es.Any(), huge), es.ErrTooLarge},
		"E12 append, used id":         {appendErr("known", es.At(0), known), nil},
		"read, missing":               {readErr("missing"), es.ErrStreamNotFound},
		"read, deleted":               {readErr("deleted"), es.ErrStreamNotFound},
		"read, tombstoned":            {readErr("ended"), es.ErrStreamDeleted},
		"delete, wrong revision":      {log.Delete(ctx, "s", es.At(7)), es.ErrWrongRevision},
		"delete, tombstoned":          {log.Delete(ctx, "ended", es.Any()), es.ErrStreamDeleted},
		"tombstone, wrong revision":   {log.Tombstone(ctx, "s", es.At(7)), es.ErrWrongRevision},
		"tombstone, tombstoned":       {log.Tombstone(ctx, "ended", es.Any()), es.ErrStreamDeleted},
	} {
		if !errors.Is(tc.got, tc.want) {
			t.Errorf("%s: %v", name, tc.got)
		}
	}
	for name, err := range map[string]error{
		"no id":   appendErr("s", es.Any(), es.Raw{Type: "made"}),
		"no type": appendErr("s", es.Any(), es.Raw{ID: uuid.New()}),
		"no name": appendErr("", es.Any(), raw("made", 1)),
		"keep 0":  log.KeepLast(ctx, "s", 0),
	} {
		if err == nil || errors.Is(err, es.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeepLast(t *testing.T) {
	log := storetest.Open(t)
	ctx := t.Context()
	mustAppend(t, log, "s", es.NoStream(), raws("made", 10)...)
	mustAppend(t, log, "$$s", es.NoStream(), es.Raw{ID: uuid.New(), Type: "$metadata", Data: []byte(`{"$maxCount":9,"color":"red"}`)})
	for range 2 { // the second time changes nothing
		if err := log.KeepLast(ctx, "s", 3); err != nil {
			t.Fatal(err)
		}
	}
	got := collect(t, log.ReadStream(ctx, "s", 0, es.Forward, es.Everything))
	if len(got) != 3 || got[0].Revision != 7 {
		t.Fatalf("%+v", got)
	}
	meta := collect(t, log.ReadStream(ctx, "$$s", es.NoRevision, es.Backward, 1))
	if meta[0].Revision != 1 || string(meta[0].Data) != `{"$maxCount":3,"color":"red"}` {
		t.Fatalf("%d %s", meta[0].Revision, meta[0].Data)
	}
}

// Opening fails in time, and with the reason, where nobody answers.
func TestOpenWithoutServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := eventstore.Open(ctx, eventstore.Config{Address: "unix:" + storetest.Socket(t)})
	if !errors.Is(err, es.ErrUnavailable) || !strings.Contains(err.Error(), "no such file") {
		t.Fatal(err)
	}
}

// Limits count what the caller gets, not the store's own events in between.
func TestReadAllLimit(t *testing.T) {
	log := storetest.Open(t)
	ctx := t.Context()
	for i := range 20 {
		stream := fmt.Sprint("s-", i)
		mustAppend(t, log, stream, es.NoStream(), raw("made", i))
		if err := log.KeepLast(ctx, stream, 5); err != nil {
			t.Fatal(err)
		}
	}
	all := collect(t, log.ReadAll(ctx, es.StartPosition, es.Forward, es.Everything))
	if len(all) != 20 {
		t.Fatalf("%d events", len(all))
	}
	for limit := range 25 {
		want := min(limit, 20)
		if got := collect(t, log.ReadAll(ctx, es.StartPosition, es.Forward, limit)); len(got) != want {
			t.Errorf("forward %d: %d", limit, len(got))
		}
		if got := collect(t, log.ReadAll(ctx, es.StartPosition, es.Backward, limit)); len(got) != want {
			t.Errorf("backward %d: %d", limit, len(got))
		}
	}
	behind := collect(t, log.ReadAll(ctx, all[4].Position, es.Forward, 3))
	before := collect(t, log.ReadAll(ctx, all[4].Position, es.Backward, 3))
	if len(behind) != 3 || behind[0].ID != all[5].ID || len(before) != 3 || before[0].ID != all[3].ID {
		t.Errorf("behind %v, before %v", behind, before)
	}
}

// Zero events check the expectation and tell where the stream stands.
func TestAppendNothing(t *testing.T) {
	log := storetest.Open(t)
	if w := mustAppend(t, log, "s", es.NoStream()); w.Revision != es.NoRevision || w.Position != es.StartPosition {
		t.Errorf("%+v", w)
	}
	want := mustAppend(t, log, "s", es.NoStream(), raw("made", 1))
	if w := mustAppend(t, log, "s", es.At(0)); w != want {
		t.Errorf("%+v, want %+v", w, want)
	}
}

// A delete or a tombstone whose answer is lost has succeeded; what the server
// says to the repetition is no error.
func TestDeleteWithUnknownOutcomeSucceeds(t *testing.T) {
	server := storetest.Serve(t, embedded.Config{})
	proxy := storetest.NewProxy(t, server.Address())
	log := storetest.Connect(t, eventstore.Config{Address: proxy.Address()})
	for name, end := range map[string]func(context.Context, string, es.Expected) error{"delete": log.Delete, "tombstone": log.Tombstone} {
		for i := range 5 {
			for which, x := range map[string]es.Expected{"any": es.Any(), "exists": es.StreamExists(), "rev": es.At(1)} {
				stream := fmt.Sprint(name, "-", which, "-", i)
				mustAppend(t, log, stream, es.NoStream(), raws("made", 2)...)
				proxy.CutNextAnswer()
				if err := end(t.Context(), stream, x); err != nil {
					t.Fatalf("%s: %v", stream, err)
				}
			}
		}
	}
	if err := log.Delete(t.Context(), "delete-any-0", es.StreamExists()); err == nil {
		t.Error("a delete of what others have deleted succeeds")
	}
}
