package artefact_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/flows/artefact"
	"tallyard/domain/operation"
	"tallyard/domain/patch"
	"tallyard/domain/storage"
	"tallyard/domain/workload"
	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/files"
	"tallyard/processes/driver"
	"tallyard/processes/operations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	acme   = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	alice  = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	vision = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
	home   = uuid.MustParse("0198a000-0000-7000-8000-00000000000c")
)

type everybody struct{}

func (everybody) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	return access.Grants{Tenant: tenant, User: user, Active: true, Projects: map[uuid.UUID]access.Role{vision: access.Member}}, nil
}

// openProjects says of every project that it is there.
type openProjects struct{}

func (openProjects) Exists(context.Context, uuid.UUID, uuid.UUID) (bool, error) { return true, nil }

type noApprovals struct{}

func (noApprovals) GlobalAlgorithmApprovalRequired(context.Context, uuid.UUID, uuid.UUID) (bool, error) {
	return false, nil
}

type noModels struct{}

func (noModels) Model(context.Context, access.Grants, uuid.UUID) (bool, error) { return false, nil }

// homes is the one home of these tests.
type homes struct{}

func (homes) Script(_ context.Context, _, _ uuid.UUID, directory, script string) (algorithm.Script, error) {
	return algorithm.Script{Space: home, Directory: directory, Script: script}, nil
}

func (homes) Free(context.Context, uuid.UUID, uuid.UUID, string) (uuid.UUID, error) { return home, nil }

type noSamples struct{}

func (noSamples) Record(context.Context, operations.Ref, operations.Progress) error { return nil }
func (noSamples) Forget(context.Context, operations.Ref) error                      { return nil }

// world is a log and a disk; programs come and go on them.
type world struct {
	t    *testing.T
	log  es.Log
	dir  string
	disk *files.Store
	*program
}

// program is one life of the server: what is known is in the log and on disk.
type program struct {
	rt         *es.Runtime
	algorithms *algorithm.Handler
	operations *operation.Handler
	flow       *artefact.Flow
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, log: storetest.Open(t), dir: t.TempDir()}
	var err error
	if w.disk, err = files.Open(files.Config{SpacesDir: filepath.Join(w.dir, "spaces"), PublishedDir: filepath.Join(w.dir, "published")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.disk.Close() })
	if err := w.disk.EnsureSpace(t.Context(), acme, home); err != nil {
		t.Fatal(err)
	}
	w.program = w.newProgram(w.log)
	w.put("code/main.py")
	return w
}

func (w *world) path(name string) string {
	return filepath.Join(w.dir, "spaces", acme.String(), home.String(), filepath.FromSlash(name))
}

