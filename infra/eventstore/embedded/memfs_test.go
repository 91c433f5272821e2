package embedded

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
)

// memDir is the directory of stores in memory.
const memDir = "/store"

// newMemFS gives a file system in memory that can be copied as a crash would leave it.
func newMemFS(t testing.TB) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	if err := fs.MkdirAll(memDir, 0o700); err != nil {
		t.Fatal(err)
	}
	// The directory itself must outlive a crash.
	root, err := fs.OpenDir("/")
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := root.Close(); err != nil {
		t.Fatal(err)
	}
	return fs
}

// copyOf gives an exact copy of the file system, as a killed process leaves it.
func copyOf(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: seeded(0)})
}

// memOptions are those of a small store that often writes its files.
func memOptions(fs vfs.FS) storeOptions {
	return storeOptions{dir: memDir, fs: fs, logger: discard(), clock: time.Now, cache: 1 << 20, memtable: 64 << 10, backoff: 100 * time.Microsecond}
}

// abandon closes a store that may have failed by what it read.
func abandon(t testing.TB, s *store) {
	t.Helper()
	if err := s.close(); err != nil && s.failure() == nil {
		t.Error(err)
	}
}

// verified runs a verification and gives its report.
func verified(t testing.TB, s *store) VerifyReport {
	t.Helper()
	rep, err := s.verify(context.Background(), nil)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return rep
}

// seeded gives random numbers that are the same every time.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// request appends, deletes or tombstones straight in a store.
func request(t testing.TB, s *store, r *appendRequest) appendResult {
	t.Helper()
	res, err := s.append(context.Background(), r)
	if err != nil || res.wrong {
		t.Fatalf("%s: %+v, %v", r.stream, res, err)
	}
	return res
}

// writeMetadata sets a stream's metadata straight in a store.
func writeMetadata(t testing.TB, s *store, stream, text string) {
	t.Helper()
	request(t, s, &appendRequest{stream: metadataPrefix + stream, events: []proposed{
		{id: uuid.New(), kind: metadataType, contentType: contentJSON, data: []byte(text)},
	}})
}

// fillSample writes a store with streams in every state. Its older part lies in
// tables that were flushed one by one, the newer one in the write-ahead log.
func fillSample(t testing.TB, s *store) {
	t.Helper()
	flush := func() {
		t.Helper()
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, "plain", expectation{}, 3)
	put(t, s, "revived", expectation{}, 2)
	request(t, s, &appendRequest{kind: requestDelete, stream: "revived"})
	flush()
	put(t, s, "plain", expectation{}, 1)
	writeMetadata(t, s, "capped", `{"$maxCount":2}`)
	flush()
	put(t, s, "capped", expectation{}, 4)
	flush()
	put(t, s, "revived", expectation{}, 2)
	put(t, s, "deleted", expectation{}, 2)
	request(t, s, &appendRequest{kind: requestDelete, stream: "deleted"})
	flush()
	put(t, s, "ended", expectation{}, 2)
	request(t, s, &appendRequest{kind: requestTombstone, stream: "ended"})
	writeMetadata(t, s, "capped", `{"$maxCount":3}`)
	put(t, s, "plain", expectation{}, 2)
}
