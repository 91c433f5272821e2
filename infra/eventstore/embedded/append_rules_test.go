package embedded

import (
	"context"
	"fmt"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
)

// outcome of an append, as the client tells it.
type outcome struct {
	err      string // "", "wrong version", "deleted"
	revision uint64
	length   int // events of the stream afterwards, all revisions ever written
}

// TestAppendRules goes through eventstore.md, "Append rules", with the
// unmodified client. The prepared stream holds the events a b c at 0 1 2.
func TestAppendRules(t *testing.T) {
	s := serve(t, Config{})
	c := connect(t, s)
	ctx := context.Background()
	a, b, d, x, y := uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New()
	const (
		missing = iota
		three
		deleted
		tombstoned
		metaOnly
	)
	cases := []struct {
		name     string
		stream   int
		expected esdb.ExpectedRevision
		ids      []uuid.UUID
		want     outcome
	}{
		{"tombstoned/any", tombstoned, esdb.Any{}, []uuid.UUID{x}, outcome{err: "deleted"}},
		{"tombstoned/no_stream", tombstoned, esdb.NoStream{}, []uuid.UUID{x}, outcome{err: "deleted"}},
		{"tombstoned/revision", tombstoned, esdb.Revision(2), []uuid.UUID{x}, outcome{err: "deleted"}},
		{"expected above current", three, esdb.Revision(3), []uuid.UUID{x}, outcome{err: "wrong version", length: 3}},
		{"expected above current on a missing stream", missing, esdb.Revision(0), []uuid.UUID{x}, outcome{err: "wrong version"}},
		{"expected equals current", three, esdb.Revision(2), []uuid.UUID{x, y}, outcome{revision: 4, length: 5}},
		{"E12 expected equals current with a used id", three, esdb.Revision(2), []uuid.UUID{a}, outcome{revision: 3, length: 4}},
		{"no_stream on a missing stream", missing, esdb.NoStream{}, []uuid.UUID{x}, outcome{revision: 0, length: 1}},
		{"expected below current, same ids", three, esdb.Revision(0), []uuid.UUID{b, d}, outcome{revision: 2, length: 3}},
		{"expected below current, first of the ids", three, esdb.Revision(0), []uuid.UUID{b}, outcome{revision: 1, length: 3}},
		{"expected below current, partly", three, esdb.Revision(0), []uuid.UUID{b, x}, outcome{err: "wrong version", length: 3}},
		{"expected below current, longer than what follows", three, esdb.Revision(0), []uuid.UUID{b, d, x}, outcome{err: "wrong version", length: 3}},
		{"expected below current, other ids", three, esdb.Revision(0), []uuid.UUID{x}, outcome{err: "wrong version", length: 3}},
		{"no_stream on an existing stream, same ids", three, esdb.NoStream{}, []uuid.UUID{a, b, d}, outcome{revision: 2, length: 3}},
		{"no_stream on an existing stream, other ids", three, esdb.NoStream{}, []uuid.UUID{x}, outcome{err: "wrong version", length: 3}},
		{"no_stream on a softly deleted stream", deleted, esdb.NoStream{}, []uuid.UUID{x}, outcome{revision: 3, length: 4}},
		{"revision on a softly deleted stream", deleted, esdb.Revision(2), []uuid.UUID{x}, outcome{revision: 3, length: 4}},
		{"any on a softly deleted stream", deleted, esdb.Any{}, []uuid.UUID{x}, outcome{revision: 3, length: 4}},
		{"any, every id known", three, esdb.Any{}, []uuid.UUID{a, b}, outcome{revision: 1, length: 3}},
		{"E13 any, partly known", three, esdb.Any{}, []uuid.UUID{a, x}, outcome{err: "wrong version", length: 3}},
		{"any, unknown ids", three, esdb.Any{}, []uuid.UUID{x, y}, outcome{revision: 4, length: 5}},
		{"any on a missing stream", missing, esdb.Any{}, []uuid.UUID{x}, outcome{revision: 0, length: 1}},
		{"stream_exists, every id known", three, esdb.StreamExists{}, []uuid.UUID{d}, outcome{revision: 2, length: 3}},
		{"stream_exists, partly known", three, esdb.StreamExists{}, []uuid.UUID{d, x}, outcome{err: "wrong version", length: 3}},
		{"stream_exists, unknown id", three, esdb.StreamExists{}, []uuid.UUID{x}, outcome{revision: 3, length: 4}},
		{"stream_exists on a missing stream", missing, esdb.StreamExists{}, []uuid.UUID{x}, outcome{err: "wrong version"}},
		{"stream_exists where only metadata is", metaOnly, esdb.StreamExists{}, []uuid.UUID{x}, outcome{err: "wrong version"}},
		{"stream_exists on a softly deleted stream", deleted, esdb.StreamExists{}, []uuid.UUID{x}, outcome{err: "deleted"}},
		{"no_stream where only metadata is", metaOnly, esdb.NoStream{}, []uuid.UUID{x}, outcome{revision: 0, length: 1}},
		{"zero events, right revision", three, esdb.Revision(2), nil, outcome{revision: 2, length: 3}},
		{"zero events, wrong revision", three, esdb.Revision(1), nil, outcome{err: "wrong version", length: 3}},
		{"zero events, any", three, esdb.Any{}, nil, outcome{revision: 2, length: 3}},
		{"the same id twice in one append", missing, esdb.NoStream{}, []uuid.UUID{x, x}, outcome{revision: 1, length: 2}},
	}
	for i, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			stream := fmt.Sprintf("rule-%d", i)
			switch tc.stream {
			case three, deleted, tombstoned:
				mustAppend(t, c, stream, esdb.NoStream{}, newEvent(a), newEvent(b), newEvent(d))
			case metaOnly:
				m := esdb.StreamMetadata{}
				m.SetMaxCount(100)
				setMetadata(t, c, stream, m)
			}
			if tc.stream == deleted {
				if _, err := c.DeleteStream(ctx, stream, esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}}); err != nil {
					t.Fatal(err)
				}
			}
			if tc.stream == tombstoned {
				if _, err := c.TombstoneStream(ctx, stream, esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Any{}}); err != nil {
					t.Fatal(err)
				}
			}
			events := make([]esdb.EventData, len(tc.ids))
			for i, id := range tc.ids {
				events[i] = newEvent(id)
			}
			w, err := c.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: tc.expected}, events...)
			switch tc.want.err {
			case "":
				if err != nil {
					t.Fatal(err)
				}
				if w.NextExpectedVersion != tc.want.revision {
					t.Errorf("revision %d, want %d", w.NextExpectedVersion, tc.want.revision)
				}
				if w.CommitPosition == 0 || w.CommitPosition != w.PreparePosition {
					t.Errorf("position %d/%d", w.CommitPosition, w.PreparePosition)
				}
				h, _ := s.store.readHead(stream)
				if at, ok, _ := s.store.positionAt(stream, int64(w.NextExpectedVersion)); !ok || at != w.CommitPosition {
					t.Errorf("the answer's position %d isn't that of its revision, %d", w.CommitPosition, at)
				}
				if h.deleted() {
					t.Error("the stream is still deleted")
				}
			case "wrong version":
				if code(err) != esdb.ErrorCodeWrongExpectedVersion {
					t.Fatal(err)
				}
			case "deleted":
				if code(err) != esdb.ErrorCodeStreamDeleted {
					t.Fatal(err)
				}
				return
			}
			h, err := s.store.readHead(stream)
			if err != nil || int(h.last)+1 != tc.want.length {
				t.Errorf("the stream has %d events, want %d (%v)", h.last+1, tc.want.length, err)
			}
		})
	}
}