// put writes a file of the home.
func (w *world) put(name string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o750); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte("print(1)\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// tear removes a file of an artefact behind the store's back.
func (w *world) tear(artefact uuid.UUID) {
	w.t.Helper()
	torn := false
	err := filepath.WalkDir(filepath.Join(w.dir, "published"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "main.py" || !strings.Contains(path, artefact.String()) {
			return err
		}
		torn = true
		return errors.Join(os.Chmod(filepath.Dir(path), 0o700), os.Remove(path)) //nolint:gosec // G302: a directory
	})
	if err != nil || !torn {
		w.t.Fatal(torn, err)
	}
}

// named are the files and directories of the home that carry an id in their name.
func (w *world) named(id uuid.UUID) (found []string) {
	w.t.Helper()
	err := filepath.WalkDir(filepath.Join(w.dir, "spaces"), func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.Contains(d.Name(), id.String()) {
			found = append(found, path)
		}
		return nil // what is removed meanwhile is not there
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) newProgram(log es.Log) *program {
	registry, err := es.NewRegistry(es.Types, algorithm.Types, operation.Types)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &program{rt: &es.Runtime{
		Log: log, Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, NameKey: []byte("k"), Logger: slog.New(slog.DiscardHandler),
	}}
	p.algorithms = &algorithm.Handler{Runtime: p.rt, Access: everybody{}, Projects: openProjects{}, Directories: homes{}, Models: noModels{}, Settings: noApprovals{}}
	p.operations = &operation.Handler{Runtime: p.rt, Access: everybody{}}
	p.flow = &artefact.Flow{Runtime: p.rt, Algorithms: p.algorithms, Operations: p.operations}
	p.operations.Subjects = p.flow
	return p
}

// run lets the process and the worker run until the returned function stops them.
func (w *world) run(p *program) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	worker := operations.New(operations.Config{
		Operations: p.operations, Samples: noSamples{}, Logger: p.rt.Logger, Times: operations.Times{Poll: 20 * time.Millisecond},
		Pending: func(ctx context.Context) ([]operations.Ref, error) { return w.pending(ctx, p) },
		Work: map[operation.WorkKind]operations.Work{
			operation.CopyOut: {Do: w.copyOut, Undo: w.remove}, operation.CopyIn: {Do: w.copyIn, Undo: w.discard},
			operation.RemoveArtefact: {Do: func(ctx context.Context, j operations.Job, _ func(operations.Progress)) (operation.Result, error) {
				return operation.Result{}, w.remove(ctx, j, false)
			}},
		},
	})
	var wg sync.WaitGroup
	wg.Go(func() { _ = driver.New(p.rt, p.flow.Process()).Run(ctx) })
	wg.Go(func() { _ = worker.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

// pending finds in the log what a worker is to do.
func (w *world) pending(ctx context.Context, p *program) ([]operations.Ref, error) {
	var list []operations.Ref
	for rec, err := range w.log.ReadAll(ctx, es.StartPosition, es.Forward, es.Everything) {
		if err != nil {
			return nil, err
		}
		if rec.Type != "operation.queued.v1" {
			continue
		}
		stream, err := es.ParseStream(rec.Stream)
		if err != nil {
			return nil, err
		}
		id, err := stream.UUID()
		if err != nil {
			return nil, err
		}
		s, err := p.operations.Load(ctx, acme, id)
		if err != nil {
			return nil, err
		}
		if !s.Status.Ended() {
			list = append(list, operations.Ref{Tenant: acme, ID: id})
		}
	}
	return list, nil
}

var errBroken = errors.New("the disk is broken")

func (w *world) copyOut(ctx context.Context, j operations.Job, _ func(operations.Progress)) (operation.Result, error) {
	folder, bad := storage.ParseFolder(j.Work.Path)
	if bad != nil {
		return operation.Result{}, bad
	}
	m, err := w.disk.CopyOut(ctx, j.Tenant, j.Work.Space, folder, j.Work.Artefact, nil)
	return operation.Result{Fingerprint: m.Fingerprint, Files: m.Files, Bytes: m.Bytes}, err
}

func (w *world) copyIn(ctx context.Context, j operations.Job, _ func(operations.Progress)) (operation.Result, error) {
	folder, bad := storage.ParsePath(j.Work.Path)
	if bad != nil {
		return operation.Result{}, bad
	}
	m, err := w.disk.CopyIn(ctx, j.Tenant, j.Work.Artefact, j.Work.Space, folder, j.ID, nil)
	return operation.Result{Fingerprint: m.Fingerprint, Files: m.Files, Bytes: m.Bytes}, err
}

// broken is a file of the test's directory that makes removals fail.
func (w *world) broken() string { return filepath.Join(w.dir, "broken") }

func (w *world) remove(ctx context.Context, j operations.Job, _ bool) error {
	if _, err := os.Stat(w.broken()); err == nil {
		return fault.New(fault.Unavailable, fault.CodeUnavailable, errBroken.Error())
	}
	_, err := w.disk.RemoveArtefact(ctx, j.Tenant, j.Work.Artefact, nil)
	return err
}

func (w *world) discard(ctx context.Context, j operations.Job, _ bool) error {
	return w.disk.DiscardCopyIn(ctx, j.Tenant, j.Work.Space, j.ID)
}

func by() es.Command {
	return es.Command{ID: uuid.New(), Action: "test", Tenant: acme, Actor: es.Actor{Kind: es.ActorUser, User: alice}}
}

func (w *world) create(name string, in algorithm.VersionInput) algorithm.VersionRef {
	w.t.Helper()
	r, err := w.algorithms.Create(w.t.Context(), by(), algorithm.CreateInput{Project: vision, Name: name, VersionInput: in})
	if err != nil {
		w.t.Fatal(err)
	}
	return algorithm.VersionRef{Algorithm: r.Refs.Algorithm, Version: r.Refs.Version}
}

func script(directory string) algorithm.VersionInput {
	return algorithm.VersionInput{
		Label: "1", Source: &algorithm.SourceInput{Directory: directory, Script: "main.py"},
		Fields: algorithm.Fields{Image: patch.To(workload.Image{Framework: workload.PyTorch, Reference: "x"})},
	}
}

func (w *world) publish(r algorithm.VersionRef) {
	w.t.Helper()
	if _, err := w.algorithms.PublishVersion(w.t.Context(), by(), algorithm.PublishInput{VersionRef: r, Visibility: access.Group}); err != nil {
		w.t.Fatal(err)
	}
}

// comes waits until a version is in a state.
func (w *world) comes(r algorithm.VersionRef, status algorithm.Status) algorithm.Version {
	w.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		l, err := es.Load(w.t.Context(), w.newProgram(w.log).rt, algorithm.Aggregate, acme, r.Algorithm)
		if err != nil {
			w.t.Fatal(err)
		}
		v, ok := l.State.Version(r.Version)
		if ok && v.Status == status || !ok && status == algorithm.Deleted {
			return v
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("stays %q (%s), want %s", v.Status, v.Problem, status)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
