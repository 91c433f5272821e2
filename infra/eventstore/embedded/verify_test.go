package embedded

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// A store as it was written has no damage, online, in a stopped directory, and
// while it is written to.
func TestVerifySound(t *testing.T) {
	fs := newMemFS(t)
	s := newTestStore(t, memOptions(fs))
	fillSample(t, s)
	log := whole(t, s)
	var steps []string
	rep, err := s.verify(context.Background(), func(p VerifyProgress) {
		if len(steps) == 0 || steps[len(steps)-1] != p.Step {
			steps = append(steps, p.Step)
		}
	})
	if err != nil || rep.Damaged != 0 {
		t.Fatalf("%+v, %v", rep, err)
	}
	if rep.Events != uint64(len(log)) || rep.IDs != rep.Events || rep.Files == 0 || rep.Streams != 8 {
		t.Errorf("%+v for %d events", rep, len(log))
	}
	if len(steps) < 2 || steps[0] != "files" || steps[len(steps)-1] != "ids" {
		t.Errorf("steps %v", steps)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	rep, err = verifyDir(context.Background(), memOptions(fs), nil)
	if err != nil || rep.Damaged != 0 || rep.Events != uint64(len(log)) {
		t.Fatalf("stopped: %+v, %v", rep, err)
	}
}

// What is appended, and noted as safe, after a verification has begun is no damage.
func TestVerifyWhileTheEndMoves(t *testing.T) {
	s := newTestStore(t, memOptions(newMemFS(t)))
	defer func() { _ = s.close() }()
	fillSample(t, s)
	moved := false
	rep, err := s.verify(context.Background(), func(VerifyProgress) {
		if !moved {
			moved = true
			put(t, s, "later", expectation{}, 1)
			s.noteEnd()
		}
	})
	if err != nil || rep.Damaged != 0 || !moved {
		t.Fatalf("%+v, %v, moved %v", rep, err, moved)
	}
}

func TestVerifyWhileWriting(t *testing.T) {
	s := newTestStore(t, memOptions(newMemFS(t)))
	defer func() { _ = s.close() }()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range 1000 {
			stream := string(rune('a' + i%26))
			put(t, s, stream, expectation{}, 1+i%3)
			if i%50 == 49 {
				request(t, s, &appendRequest{kind: requestDelete, stream: stream})
			}
		}
	}()
	for writing := true; writing; {
		select {
		case <-written:
			writing = false
		default:
		}
		if rep := verified(t, s); rep.Damaged != 0 {
			t.Errorf("%+v", rep)
		}
	}
	if rep := verified(t, s); rep.Events < 1000 {
		t.Errorf("%+v", rep)
	}
}

// A verification ends with its context, and closing the store does not wait for its end.
func TestVerifyIsCutOff(t *testing.T) {
	s := newTestStore(t, memOptions(newMemFS(t)))
	fillSample(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := s.verify(ctx, func(VerifyProgress) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		first := true
		_, err := s.verify(context.Background(), func(VerifyProgress) {
			if first {
				first = false
				close(begun)
				<-s.quit
			}
		})
		ended <- err
	}()
	<-begun
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, errStopping) {
		t.Errorf("closed: %v", err)
	}
	if _, err := s.verify(context.Background(), nil); !errors.Is(err, errStopping) {
		t.Errorf("after the end: %v", err)
	}
}

func TestVerifyDirWithoutStore(t *testing.T) {
	if _, err := VerifyDir(context.Background(), t.TempDir()+"/none", nil); err == nil || !strings.Contains(err.Error(), "no event store") {
		t.Error(err)
	}
}

