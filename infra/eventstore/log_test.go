package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func raw(kind string, n int) es.Raw {
	return es.Raw{ID: uuid.New(), Type: kind, Data: fmt.Appendf(nil, `{"n":%d}`, n), Metadata: []byte(`{"by":"test"}`)}
}

func raws(kind string, n int) []es.Raw {
	out := make([]es.Raw, n)
	for i := range out {
		out[i] = raw(kind, i)
	}
	return out
}

func collect(t *testing.T, seq func(func(es.Recorded, error) bool)) []es.Recorded {
	t.Helper()
	var out []es.Recorded
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestLogAppendAndRead(t *testing.T) {
	ctx := t.Context()
	log := storetest.Open(t)
	events := raws("thing.made.v1", 10)
	w, err := log.Append(ctx, "thing-1", es.NoStream(), events...)
	if err != nil {
		t.Fatal(err)
	}
	if w.Revision != 9 || w.Position == 0 {
		t.Fatalf("written: %+v", w)
	}
	got := collect(t, log.ReadStream(ctx, "thing-1", 0, es.Forward, es.Everything))
	if len(got) != 10 || got[3].ID != events[3].ID || string(got[3].Metadata) != `{"by":"test"}` || got[3].Revision != 3 {
		t.Fatalf("read %d events, %+v", len(got), got)
	}
	back := collect(t, log.ReadStream(ctx, "thing-1", es.NoRevision, es.Backward, 3))
	if len(back) != 3 || back[0].Revision != 9 || back[2].Revision != 7 {
		t.Fatalf("backward: %+v", back)
	}
	all := collect(t, log.ReadAll(ctx, got[4].Position, es.Forward, 2))
	if len(all) != 2 || all[0].Revision != 5 {
		t.Fatalf("all forward: %+v", all)
	}
	for _, err := range log.ReadStream(ctx, "nowhere", 0, es.Forward, 1) {
		if !errors.Is(err, es.ErrStreamNotFound) {
			t.Fatal(err)
		}
	}
	if _, err := log.Append(ctx, "thing-1", es.NoStream(), raw("thing.made.v1", 1)); !errors.Is(err, es.ErrWrongRevision) {
		t.Fatal(err)
	}
}

func TestSubscriptionFollows(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	log := storetest.Open(t)
	if _, err := log.Append(ctx, "thing-1", es.Any(), raws("thing.made.v1", 10)...); err != nil {
		t.Fatal(err)
	}
	sub, err := log.Subscribe(ctx, es.FromStart(), es.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	n := 0
	for m := range sub.Messages() {
		if m.Kind == es.MessageCaughtUp {
			break
		}
		if m.Kind == es.MessageEvent {
			n++
		}
	}
	if n != 10 {
		t.Fatal(n, sub.Err())
	}
	go func() {
		_, _ = log.Append(ctx, "thing-2", es.Any(), raws("thing.made.v1", 3)...)
	}()
	for m := range sub.Messages() {
		if m.Kind == es.MessageEvent {
			if n++; n == 13 {
				break
			}
		}
	}
	if n != 13 {
		t.Fatal(n, sub.Err())
	}
}
