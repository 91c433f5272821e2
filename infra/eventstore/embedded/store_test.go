package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// put appends events straight to a store.
func put(t testing.TB, s *store, stream string, x expectation, n int) appendResult {
	t.Helper()
	r := &appendRequest{stream: stream, expected: x}
	for range n {
		r.events = append(r.events, proposed{id: uuid.New(), kind: "made", contentType: contentJSON, data: []byte("{}")})
	}
	res, err := s.append(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// whole reads the whole log.
func whole(t testing.TB, s *store) []event {
	t.Helper()
	var out []event
	from := uint64(0)
	for {
		p, err := s.readAll(context.Background(), from, false, pageEvents, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p.events...)
		if !p.more {
			return out
		}
		from = out[len(out)-1].position + 1
	}
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	s := newTestStore(t, storeOptions{dir: dir})
	id := s.id
	ids := []uuid.UUID{uuid.New(), uuid.New()}
	again := &appendRequest{stream: "s", expected: expectation{kind: expectAny}}
	for _, id := range ids {
		again.events = append(again.events, proposed{id: id, kind: "made", contentType: contentJSON})
	}
	first, err := s.append(context.Background(), again)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "s", expectation{kind: expectRevision, revision: 1}, 3)
	before := whole(t, s)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s = newTestStore(t, storeOptions{dir: dir})
	defer func() { _ = s.close() }()
	if s.id != id {
		t.Error("the store has another identity")
	}
	if after := whole(t, s); len(after) != len(before) || after[4].id != before[4].id {
		t.Fatalf("%d events, before %d", len(after), len(before))
	}
	// Recent ids survive, so a late retry is still known.
	if res, err := s.append(context.Background(), again); err != nil || res != first {
		t.Errorf("%+v, %v, first it was %+v", res, err, first)
	}
	res := put(t, s, "s", expectation{kind: expectRevision, revision: 4}, 1)
	if res.wrong || res.current != 5 || res.position <= before[4].position {
		t.Errorf("%+v", res)
	}
}

func TestStoreIsLocked(t *testing.T) {
	cfg := Config{Dir: t.TempDir()}
	serve(t, cfg)
	cfg.Socket = socketPath(t)
	if s, err := Open(context.Background(), cfg); err == nil {
		closeServer(t, s)
		t.Fatal("opened twice")
	}
}

func TestStoreOfAnotherFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := newTestStore(t, storeOptions{dir: dir})
	if err := s.db.Set(storeKey(), append([]byte{storeFormat + 1}, s.id[:]...), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	_, err := openStore(context.Background(), storeOptions{dir: dir, logger: s.logger, clock: time.Now})
	if err == nil || !strings.Contains(err.Error(), "another version") {
		t.Fatal(err)
	}
}

// corrupt changes a store's files behind its back, through Pebble, as if that
// had happened to writes that nobody was told of.
func corrupt(t *testing.T, dir string, f func(db *pebble.DB) error) {
	t.Helper()
	s := newTestStore(t, storeOptions{dir: dir})
	if err := f(s.db); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, logEndFile)); err != nil {
		t.Fatal(err)
	}
}

