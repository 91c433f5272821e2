package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// What is done to a write of the file system.
const (
	faultError    = "EIO once"           // it fails, as that of a bad disk
	faultErrors   = "EIO from there on"  // and so do all behind it
	faultFull     = "ENOSPC once"        // it finds no room
	faultFullLong = "ENOSPC for a while" // and neither do those behind it
	faultCrash    = "crash"              // the power goes, and takes along what was not synced
)

// faultCase is one write point and what happens there.
type faultCase struct {
	Fault string `json:"fault"`
	Index int64  `json:"index"` // of the write, from 1
	Seed  uint64 `json:"seed"`
}

// faultResult is what became of a case.
type faultResult struct {
	faultCase
	tally
	Op     string `json:"op"` // what was hit; empty if the run had fewer writes
	Failed bool   `json:"failed"`
	Error  string `json:"error,omitempty"` // what is wrong
	Took   time.Duration
}

// faultFS counts the writes of a file system and hurts one of them.
type faultFS struct {
	mem    *vfs.MemFS
	fault  string
	index  int64
	rng    uint64
	known  *ledgerOfPromises
	writes atomic.Int64

	mu      sync.Mutex
	op      string
	ops     map[string]int
	lifted  time.Time
	crashed *vfs.MemFS        // the disk at the moment of the crash
	before  *ledgerOfPromises // what was promised until then
}

// fullFor is how long a disk stays full.
const fullFor = 250 * time.Millisecond

// errNoSpace is the error of a full disk.
var errNoSpace = fmt.Errorf("write: %w", syscall.ENOSPC)

// MaybeError implements errorfs.Injector.
func (f *faultFS) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpLock {
		return nil
	}
	n := f.writes.Add(1)
	name := opName(op)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops[name]++
	if n == f.index {
		f.op = name
		f.lifted = time.Now().Add(fullFor)
	}
	if f.index == 0 || n < f.index {
		return nil
	}
	switch {
	case f.fault == faultCrash && n == f.index:
		f.before = f.known.atCrash(func() { f.crashed = f.powerLoss() })
	case f.fault == faultError && n == f.index, f.fault == faultErrors:
		return errorfs.ErrInjected
	case f.fault == faultFull && n == f.index, f.fault == faultFullLong && time.Now().Before(f.lifted):
		return errNoSpace
	}
	return nil
}

func (f *faultFS) String() string { return f.fault }

// powerLoss is the disk as it may be after the power went: with all that was
// synced, and with none, some or all of the rest.
func (f *faultFS) powerLoss() *vfs.MemFS {
	rng := seeded(f.rng)
	return f.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 70, 100}[rng.IntN(4)], RNG: rng})
}

// opName names a write by what it does to which kind of file.
func opName(op errorfs.Op) string {
	kind := map[errorfs.OpKind]string{
		errorfs.OpCreate: "create", errorfs.OpLink: "link", errorfs.OpRemove: "remove", errorfs.OpRemoveAll: "remove all", errorfs.OpRename: "rename",
		errorfs.OpReuseForWrite: "reuse", errorfs.OpMkdirAll: "make directory", errorfs.OpFilePreallocate: "preallocate", errorfs.OpFileWrite: "write",
		errorfs.OpFileWriteAt: "write at", errorfs.OpFileSync: "sync", errorfs.OpFileSyncData: "sync", errorfs.OpFileSyncTo: "sync to", errorfs.OpFileFlush: "flush",
	}[op.Kind]
	base := op.Path[strings.LastIndex(op.Path, "/")+1:]
	switch {
	case strings.HasPrefix(base, "MANIFEST"), strings.HasPrefix(base, "OPTIONS"), strings.HasPrefix(base, "marker"):
		base = base[:strings.IndexAny(base, "-.")]
	case strings.HasSuffix(base, ".dbtmp"):
		base = "temporary"
	case slices.Contains([]string{"log.end", "LOCK"}, base):
	case strings.Contains(base, "."):
		base = base[strings.LastIndex(base, ".")+1:]
	default:
		base = "directory"
	}
	return kind + " " + base
}

// runCounting runs the workload without a fault.
func runCounting(t *testing.T, seed uint64) *faultFS {
	t.Helper()
	known := newPromises()
	f := &faultFS{mem: newMemFS(t), known: known, ops: map[string]int{}}
	if err := (&workload{files: errorfs.Wrap(f.mem, f), seed: seed, known: known}).run(); err != nil {
		t.Fatal(err)
	}
	return f
}

// runFault runs the workload with one fault in it, looks at the store as
// another process would find it, and takes the power from that one, too.
func runFault(c faultCase) (r faultResult) {
	r.faultCase = c
	began := time.Now()
	defer func() { r.Took = time.Since(began) }()
	mem := vfs.NewCrashableMem()
	if err := mkdirSynced(mem); err != nil {
		r.Error = err.Error()
		return r
	}
	known := newPromises()
	f := &faultFS{mem: mem, fault: c.Fault, index: c.Index, rng: c.Seed*1_000_003 + uint64(c.Index), known: known, ops: map[string]int{}}
	w := &workload{files: errorfs.Wrap(mem, f), seed: c.Seed, known: known}
	err := w.run()
	r.Op = f.op
	r.Failed = err != nil
	after := f.powerLoss
	switch {
	case errors.Is(err, errHangs):
		r.Error = err.Error()
		return r
	case c.Fault == faultCrash || c.Index == 0 || f.op == "":
		if err != nil {
			r.Error = "the workload: " + err.Error()
			return r
		}
	}
	if f.crashed != nil {
		known, after = f.before, func() *vfs.MemFS { return f.crashed }
	}
	ctx, cancel := context.WithTimeout(context.Background(), workloadLimit)
	defer cancel()
	r.tally, err = checkAfter(ctx, after(), known)
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// checkAfter opens the files that a crash has left, checks them, writes on, and
// lets the power go once more.
func checkAfter(ctx context.Context, files *vfs.MemFS, known *ledgerOfPromises) (t tally, err error) {
	s, err := openStore(ctx, memOptions(files))
	if err != nil {
		return t, fmt.Errorf("open: %w", err)
	}
	if t, err = known.check(ctx, s); err != nil {
		return t, errors.Join(err, s.close())
	}
	events := known.events("after", 2, 100)
	res, err := s.append(ctx, &appendRequest{stream: "after", events: events})
	if err != nil {
		return t, errors.Join(fmt.Errorf("append afterwards: %w", err), s.close())
	}
	known.promised("after", events, res)
	again := files.CrashClone(vfs.CrashCloneCfg{})
	if err := s.close(); err != nil {
		return t, err
	}
	if s, err = openStore(ctx, memOptions(again)); err != nil {
		return t, fmt.Errorf("open after another crash: %w", err)
	}
	_, err = known.check(ctx, s)
	return t, errors.Join(err, s.close())
}

// mkdirSynced makes the store's directory so that it outlives a crash.
func mkdirSynced(fs *vfs.MemFS) error {
	if err := fs.MkdirAll(memDir, 0o700); err != nil {
		return err
	}
	root, err := fs.OpenDir("/")
	if err != nil {
		return err
	}
	return errors.Join(root.Sync(), root.Close())
}