// eventstore.md, Store: records carry a checksum, heads are checked. Every kind
// of key that is changed, moved or lost is found by a verification.
func TestVerifyFindsDamagedKeys(t *testing.T) {
	var log []event
	flip := func(key []byte) func(*pebble.DB) error {
		return func(db *pebble.DB) error {
			v, closer, err := db.Get(key)
			if err != nil {
				return err
			}
			bad := append([]byte(nil), v...)
			bad[len(bad)/2] ^= 4
			return errors.Join(closer.Close(), db.Set(key, bad, pebble.NoSync))
		}
	}
	remove := func(keys ...[]byte) func(*pebble.DB) error {
		return func(db *pebble.DB) (err error) {
			for _, key := range keys {
				err = errors.Join(err, db.Delete(key, pebble.NoSync))
			}
			return err
		}
	}
	set := func(key, value []byte) func(*pebble.DB) error {
		return func(db *pebble.DB) error { return db.Set(key, value, pebble.NoSync) }
	}
	first := func(stream string, revision int64) *event {
		for i := range log {
			if log[i].stream == stream && log[i].revision == revision {
				return &log[i]
			}
		}
		t.Fatalf("no %s/%d", stream, revision)
		return nil
	}
	for _, c := range []struct {
		name string
		harm func() func(*pebble.DB) error
		want string
	}{
		{"a record's bit flips", func() func(*pebble.DB) error { return flip(eventKey(first("plain", 1).position)) }, "checksum"},
		{"a record under another key", func() func(*pebble.DB) error {
			return set(eventKey(first("plain", 1).position+1), appendRecord(nil, first("plain", 1)))
		}, "checksum"},
		{"a record is lost", func() func(*pebble.DB) error { return remove(eventKey(first("plain", 1).position)) }, "where no event is"},
		{"an entry of the index is lost", func() func(*pebble.DB) error { return remove(indexKey("plain", 1)) }, "does not know revision 1"},
		{"a bit of the index flips", func() func(*pebble.DB) error { return flip(indexKey("plain", 1)) }, "another place"},
		{"an entry of the index is cut short", func() func(*pebble.DB) error { return set(indexKey("plain", 1), []byte{1}) }, "damaged entry"},
		{"an index key of no stream", func() func(*pebble.DB) error { return set([]byte{keyIndex, 200}, nil) }, "damaged entry"},
		{"an event is lost with its index", func() func(*pebble.DB) error {
			return remove(eventKey(first("plain", 1).position), indexKey("plain", 1))
		}, "revisions from 1 on are missing"},
		{"a stream's beginning is lost", func() func(*pebble.DB) error {
			return remove(eventKey(first("plain", 0).position), indexKey("plain", 0))
		}, "it is the first one, where 0 should be"},
		{"a stream's end is lost", func() func(*pebble.DB) error {
			return remove(eventKey(first("plain", 5).position), indexKey("plain", 5))
		}, "head of plain"},
		{"a whole stream is lost", func() func(*pebble.DB) error {
			return remove(eventKey(first("capped", 0).position), eventKey(first("capped", 1).position), eventKey(first("capped", 2).position), eventKey(first("capped", 3).position),
				indexKey("capped", 0), indexKey("capped", 1), indexKey("capped", 2), indexKey("capped", 3), headKey("capped"))
		}, "bytes are missing between the records"},
		{"an event doubled at the end", func() func(*pebble.DB) error {
			e := *first("plain", 1)
			e.position = log[len(log)-1].position + 1000
			e.first = e.position
			return set(eventKey(e.position), appendRecord(nil, &e))
		}, "another place for revision 1"},
		{"a head's bit flips", func() func(*pebble.DB) error { return flip(headKey("plain")) }, "checksum"},
		{"a head is lost", func() func(*pebble.DB) error { return remove(headKey("plain")) }, "no head"},
		{"a head is behind", func() func(*pebble.DB) error {
			return set(headKey("plain"), encodeHead(&head{last: 4, lastPosition: first("plain", 4).position, changed: first("plain", 4).position}))
		}, "it says revision 4"},
		{"a head knows other metadata", func() func(*pebble.DB) error {
			e := first("plain", 5)
			return set(headKey("plain"), encodeHead(&head{last: 5, lastPosition: e.position, changed: e.position, meta: streamMetadata{maxAge: 1}}))
		}, "maxAge:1"},
		{"a mark is damaged", func() func(*pebble.DB) error { return set(markKey("plain"), []byte("nonsense")) }, "mark"},
		{"a mark says that more was removed", func() func(*pebble.DB) error { return set(markKey("plain"), encodeMark(mark{before: 2})) }, "where 2 should be"},
		{"the ledger is damaged", func() func(*pebble.DB) error { return set(ledgerKey(), []byte("nonsense")) }, "ledger"},
		{"the ledger counts too much", func() func(*pebble.DB) error { return set(ledgerKey(), encodeLedger(ledger{events: 1, bytes: 100})) }, "scavenging has removed 100"},
		{"the description is lost", func() func(*pebble.DB) error { return remove(storeKey()) }, "description"},
		{"a remembered id's event is another", func() func(*pebble.DB) error {
			e := *first("plain", 1)
			e.id[3] ^= 1
			return set(eventKey(e.position), appendRecord(nil, &e))
		}, "lies another event"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestStore(t, memOptions(newMemFS(t)))
			defer abandon(t, s)
			fillSample(t, s)
			log = whole(t, s)
			if err := c.harm()(s.db); err != nil {
				t.Fatal(err)
			}
			rep := verified(t, s)
			if rep.Damaged == 0 || uint64(len(rep.Damage)) != rep.Damaged {
				t.Fatalf("not found: %+v", rep)
			}
			var found bool
			for _, d := range rep.Damage {
				found = found || strings.Contains(d.Where+": "+d.What, c.want)
			}
			if !found {
				t.Errorf("%+v does not say %q", rep.Damage, c.want)
			}
		})
	}
}