// A retry of the append that revived a softly deleted stream is a repetition,
// although its events don't stand at the stream's very beginning.
func TestAppendRetryAfterRevival(t *testing.T) {
	c := connect(t, serve(t, Config{}))
	mustAppend(t, c, "s", esdb.NoStream{}, newEvents(3)...)
	if _, err := c.DeleteStream(context.Background(), "s", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Revision(2)}); err != nil {
		t.Fatal(err)
	}
	again := newEvents(2)
	first := mustAppend(t, c, "s", esdb.NoStream{}, again...)
	second := mustAppend(t, c, "s", esdb.NoStream{}, again...)
	if *first != *second || first.NextExpectedVersion != 4 {
		t.Fatalf("%+v, then %+v", first, second)
	}
}

// The answer to a repetition is the original one, also when the stream went on.
func TestAppendRepetitionAnswersOriginal(t *testing.T) {
	c := connect(t, serve(t, Config{}))
	e := newEvents(2)
	first := mustAppend(t, c, "s", esdb.NoStream{}, e...)
	mustAppend(t, c, "s", esdb.Revision(1), newEvents(3)...)
	for _, x := range []esdb.ExpectedRevision{esdb.NoStream{}, esdb.Any{}, esdb.StreamExists{}} {
		if again := mustAppend(t, c, "s", x, e...); *again != *first {
			t.Errorf("%T: %+v, first it was %+v", x, again, first)
		}
	}
}

// What metadata says beside hiding a stream outlives its revival, also where the
// metadata came in the same group of appends.
func TestRevivalKeepsMetadataOfItsOwnGroup(t *testing.T) {
	s := newTestStore(t, memOptions(newMemFS(t)))
	defer abandon(t, s)
	put(t, s, "s", expectation{}, 2)
	ctx := context.Background()
	answer := func() chan appendResult { return make(chan appendResult, 1) }
	group := []*appendRequest{
		{ctx: ctx, done: answer(), stream: "$$s", events: []proposed{{id: uuid.New(), kind: metadataType, contentType: contentJSON, data: []byte(`{"$tb":9223372036854775807,"$acl":{"$r":"ada"},"$maxCount":7}`)}}},
		{ctx: ctx, done: answer(), stream: "s", events: []proposed{{id: uuid.New(), kind: "made", contentType: contentJSON}}},
	}
	if err := s.onCommitGoroutine(ctx, func() { s.commitGroup(group) }); err != nil {
		t.Fatal(err)
	}
	for _, r := range group {
		if res := <-r.done; res.err != nil || res.wrong {
			t.Fatalf("%s: %+v", r.stream, res)
		}
	}
	body, err := s.lastBody(ctx, "$$s")
	if want := `{"$acl":{"$r":"ada"},"$maxCount":7,"$tb":2}`; err != nil || string(body) != want {
		t.Errorf("the metadata is %s, not %s; %v", body, want, err)
	}
}
