package embedded

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
)

func scavenged(t testing.TB, s *store) Scavenged {
	t.Helper()
	out, err := s.scavenge(context.Background(), nil)
	if err != nil {
		t.Fatalf("scavenge: %v", err)
	}
	return out
}

// view is everything that readers of streams see.
func view(t testing.TB, s *store, streams ...string) map[string][]event {
	t.Helper()
	out := map[string][]event{}
	for _, stream := range streams {
		for _, backward := range []bool{false, true} {
			h, err := s.durableHead(context.Background(), stream)
			if err != nil {
				t.Fatal(err)
			}
			key := fmt.Sprint(stream, " ", backward, " last ", h.last, " missing ", h.missing(), " ended ", h.tombstoned)
			out[key] = nil
			if h.missing() || h.tombstoned {
				continue
			}
			from := int64(0)
			if backward {
				from = h.last
			}
			p, _, err := s.readStream(context.Background(), stream, &h, from, backward, pageEvents)
			if err != nil {
				t.Fatal(err)
			}
			out[key] = p.events
		}
	}
	return out
}

// left tells which revisions of a stream are in the log.
func left(log []event, stream string) string {
	out := ""
	for _, e := range log {
		if e.stream == stream {
			out += fmt.Sprint(e.revision, " ")
		}
	}
	return out
}

