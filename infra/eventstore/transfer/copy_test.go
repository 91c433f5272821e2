package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(kind string) eventstore.Event {
	return eventstore.Event{
		Recorded:    es.Recorded{Raw: es.Raw{ID: uuid.New(), Type: kind, Data: fmt.Appendf(nil, `{"n": %d}`, rand.N(1000)), Metadata: []byte(`{"by": "ada"}`)}},
		ContentType: eventstore.ContentJSON,
	}
}

func blob() eventstore.Event {
	e := event("blob")
	e.ContentType, e.Data, e.Metadata = eventstore.ContentBinary, []byte{0, 1, 2, 255}, nil
	return e
}

func meta(text string) eventstore.Event {
	e := event(metadataType)
	e.Data, e.Metadata = []byte(text), nil
	return e
}

func put(t *testing.T, log *eventstore.Log, stream string, events ...eventstore.Event) {
	t.Helper()
	if _, err := log.AppendWhole(t.Context(), stream, es.Any(), events...); err != nil {
		t.Fatal(err)
	}
}

// history writes something of everything that a log can hold.
func history(t *testing.T, log *eventstore.Log) {
	t.Helper()
	for i := range 40 {
		put(t, log, fmt.Sprintf("order-%d", i%7), event("placed"), blob(), event("paid"))
	}
	put(t, log, "$$order-1", meta(`{"$maxCount": 3, "$acl": {"$r": ["ada"]}, "own": "x"}`))
	put(t, log, "$$order-2", meta(`{"$tb":4}`))
	put(t, log, "$statistics", event("$stats"))
	put(t, log, "$$$statistics", meta(`{"$maxCount":1}`))
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(log.Delete(t.Context(), "order-3", es.Any()))
	put(t, log, "order-4", event("sent"))
	ok(log.Delete(t.Context(), "order-4", es.Any()))
	put(t, log, "order-4", event("placed again"), event("paid"))
	put(t, log, "order-4", event("sent"))
	put(t, log, "$$never-written", meta(`{"$maxAge":100000}`))
	put(t, log, "$$order-5", meta(`{"$maxCount":50}`))
	ok(log.Tombstone(t.Context(), "order-5", es.Any()))
	ok(log.Tombstone(t.Context(), "never-there", es.Any()))
	put(t, log, "order-6", event("sent"))
	ok(log.Tombstone(t.Context(), "order-6", es.Any()))
}

// line is an event in a form that can be compared.
func line(e eventstore.Event, revision bool) string {
	id := e.ID.String()
	if e.Type == tombstoneType {
		id = "tombstone"
	}
	at := ""
	if revision && !strings.HasPrefix(e.Stream, "$") {
		at = fmt.Sprint(e.Revision)
	}
	return fmt.Sprintf("%s@%s %s %s %s %q %q", at, e.Stream, id, e.Type, e.ContentType, e.Data, e.Metadata)
}

// lines reads the history of a store; metadata that its server wrote is left
// out, which is known by what the source doesn't have.
func lines(t *testing.T, log *eventstore.Log, known map[uuid.UUID]bool) (all []string, ids map[uuid.UUID]bool) {
	t.Helper()
	ids = map[uuid.UUID]bool{}
	for e, err := range log.ReadWhole(t.Context(), es.StartPosition) {
		if err != nil {
			t.Fatal(err)
		}
		own := strings.HasPrefix(e.Stream, "$") && !strings.HasPrefix(e.Stream, "$$") || strings.HasPrefix(e.Stream, "$$$")
		if own || known != nil && e.Type == metadataType && !known[e.ID] {
			continue
		}
		if ids[e.ID] {
			t.Errorf("%s is there twice", e.ID)
		}
		ids[e.ID] = true
		all = append(all, line(e, true))
	}
	return all, ids
}

func sameHistory(t *testing.T, from, to *eventstore.Log) {
	t.Helper()
	a, ids := lines(t, from, nil)
	b, _ := lines(t, to, ids)
	if len(a) != len(b) {
		t.Errorf("%d events became %d", len(a), len(b))
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("event %d was\n%s and became\n%s", i, a[i], b[i])
		}
	}
}

// sameReaders compares what readers of the streams see, which hangs on metadata.
func sameReaders(t *testing.T, from, to *eventstore.Log) {
	t.Helper()
	see := func(log *eventstore.Log, stream string) string {
		var seen []string
		for e, err := range log.ReadStream(t.Context(), stream, 0, es.Forward, es.Everything) {
			switch {
			case errors.Is(err, es.ErrStreamNotFound), errors.Is(err, es.ErrStreamDeleted):
				return errors.Unwrap(err).Error()[:14]
			case err != nil:
				t.Fatal(err)
			}
			seen = append(seen, e.ID.String())
		}
		return strings.Join(seen, " ")
	}
	for i := range 7 {
		stream := fmt.Sprintf("order-%d", i)
		if a, b := see(from, stream), see(to, stream); a != b {
			t.Errorf("%s: readers saw\n%s and now see\n%s", stream, a, b)
		}
	}
}