// eventstore.md, Store: on open verify the tail, cut a torn record, check
// stream heads against the log.
func TestOpenVerifiesTheTail(t *testing.T) {
	prepare := func(t *testing.T) (dir string, events []event) {
		dir = t.TempDir()
		s := newTestStore(t, storeOptions{dir: dir})
		put(t, s, "a", expectation{}, 2)
		put(t, s, "b", expectation{}, 1)
		put(t, s, "a", expectation{}, 3)
		events = whole(t, s)
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		return dir, events
	}
	tear := func(e event) func(*pebble.DB) error {
		return func(db *pebble.DB) error {
			raw := appendRecord(nil, &e)
			return db.Set(eventKey(e.position), raw[:len(raw)-1], pebble.Sync)
		}
	}
	t.Run("the last append is torn in its last event and goes as a whole", func(t *testing.T) {
		dir, events := prepare(t)
		corrupt(t, dir, tear(events[5]))
		s := newTestStore(t, storeOptions{dir: dir})
		defer func() { _ = s.close() }()
		if got := whole(t, s); len(got) != 3 {
			t.Fatalf("%d events", len(got))
		}
		h, err := s.readHead("a")
		if err != nil || h.last != 1 || h.lastPosition != events[1].position {
			t.Fatalf("%+v, %v", h, err)
		}
		if _, ok, _ := s.positionAt("a", 4); ok {
			t.Error("the index still knows the cut event")
		}
		if res := put(t, s, "a", expectation{kind: expectRevision, revision: 1}, 1); res.wrong {
			t.Fatalf("%+v", res)
		}
		if got := whole(t, s); len(got) != 4 || got[3].revision != 2 {
			t.Fatalf("%+v", got)
		}
	})
	t.Run("several torn records at the end", func(t *testing.T) {
		dir, events := prepare(t)
		corrupt(t, dir, func(db *pebble.DB) error {
			return errors.Join(tear(events[5])(db), tear(events[4])(db), tear(events[3])(db), tear(events[2])(db))
		})
		s := newTestStore(t, storeOptions{dir: dir})
		defer func() { _ = s.close() }()
		if got := whole(t, s); len(got) != 2 {
			t.Fatalf("%d events", len(got))
		}
		if h, err := s.readHead("b"); err != nil || h.last != noRevision {
			t.Fatalf("%+v, %v", h, err)
		}
	})
	t.Run("the only records are torn", func(t *testing.T) {
		dir, events := prepare(t)
		corrupt(t, dir, func(db *pebble.DB) error {
			var err error
			for _, e := range events {
				err = errors.Join(err, tear(e)(db))
			}
			return err
		})
		s := newTestStore(t, storeOptions{dir: dir})
		defer func() { _ = s.close() }()
		if put(t, s, "a", expectation{kind: expectNoStream}, 1).position != firstPosition {
			t.Error("the log doesn't begin anew")
		}
	})
	t.Run("a torn record before good ones is refused", func(t *testing.T) {
		dir, events := prepare(t)
		corrupt(t, dir, tear(events[2]))
		_, err := openStore(context.Background(), storeOptions{dir: dir, logger: discard(), clock: time.Now})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint(events[2].position)) {
			t.Fatal(err)
		}
	})
	t.Run("a head that disagrees is rebuilt", func(t *testing.T) {
		for name, bad := range map[string][]byte{
			"behind":  encodeHead(&head{last: 1, lastPosition: 64}),
			"damaged": []byte("nonsense"),
		} {
			dir, events := prepare(t)
			corrupt(t, dir, func(db *pebble.DB) error { return db.Set(headKey("a"), bad, pebble.Sync) })
			s := newTestStore(t, storeOptions{dir: dir})
			if h, err := s.readHead("a"); err != nil || h.last != 4 || h.lastPosition != events[5].position {
				t.Errorf("%s: %+v, %v", name, h, err)
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("a damaged record in the middle is an error to its readers", func(t *testing.T) {
		dir, events := prepare(t)
		s := newTestStore(t, storeOptions{dir: dir})
		defer func() { _ = s.close() }()
		if err := tear(events[1])(s.db); err != nil {
			t.Fatal(err)
		}
		if _, err := s.readAll(context.Background(), 0, false, 10, nil); !errors.Is(err, errTornRecord) {
			t.Fatal(err)
		}
	})
}

// eventstore.md, Store: positions are assigned in the one commit loop, sparse, from > 0.
func TestPositionsGrow(t *testing.T) {
	s := newTestStore(t, storeOptions{dir: t.TempDir()})
	defer func() { _ = s.close() }()
	last := uint64(0)
	for i := range 50 {
		res := put(t, s, fmt.Sprint("s", i%3), expectation{}, 1+i%4)
		if res.position <= last {
			t.Fatalf("%d after %d", res.position, last)
		}
		last = res.position
	}
	for _, e := range whole(t, s) {
		if e.position < firstPosition {
			t.Fatal(e.position)
		}
	}
}

// An append that compares itself with events of its own commit group is decided rightly.
func TestRepetitionWithinOneGroup(t *testing.T) {
	s := newTestStore(t, storeOptions{dir: t.TempDir()})
	defer func() { _ = s.close() }()
	events := []proposed{{id: uuid.New(), kind: "made", contentType: contentJSON}}
	group := make([]*appendRequest, 20)
	for i := range group {
		group[i] = &appendRequest{ctx: context.Background(), stream: "s", expected: expectation{kind: expectNoStream}, events: events, done: make(chan appendResult, 1)}
	}
	other := &appendRequest{
		ctx: context.Background(), stream: "s", expected: expectation{kind: expectNoStream},
		events: []proposed{{id: uuid.New(), kind: "made", contentType: contentJSON}}, done: make(chan appendResult, 1),
	}
	for _, r := range append(group, other) {
		s.queue <- r
	}
	var first appendResult
	for i, r := range group {
		res := <-r.done
		if res.err != nil || res.wrong {
			t.Fatalf("%+v", res)
		}
		if i == 0 {
			first = res
		}
		if res != first {
			t.Fatalf("%+v, first it was %+v", res, first)
		}
	}
	if res := <-other.done; !res.wrong || res.current != 0 {
		t.Fatalf("%+v", res)
	}
}

// An append whose caller is gone before its turn isn't written.
func TestAbandonedAppendIsNotWritten(t *testing.T) {
	s := newTestStore(t, storeOptions{dir: t.TempDir()})
	defer func() { _ = s.close() }()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := &appendRequest{ctx: ctx, stream: "s", events: []proposed{{id: uuid.New(), kind: "made", contentType: contentJSON}}, done: make(chan appendResult, 1)}
	s.queue <- r
	if res := <-r.done; !errors.Is(res.err, context.Canceled) {
		t.Fatalf("%+v", res)
	}
	if got := whole(t, s); len(got) != 0 {
		t.Fatal(got)
	}
}

// Times never run backward in the log, whatever the clock does.
func TestCreatedNeverRunsBackward(t *testing.T) {
	clock := newTestClock(time.Unix(1_800_000_000, 0))
	s := newTestStore(t, storeOptions{dir: t.TempDir(), clock: clock.now})
	defer func() { _ = s.close() }()
	for range 5 {
		put(t, s, "s", expectation{}, 1)
		clock.add(-time.Hour)
	}
	last := int64(0)
	for _, e := range whole(t, s) {
		if e.created < last {
			t.Fatal("it does")
		}
		last = e.created
	}
}

// The disk's reserve: appends are refused with Unavailable before the disk is full.
func TestAlmostFullDiskRefusesAppends(t *testing.T) {
	s, err := Open(context.Background(), Config{Dir: t.TempDir(), Socket: socketPath(t), DiskReserve: 1 << 62})
	if err != nil {
		t.Fatal(err)
	}
	defer closeServer(t, s)
	c := connect(t, s)
	_, err = c.AppendToStream(context.Background(), "s", esdb.AppendToStreamOptions{}, newEvents(1)...)
	// Not Unavailable: that would make clients give the connection up, with the
	// reads and subscriptions on it.
	var e *esdb.Error
	if !errors.As(err, &e) || status.Code(e.Err()) != codes.ResourceExhausted || !strings.Contains(err.Error(), "disk") {
		t.Fatal(err)
	}
	if s.Err() != nil {
		t.Fatal("the store counts as failed")
	}
}

func TestSocket(t *testing.T) {
	open := func(socket string) error {
		s, err := Open(context.Background(), Config{Dir: t.TempDir(), Socket: socket, DiskReserve: -1})
		if err == nil {
			closeServer(t, s)
		}
		return err
	}
	t.Run("is its owner's only", func(t *testing.T) {
		path := socketPath(t)
		serve(t, Config{Socket: path})
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatal(info.Mode(), err)
		}
	})
	t.Run("a missing directory is made", func(t *testing.T) {
		dir := filepath.Join(filepath.Dir(socketPath(t)), "new")
		serve(t, Config{Socket: filepath.Join(dir, "s")})
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Fatal(info.Mode(), err)
		}
	})
	t.Run("a directory open to others is refused", func(t *testing.T) {
		path := socketPath(t)
		if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := open(path); err == nil || !strings.Contains(err.Error(), "0700") {
			t.Fatal(err)
		}
	})
	t.Run("too long, relative or missing", func(t *testing.T) {
		for path, text := range map[string]string{
			"/" + strings.Repeat("x", maxSocketPath): "107", "rel/s": "absolute", "": "needs a path",
		} {
			if err := open(path); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%q: %v", path, err)
			}
		}
	})
	t.Run("the socket of a killed process is replaced, a file is not", func(t *testing.T) {
		path := socketPath(t)
		l, err := listen(context.Background(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		if err := open(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(path); err == nil {
			t.Fatal("a file was replaced")
		}
	})
}

// What is served is named, and nothing else: clients call nothing that isn't.
func TestFeaturesNameWhatIsImplemented(t *testing.T) {
	s := serve(t, Config{})
	v, err := connect(t, s).GetServerVersion()
	if err != nil || v.Major < 22 {
		t.Fatal(v, err)
	}
	named, served := map[string]bool{}, map[string]bool{}
	for _, f := range features {
		for _, m := range f.methods {
			named[f.service+"/"+m] = true
		}
	}
	for service, info := range s.socket.rpc.GetServiceInfo() {
		for _, m := range info.Methods {
			served[strings.ToLower(service+"/"+m.Name)] = true
		}
	}
	if !maps.Equal(named, served) {
		t.Errorf("named %v, served %v", named, served)
	}
}

func TestPrefixEnd(t *testing.T) {
	if got := prefixEnd([]byte{1, 0xff, 0xff}); len(got) != 1 || got[0] != 2 {
		t.Fatal(got)
	}
	if prefixEnd([]byte{0xff}) != nil {
		t.Fatal("an end behind everything")
	}
	if binary.BigEndian.Uint64(eventKey(7)[1:]) != 7 {
		t.Fatal("key")
	}
}
