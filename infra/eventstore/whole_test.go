package eventstore_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/storetest"
)

func wholeEvent(kind string) eventstore.Event {
	return eventstore.Event{Recorded: es.Recorded{Raw: es.Raw{ID: uuid.New(), Type: kind, Data: []byte(`{}`)}}, ContentType: eventstore.ContentJSON}
}

// The end of a stream is known also where readers see nothing of it.
func TestHeadOfHiddenStreams(t *testing.T) {
	log := storetest.Open(t)
	ctx := t.Context()
	for _, stream := range []string{"plain", "truncated", "deleted", "gone"} {
		if _, err := log.AppendWhole(ctx, stream, es.NoStream(), wholeEvent("made"), wholeEvent("made"), wholeEvent("made")); err != nil {
			t.Fatal(err)
		}
	}
	cut := wholeEvent("$metadata")
	cut.Data = []byte(`{"$tb":99}`)
	if _, err := log.AppendWhole(ctx, "$$truncated", es.NoStream(), cut); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Delete(ctx, "deleted", es.Any()), log.Tombstone(ctx, "gone", es.Any())); err != nil {
		t.Fatal(err)
	}
	for stream, want := range map[string]es.Revision{"plain": 2, "truncated": 2, "deleted": 2, "never": es.NoRevision} {
		if got, err := log.Head(ctx, stream); err != nil || got != want {
			t.Errorf("%s: %d, %v", stream, got, err)
		}
	}
	if _, err := log.Head(ctx, "gone"); !errors.Is(err, es.ErrStreamDeleted) {
		t.Errorf("tombstoned: %v", err)
	}
}

// A copy needs the store's own events and the content types, which [es.Log] leaves out.
func TestReadWhole(t *testing.T) {
	log := storetest.Open(t)
	ctx := t.Context()
	blob := wholeEvent("blob")
	blob.ContentType, blob.Data = eventstore.ContentBinary, []byte{0, 255}
	w, err := log.AppendWhole(ctx, "a", es.NoStream(), wholeEvent("made"), blob)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.KeepLast(ctx, "a", 5); err != nil {
		t.Fatal(err)
	}
	var all []eventstore.Event
	for e, err := range log.ReadWhole(ctx, es.StartPosition) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	if len(all) != 3 || all[1].ContentType != eventstore.ContentBinary || string(all[1].Data) != "\x00\xff" || all[0].ContentType != eventstore.ContentJSON || all[2].Stream != "$$a" {
		t.Errorf("%+v", all)
	}
	for e, err := range log.ReadWhole(ctx, w.Position) {
		if err != nil || e.Position <= w.Position {
			t.Errorf("behind %d: %+v, %v", w.Position, e, err)
		}
	}
	if last, err := log.LastPosition(ctx); err != nil || last != all[2].Position {
		t.Errorf("last: %d, %v", last, err)
	}
	empty := storetest.Open(t)
	if last, err := empty.LastPosition(ctx); err != nil || last != es.StartPosition {
		t.Errorf("an empty log: %d, %v", last, err)
	}
	_, err = log.AppendWhole(ctx, "a", es.At(7), wholeEvent("made"))
	if at, ok := eventstore.CurrentRevision(err); !ok || at != 1 {
		t.Errorf("refused at %d, %v: %v", at, ok, err)
	}
}