func TestCopyThereAndBack(t *testing.T) {
	a, b, c := storetest.Open(t), storetest.Open(t), storetest.Open(t)
	history(t, a)
	mapPath := filepath.Join(t.TempDir(), "map")
	rep, err := Run(t.Context(), Config{From: a, To: b, MapPath: mapPath, MapEvery: 10, Compare: true})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Copied == 0 || rep.Compared != rep.Copied || rep.Skipped != 2 || rep.Found != 0 {
		t.Errorf("%+v", rep)
	}
	sameHistory(t, a, b)
	sameReaders(t, a, b)
	if _, err := Run(t.Context(), Config{From: b, To: c, MapPath: mapPath + "2", Compare: true}); err != nil {
		t.Fatal(err)
	}
	sameHistory(t, a, c)
	sameReaders(t, a, c)

	pairs := readMap(t, mapPath)
	if len(pairs) < int(rep.Copied)/10-5 || pairs[0].Events != 1 || pairs[0].Source != rep.First.Source {
		t.Errorf("map of %d lines, first %+v, report %+v", len(pairs), pairs[0], rep)
	}
	at := map[es.Position]uuid.UUID{}
	for e, err := range b.ReadWhole(t.Context(), es.StartPosition) {
		if err != nil {
			t.Fatal(err)
		}
		at[e.Position] = e.ID
	}
	for e, err := range a.ReadWhole(t.Context(), es.StartPosition) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pairs {
			if p.Source == e.Position && (p.Event != e.ID || at[p.Target] != e.ID) {
				t.Errorf("the map says %+v, where %s and %s are", p, e.ID, at[p.Target])
			}
		}
	}

	// A source that has grown: a second run brings the rest.
	put(t, a, "order-1", event("late"))
	again, err := Run(t.Context(), Config{From: a, To: b, MapPath: mapPath, Compare: true})
	if err != nil || again.Copied != 1 || again.Found != rep.Copied {
		t.Errorf("%+v, %v", again, err)
	}
	sameHistory(t, a, b)
}

func readMap(t *testing.T, path string) (pairs []Pair) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(text) {
		var p Pair
		if err := json.Unmarshal(l, &p); err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// A copy that is cut off at any event goes on, with its map, without it, and
// with one whose last line was cut off.
func TestCopyGoesOn(t *testing.T) {
	a := storetest.Open(t)
	history(t, a)
	for _, with := range []string{"its map", "no map", "a torn map"} {
		t.Run(with, func(t *testing.T) {
			b := storetest.Open(t)
			mapPath := filepath.Join(t.TempDir(), "map")
			runs := 0
			for {
				ctx, cancel := context.WithCancel(t.Context())
				left := rand.N(12)
				_, err := Run(ctx, Config{From: a, To: b, MapPath: mapPath, MapEvery: 5, Progress: func(p Progress) {
					if left--; p.Step == "copy" && left < 0 {
						cancel()
					}
				}})
				cancel()
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if runs++; runs > 1000 {
					t.Fatal("no end")
				}
				switch with {
				case "no map":
					_ = os.Remove(mapPath)
				case "a torn map":
					if text, err := os.ReadFile(mapPath); err == nil && len(text) > 7 {
						_ = os.WriteFile(mapPath, text[:len(text)-7], 0o600)
					}
				}
			}
			if runs < 3 {
				t.Errorf("cut off %d times only", runs)
			}
			sameHistory(t, a, b)
			sameReaders(t, a, b)
		})
	}
}

// Answers that are lost on the way are no reason to write anything twice.
func TestCopyOverLossyNetwork(t *testing.T) {
	a := storetest.Open(t)
	history(t, a)
	server := storetest.Serve(t, embedded.Config{})
	proxy := storetest.NewProxy(t, server.Address())
	b := storetest.Connect(t, eventstore.Config{Address: proxy.Address()})
	n := 0
	rep, err := Run(t.Context(), Config{From: a, To: b, MapPath: filepath.Join(t.TempDir(), "map"), Compare: true, Progress: func(p Progress) {
		if n++; p.Step == "copy" && n%6 == 0 {
			proxy.CutNextAnswer()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if proxy.Accepted() < 4 {
		t.Errorf("only %d connections: nothing was cut", proxy.Accepted())
	}
	sameHistory(t, a, b)
	t.Logf("%d events over %d connections", rep.Copied, proxy.Accepted())
}

func TestCopyIntoOtherHistoryIsRefused(t *testing.T) {
	a, b := storetest.Open(t), storetest.Open(t)
	history(t, a)
	mapPath := filepath.Join(t.TempDir(), "map")
	put(t, b, "order-0", event("placed"))
	if _, err := Run(t.Context(), Config{From: a, To: b, MapPath: mapPath}); !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "empty store") {
		t.Errorf("another beginning: %v", err)
	}
	empty := storetest.Open(t)
	if _, err := Run(t.Context(), Config{From: empty, To: b, MapPath: mapPath + "2"}); !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "behind the end") {
		t.Errorf("an empty source: %v", err)
	}
	c := storetest.Open(t)
	if _, err := Run(t.Context(), Config{From: a, To: c, MapPath: mapPath + "3"}); err != nil {
		t.Fatal(err)
	}
	put(t, c, "order-0", event("of its own"))
	if _, err := Run(t.Context(), Config{From: a, To: c, MapPath: mapPath + "3"}); !errors.Is(err, ErrDiffers) {
		t.Errorf("written to meanwhile: %v", err)
	}
	if _, err := Run(t.Context(), Config{From: a, To: storetest.Open(t), MapPath: mapPath + "3"}); err == nil || !strings.Contains(err.Error(), "about another copy") {
		t.Errorf("the map of another copy: %v", err)
	}
	if err := os.WriteFile(mapPath+"4", []byte("my diary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), Config{From: a, To: storetest.Open(t), MapPath: mapPath + "4"}); err == nil || !strings.Contains(err.Error(), "no map of positions") {
		t.Errorf("some file: %v", err)
	}
	if text, _ := os.ReadFile(mapPath + "4"); string(text) != "my diary\n" {
		t.Errorf("it was written over: %q", text)
	}
}