// eventstore.md: expired, over-count, truncated and deleted events are removed,
// and nobody who reads a stream sees a difference.
func TestScavengeRules(t *testing.T) {
	clock := newTestClock(time.Unix(1_800_000_000, 0))
	opt := memOptions(newMemFS(t))
	opt.clock = clock.now
	s := newTestStore(t, opt)
	put(t, s, "plain", expectation{}, 3)
	put(t, s, "capped", expectation{}, 5)
	writeMetadata(t, s, "capped", `{"$maxCount":4}`)
	writeMetadata(t, s, "capped", `{"$maxCount":2}`)
	put(t, s, "cut", expectation{}, 5)
	writeMetadata(t, s, "cut", `{"$tb":3}`)
	put(t, s, "cut beyond", expectation{}, 2)
	writeMetadata(t, s, "cut beyond", `{"$tb":9}`)
	put(t, s, "aged", expectation{}, 2)
	put(t, s, "all aged", expectation{}, 2)
	writeMetadata(t, s, "aged", `{"$maxAge":60}`)
	writeMetadata(t, s, "all aged", `{"$maxAge":60}`)
	put(t, s, "deleted", expectation{}, 3)
	request(t, s, &appendRequest{kind: requestDelete, stream: "deleted"})
	put(t, s, "revived", expectation{}, 3)
	request(t, s, &appendRequest{kind: requestDelete, stream: "revived"})
	put(t, s, "ended", expectation{}, 3)
	writeMetadata(t, s, "ended", `{"a":1}`)
	writeMetadata(t, s, "ended", `{"a":2}`)
	request(t, s, &appendRequest{kind: requestTombstone, stream: "ended"})
	clock.add(2 * time.Minute)
	put(t, s, "aged", expectation{}, 2)
	put(t, s, "revived", expectation{}, 2)
	streams := []string{"plain", "capped", "cut", "cut beyond", "aged", "all aged", "deleted", "revived", "ended", "none"}
	for _, stream := range streams[:9] {
		streams = append(streams, metadataPrefix+stream)
	}
	before, log := view(t, s, streams...), whole(t, s)

	out := scavenged(t, s)
	if after := view(t, s, streams...); !reflect.DeepEqual(before, after) {
		t.Errorf("readers see a difference:\n%v\nbefore:\n%v", after, before)
	}
	rest := whole(t, s)
	if out.Removed != uint64(len(log)-len(rest)) || out.Removed == 0 || out.Resumed || out.Lingering || out.Streams != 17 {
		t.Errorf("%+v, %d of %d events are left", out, len(rest), len(log))
	}
	for stream, want := range map[string]string{
		"plain": "0 1 2 ", "capped": "3 4 ", "$$capped": "1 ", "cut": "3 4 ", "cut beyond": "1 ", "aged": "2 3 ", "all aged": "1 ",
		"deleted": "", "$$deleted": "0 ", "revived": "3 4 ", "$$revived": "1 ", "ended": fmt.Sprint(int64(tombstoneRevision), " "), "$$ended": "1 ",
	} {
		if got := left(rest, stream); got != want {
			t.Errorf("%s: %s are left, want %s", stream, got, want)
		}
	}
	// What is left is what it was.
	was := map[uint64]event{}
	for _, e := range log {
		was[e.position] = e
	}
	for _, e := range rest {
		if !reflect.DeepEqual(was[e.position], e) {
			t.Errorf("the event at %d is another", e.position)
		}
	}
	if rep := verified(t, s); rep.Damaged != 0 || rep.Removed != out.Removed {
		t.Errorf("%+v", rep)
	}
	if again := scavenged(t, s); again.Removed != 0 {
		t.Errorf("a second one: %+v", again)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s = newTestStore(t, opt)
	defer abandon(t, s)
	if after := view(t, s, streams...); !reflect.DeepEqual(before, after) {
		t.Error("readers see a difference after opening again")
	}
	// Streams go on counting, also where nothing of them is left.
	for stream, want := range map[string]int64{"plain": 3, "capped": 5, "cut": 5, "all aged": 2, "deleted": 3, "revived": 5} {
		if res := put(t, s, stream, expectation{}, 1); res.current != want {
			t.Errorf("%s goes on at %d, want %d", stream, res.current, want)
		}
	}
	if rep := verified(t, s); rep.Damaged != 0 {
		t.Errorf("%+v", rep)
	}
}

// A stream's head can be made anew when nothing of the stream is left.
func TestHeadOfScavengedStream(t *testing.T) {
	s := newTestStore(t, memOptions(newMemFS(t)))
	defer abandon(t, s)
	put(t, s, "s", expectation{}, 3)
	request(t, s, &appendRequest{kind: requestDelete, stream: "s"})
	want, err := s.readHead("s")
	if err != nil {
		t.Fatal(err)
	}
	scavenged(t, s)
	if err := s.rebuildHead("s"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.readHead("s"); err != nil || got != want {
		t.Fatalf("%s, %v, want %s", &got, err, &want)
	}
}

// The append rules after a scavenge: what is gone can't be recognised by its
// revision any more, what is left can, and ids that are remembered are.
func TestAppendsAfterScavenge(t *testing.T) {
	s := newTestStore(t, memOptions(newMemFS(t)))
	defer abandon(t, s)
	batch := func(n int) []proposed {
		out := make([]proposed, n)
		for i := range out {
			out[i] = proposed{id: uuid.New(), kind: "made", contentType: contentJSON}
		}
		return out
	}
	old, kept := batch(2), batch(2)
	request(t, s, &appendRequest{stream: "s", expected: expectation{kind: expectNoStream}, events: old})
	first := request(t, s, &appendRequest{stream: "s", expected: expectation{kind: expectRevision, revision: 1}, events: kept})
	writeMetadata(t, s, "s", `{"$maxCount":2}`)
	scavenged(t, s)
	again, err := s.append(context.Background(), &appendRequest{stream: "s", expected: expectation{kind: expectRevision, revision: 1}, events: kept})
	if err != nil || again != first {
		t.Errorf("a repetition of what is left: %+v, %v", again, err)
	}
	res, err := s.append(context.Background(), &appendRequest{stream: "s", expected: expectation{kind: expectNoStream}, events: old})
	if err != nil || !res.wrong || res.current != 3 {
		t.Errorf("a repetition of what is gone: %+v, %v", res, err)
	}
	if res, err := s.append(context.Background(), &appendRequest{stream: "s", events: old}); err != nil || res.current != 1 {
		t.Errorf("ids that are remembered: %+v, %v", res, err)
	}
	request(t, s, &appendRequest{kind: requestDelete, stream: "s"})
	scavenged(t, s)
	if res, err := s.append(context.Background(), &appendRequest{stream: "s", expected: expectation{kind: expectNoStream}, events: batch(1)}); err != nil || res.wrong || res.current != 4 {
		t.Errorf("a new beginning: %+v, %v", res, err)
	}
	if rep := verified(t, s); rep.Damaged != 0 {
		t.Errorf("%+v", rep)
	}
}

// AUD-06: personal data can be erased. What a deleted stream held is in no file
// of the store any more, not in an old write-ahead log either, and the events
// around it are.
func TestScavenge(t *testing.T) {
	t.Run("AUD-06_erased_bytes_are_in_no_file", func(t *testing.T) {
		dir := t.TempDir()
		s := newTestStore(t, storeOptions{dir: dir, memtable: 256 << 10})
		defer abandon(t, s)
		secret, other := make([]byte, 64), make([]byte, 64)
		for _, b := range [][]byte{secret, other} {
			if _, err := rand.Read(b); err != nil {
				t.Fatal(err)
			}
		}
		write := func(stream string, data []byte) {
			request(t, s, &appendRequest{stream: stream, events: []proposed{{id: uuid.New(), kind: "told", contentType: contentBinary, data: data, metadata: data}}})
		}
		fill := func() {
			for i := range 400 {
				noise := make([]byte, 2000)
				if _, err := rand.Read(noise); err != nil {
					t.Fatal(err)
				}
				write(fmt.Sprint("noise-", i%7), noise)
			}
		}
		fill()
		write("person-1", secret)
		write("person-2", other)
		fill()
		write("person-1", secret) // in tables and in the log
		if n := filesWith(t, dir, secret); n < 2 {
			t.Fatalf("%d files have the secret", n)
		}
		request(t, s, &appendRequest{kind: requestDelete, stream: "person-1"})
		out := scavenged(t, s)
		if out.Removed != 2 || out.Lingering {
			t.Fatalf("%+v", out)
		}
		if n := filesWith(t, dir, secret); n != 0 {
			t.Errorf("%d files have the secret after it was erased", n)
		}
		if n := filesWith(t, dir, other); n == 0 {
			t.Error("what was not erased is gone")
		}
	})
	t.Run("disk use goes down", func(t *testing.T) {
		s := newTestStore(t, storeOptions{dir: t.TempDir(), memtable: 256 << 10})
		defer abandon(t, s)
		for i := range 2000 {
			noise := make([]byte, 1000)
			if _, err := rand.Read(noise); err != nil {
				t.Fatal(err)
			}
			request(t, s, &appendRequest{stream: fmt.Sprint("s", i%3), events: []proposed{{id: uuid.New(), kind: "made", contentType: contentBinary, data: noise}}})
		}
		for i := range 3 {
			writeMetadata(t, s, fmt.Sprint("s", i), `{"$maxCount":10}`)
		}
		out := scavenged(t, s)
		if out.Removed != 1970 || out.RemovedBytes < 1970*1000 || out.BytesAfter > out.BytesBefore/4 {
			t.Errorf("%+v", out)
		}
	})
	t.Run("it goes on where it was cut off", func(t *testing.T) {
		opt := memOptions(newMemFS(t))
		s := newTestStore(t, opt)
		for i := range streamsPage/2 + 200 {
			stream := fmt.Sprintf("s%04d", i)
			put(t, s, stream, expectation{}, 1)
			request(t, s, &appendRequest{kind: requestDelete, stream: stream})
		}
		ctx, cancel := context.WithCancel(context.Background())
		_, err := s.scavenge(ctx, func(p ScavengeProgress) {
			if p.Streams == streamsPage {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		removed := len(whole(t, s))
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		s = newTestStore(t, opt)
		defer abandon(t, s)
		var first ScavengeProgress
		out, err := s.scavenge(context.Background(), func(p ScavengeProgress) {
			if first.Step == "" {
				first = p
			}
		})
		n := uint64(streamsPage/2 + 200)
		if err != nil || !out.Resumed || out.Removed != n || out.Streams != 2*n || first.Streams <= streamsPage {
			t.Errorf("%+v, %v, first %+v, %d events were left by the first one", out, err, first, removed)
		}
		if rep := verified(t, s); rep.Damaged != 0 || rep.Removed != n {
			t.Errorf("%+v", rep)
		}
	})
	t.Run("it happens by itself", func(t *testing.T) {
		opt := memOptions(newMemFS(t))
		opt.scavengeEvery = 20 * time.Millisecond
		s := newTestStore(t, opt)
		defer abandon(t, s)
		put(t, s, "s", expectation{}, 3)
		request(t, s, &appendRequest{kind: requestDelete, stream: "s"})
		eventually(t, "the deleted events are gone", func() bool { return len(whole(t, s)) == 1 })
		put(t, s, "t", expectation{}, 3)
		request(t, s, &appendRequest{kind: requestDelete, stream: "t"})
		eventually(t, "those that came later, too", func() bool { return len(whole(t, s)) == 2 })
	})
}

// filesWith counts the files of a directory that have some bytes in them.
func filesWith(t *testing.T, dir string, text []byte) (n int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, text) {
			n++
		}
	}
	return n
}
