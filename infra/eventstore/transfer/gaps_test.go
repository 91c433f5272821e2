package transfer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/eventstore/storetest"
)

// remove takes revisions of streams out of the files of a stopped store and
// enters it in the ledger, as scavenging does.
func remove(t *testing.T, dir string, revisions map[string][]es.Revision) {
	t.Helper()
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatValueSeparation, Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	get := func(key []byte) []byte {
		t.Helper()
		v, closer, err := db.Get(key)
		if err != nil {
			t.Fatal(err)
		}
		v = bytes.Clone(v)
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
		return v
	}
	var events, size uint64
	for stream, gone := range revisions {
		for _, r := range gone {
			index := append([]byte{'i'}, binary.AppendUvarint(nil, uint64(len(stream)))...)
			index = binary.BigEndian.AppendUint64(append(index, stream...), uint64(r))
			event := append([]byte{'e'}, get(index)...)
			events++
			size += uint64(len(get(event)))
			if err := errors.Join(db.Delete(event, pebble.Sync), db.Delete(index, pebble.Sync)); err != nil {
				t.Fatal(err)
			}
		}
	}
	ledger := binary.AppendUvarint(binary.AppendUvarint([]byte{1}, events), size)
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(ledger, crc32.MakeTable(crc32.Castagnoli)))
	if err := errors.Join(db.Set([]byte("mr"), append(sum, ledger...), pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// silent is a logger of nothing.
type silent struct{}

func (silent) Infof(string, ...any)      {}
func (silent) Errorf(string, ...any)     {}
func (silent) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

func upTo(n es.Revision) (all []es.Revision) {
	for r := es.Revision(0); r < n; r++ {
		all = append(all, r)
	}
	return all
}

// scavenged makes a store that has lost events: by its own scavenge, or with
// more holes, in every way that servers do.
func scavenged(t *testing.T, byItself bool) *eventstore.Log {
	t.Helper()
	dir := t.TempDir()
	server, err := embedded.Open(t.Context(), embedded.Config{Dir: dir, Socket: storetest.Socket(t), DiskReserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	log, err := eventstore.Open(t.Context(), eventstore.Config{Address: server.Address()})
	if err != nil {
		t.Fatal(err)
	}
	made := func(stream string, n int) {
		t.Helper()
		for range n {
			put(t, log, stream, event("made"))
		}
	}
	deleted := func(stream string) {
		t.Helper()
		if err := log.Delete(t.Context(), stream, es.Any()); err != nil {
			t.Fatal(err)
		}
	}
	for _, stream := range []string{"order-0", "order-1", "order-2", "order-3", "order-4", "order-5", "order-6"} {
		made(stream, 10)
	}
	put(t, log, "$$order-0", meta(`{"$tb":5,"own":1}`))
	put(t, log, "$$order-1", meta(`{"$tb":5}`))
	put(t, log, "$$order-2", meta(`{"$maxCount":5}`))
	put(t, log, "$$order-2", meta(`{"$maxCount":4}`))
	put(t, log, "$$order-2", meta(`{"$maxCount":3}`))
	put(t, log, "$$order-3", meta(`{"$tb":10}`))
	deleted("order-4")
	deleted("order-5")
	made("order-0", 3)
	made("order-2", 2)
	put(t, log, "$$order-2", meta(`{"$maxCount":2}`))
	made("order-3", 3)
	made("order-4", 2)
	put(t, log, "$$order-6", meta(`{"$tb":8}`))
	made("order-6", 1)
	if byItself {
		if out, err := server.Scavenge(t.Context(), nil); err != nil || out.Removed < 40 {
			t.Fatalf("scavenged %+v: %v", out, err)
		}
	}
	if err := errors.Join(log.Close(), server.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	if !byItself {
		remove(t, dir, map[string][]es.Revision{
			"order-0": upTo(5), "order-1": upTo(3), "order-2": upTo(10), "$$order-2": upTo(3),
			"order-3": upTo(10), "order-4": upTo(10), "order-5": upTo(10),
			"order-6": {0, 1, 4, 5}, // a real node may leave holes
		})
	}
	return storetest.Connect(t, eventstore.Config{Address: storetest.Serve(t, embedded.Config{Dir: dir}).Address()})
}

// Streams that were scavenged begin at revision 0 in the target, and readers
// see of each what they saw before.
func TestCopyOfScavengedStreams(t *testing.T) {
	for name, byItself := range map[string]bool{"by the embedded store": true, "with the holes of other servers": false} {
		t.Run(name, func(t *testing.T) { copyScavenged(t, byItself) })
	}
}

func copyScavenged(t *testing.T, byItself bool) {
	t.Helper()
	a, b, c := scavenged(t, byItself), storetest.Open(t), storetest.Open(t)
	mapPath := filepath.Join(t.TempDir(), "map")
	for runs := 0; ; runs++ { // cut off after every few events, every other time without the map
		ctx, cancel := context.WithCancel(t.Context())
		left := 3
		rep, err := Run(ctx, Config{From: a, To: b, MapPath: mapPath, MapEvery: 4, Compare: true, Progress: func(p Progress) {
			if left--; p.Step == "copy" && left < 0 {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			if runs < 3 || rep.Moved == 0 {
				t.Errorf("cut off %d times only; %+v", runs, rep)
			}
			break
		}
		if !errors.Is(err, context.Canceled) || runs > 200 {
			t.Fatal(err)
		}
		if runs%2 == 0 {
			_ = os.Remove(mapPath)
		}
	}
	if _, err := Run(t.Context(), Config{From: b, To: c, MapPath: mapPath + "2", Compare: true}); err != nil {
		t.Fatal(err)
	}
	want := order(t, a, nil)
	for name, copied := range map[string]*eventstore.Log{"there": b, "and on": c} {
		if got := order(t, copied, want); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the order was\n%v and is\n%v", name, want, got)
		}
		sameReaders(t, a, copied)
		next := map[string]es.Revision{}
		for e, err := range copied.ReadWhole(t.Context(), es.StartPosition) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Revision != next[e.Stream] {
				t.Errorf("%s: %s has revision %d where %d should be", name, e.Stream, e.Revision, next[e.Stream])
			}
			next[e.Stream] = e.Revision + 1
			if e.Stream == "$$order-0" && !strings.Contains(string(e.Data), `"own":1`) {
				t.Errorf("metadata became %s", e.Data)
			}
		}
		// Where a stream goes on, its end is where it was.
		put(t, copied, "order-1", event("made"))
	}
}

// order is the ids of a log in order; those that known does not have are left out.
func order(t *testing.T, log *eventstore.Log, known []string) (ids []string) {
	t.Helper()
	in := map[string]bool{}
	for _, id := range known {
		in[id] = true
	}
	for e, err := range log.ReadWhole(t.Context(), es.StartPosition) {
		if err != nil {
			t.Fatal(err)
		}
		if known == nil || in[e.ID.String()] || e.Type != metadataType {
			ids = append(ids, e.ID.String())
		}
	}
	return ids
}
