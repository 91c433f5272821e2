package filework_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/cmd/internal/filework"
	"tallyard/domain/es"
	"tallyard/domain/operation"
	"tallyard/domain/storage"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/files"
	"tallyard/processes/operations"
)

// What the child process is told: it works on the parent's log and files until
// it is killed.
const (
	childLog   = "FILEWORK_TEST_LOG"
	childFiles = "FILEWORK_TEST_FILES"
	childOp    = "FILEWORK_TEST_OPERATION"
)

func TestMain(m *testing.M) {
	if os.Getenv(childLog) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

var tenant = uuid.MustParse("0198a000-0000-7000-8000-000000000001")

type noSamples struct{}

func (noSamples) Record(context.Context, operations.Ref, operations.Progress) error { return nil }
func (noSamples) Forget(context.Context, operations.Ref) error                      { return nil }

func handler(log es.Log) (*operation.Handler, error) {
	registry, err := es.NewRegistry(es.Types, operation.Types)
	return &operation.Handler{Runtime: &es.Runtime{
		Log: log, Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, NameKey: []byte("k"),
		Logger: slog.New(slog.DiscardHandler),
	}}, err
}

func open(dir string) (*files.Store, error) {
	return files.Open(files.Config{SpacesDir: filepath.Join(dir, "spaces"), PublishedDir: filepath.Join(dir, "published")})
}

// worker works on one operation; slow makes it tell of each step of progress on
// standard output and dawdle, so that it can be killed in the middle.
func worker(h *operation.Handler, store *files.Store, op uuid.UUID, seen func(operations.Progress)) *operations.Worker {
	work := filework.Work(store)
	for kind, w := range work {
		do := w.Do
		w.Do = func(ctx context.Context, job operations.Job, report func(operations.Progress)) (operation.Result, error) {
			return do(ctx, job, func(p operations.Progress) { seen(p); report(p) })
		}
		work[kind] = w
	}
	return operations.New(operations.Config{
		Operations: h, Samples: noSamples{}, Work: work, Logger: h.Runtime.Logger,
		Pending: func(context.Context) ([]operations.Ref, error) {
			return []operations.Ref{{Tenant: tenant, ID: op}}, nil
		},
		Times: operations.Times{Poll: 50 * time.Millisecond},
	})
}

func child() int {
	ctx := context.Background()
	log, err := eventstore.Open(ctx, eventstore.Config{Address: os.Getenv(childLog)})
	if err != nil {
		return 3
	}
	h, err := handler(log)
	if err != nil {
		return 4
	}
	store, err := open(os.Getenv(childFiles))
	if err != nil {
		return 5
	}
	var last int64
	w := worker(h, store, uuid.MustParse(os.Getenv(childOp)), func(p operations.Progress) {
		if p.DoneFiles > last {
			last = p.DoneFiles
			fmt.Println("done", p.DoneFiles)
			time.Sleep(5 * time.Millisecond)
		}
	})
	if err := w.Run(ctx); err != nil {
		return 6
	}
	return 0
}

// TestKilledInTheMiddle kills the process that copies, twice, and lets another
// one go on.
func TestKilledInTheMiddle(t *testing.T) {
	const count = 120
	server := storetest.Serve(t, embedded.Config{})
	h, err := handler(storetest.Connect(t, eventstore.Config{Address: server.Address()}))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	store, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	space, artefact, op := uuid.New(), uuid.New(), h.Runtime.IDs.New()
	if err := store.EnsureSpace(t.Context(), tenant, space); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		p, _ := storage.ParsePath(fmt.Sprintf("code/part%d/file%d.bin", i%7, i))
		content := bytes.Repeat([]byte{byte(i)}, 20_000+i)
		if _, _, _, err := store.Receive(t.Context(), tenant, space, p, 0, int64(len(content)), bytes.NewReader(content), nil); err != nil {
			t.Fatal(err)
		}
	}
	spec := operation.Spec{
		Kind: operation.PublishAlgorithm, Owner: uuid.New(), Subject: es.Ref{Kind: "algorithmVersion", ID: uuid.New()},
		Work: operation.Work{Kind: operation.CopyOut, Space: space, Path: "code", Artefact: artefact},
	}
	if _, err := h.Queue(t.Context(), es.System(h.Runtime.IDs.New(), "test", "queue", tenant), op, spec); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		done := killAfter(t, server.Address(), dir, op, 10*(round+1))
		t.Logf("killed when %d of %d files were done", done, count)
		if _, err := store.ArtefactManifest(t.Context(), tenant, artefact); err == nil {
			t.Fatal("a half copy can be seen")
		}
	}

	before := inodes(t, filepath.Join(dir, "published"))
	w := worker(h, store, op, func(operations.Progress) {})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	var s operation.State
	for deadline := time.Now().Add(time.Minute); s.Status != operation.Succeeded && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if s, err = h.Load(t.Context(), tenant, op); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	again, err := store.CopyOut(t.Context(), tenant, space, path(t, "code"), uuid.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Status != operation.Succeeded || s.Result.Fingerprint != again.Fingerprint || s.Result.Files != count || s.Attempt != 1 {
		t.Errorf("OPS-02: ended as %+v, want fingerprint %s", s, again.Fingerprint)
	}
	kept := 0
	for inode := range inodes(t, filepath.Join(dir, "published", tenant.String(), artefact.String())) {
		if before[inode] {
			kept++
		}
	}
	// The last files before a kill may be done and not noted yet.
	if kept < 10 {
		t.Errorf("OPS-02: the copy began again: %d files were taken over", kept)
	}
	var names []string
	for env, err := range es.Events(t.Context(), h.Runtime, operation.Aggregate.Stream(tenant, op), 0) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, env.Name)
	}
	if got := fmt.Sprint(names); got != "[operation.queued.v1 operation.started.v1 operation.succeeded.v1]" {
		t.Errorf("OPS-02: events %s", got)
	}
}

// killAfter starts a worker in a process of its own and kills it as soon as it
// has done some files; it tells how many.
func killAfter(t *testing.T, log, dir string, op uuid.UUID, enough int) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$") //nolint:gosec // this very test binary
	cmd.Env = append(os.Environ(), childLog+"="+log, childFiles+"="+dir, childOp+"="+op.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := 0
	for done < enough {
		if _, err := fmt.Fscanf(out, "done %d\n", &done); err != nil {
			t.Fatalf("the worker ended by itself: %v, %v", err, cmd.Wait())
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the worker was not killed")
	}
	return done
}

// inodes are the files below a directory.
func inodes(t *testing.T, dir string) map[uint64]bool {
	t.Helper()
	found := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			found[info.Sys().(*syscall.Stat_t).Ino] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func path(t *testing.T, text string) storage.Path {
	t.Helper()
	p, f := storage.ParsePath(text)
	if f != nil {
		t.Fatal(f)
	}
	return p
}
