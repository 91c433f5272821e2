package spaces_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/flows/spaces"
	"tallyard/domain/operation"
	"tallyard/domain/project"
	"tallyard/domain/storage"
	"tallyard/domain/tenant"
	"tallyard/infra/eventstore/storetest"
	"tallyard/processes/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var acme = uuid.MustParse("0198a000-0000-7000-8000-000000000001")

type everybody struct{}

func (everybody) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	return access.Grants{Tenant: tenant, User: user, Active: true}, nil
}

func world(t *testing.T) *spaces.Flow {
	t.Helper()
	registry, err := es.NewRegistry(es.Types, tenant.Types, project.Types, storage.Types, operation.Types)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, NameKey: []byte("k"),
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	return &spaces.Flow{
		Runtime: rt, Spaces: &storage.Handler{Runtime: rt, Access: everybody{}},
		Operations: &operation.Handler{Runtime: rt, Access: everybody{}},
	}
}

// work lets the process work until something has come about.
func work(t *testing.T, f *spaces.Flow, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- driver.New(f.Runtime, f.Process()).Run(ctx) }()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Errorf("never: %s", what)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestShared(t *testing.T) {
	f := world(t)
	system := func(in uuid.UUID) es.Command { return es.System(f.Runtime.IDs.New(), "test", "test", in) }
	tenants, projects := &tenant.Handler{Runtime: f.Runtime}, &project.Handler{Runtime: f.Runtime}
	company, err := tenants.Create(t.Context(), system(es.PlatformTenant), "acme")
	if err != nil {
		t.Fatal(err)
	}
	id := company.Refs.Tenant
	made, err := projects.Create(t.Context(), system(id), project.Create{Name: "vision"})
	if err != nil {
		t.Fatal(err)
	}
	find := func(project uuid.UUID) storage.State {
		space, ok, err := f.Spaces.FindShared(t.Context(), id, project)
		if err != nil || !ok {
			return storage.State{}
		}
		s, err := f.Spaces.Load(t.Context(), id, space)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	work(t, f, "both spaces", func() bool { return find(uuid.Nil).Exists() && find(made.Refs.Project).Exists() })
	t.Run("STO-01_a_tenant_has_one", func(t *testing.T) {
		if s := find(uuid.Nil); s.Kind != storage.OfTenant || s.Tenant != id || s.Zone != storage.DefaultZone {
			t.Errorf("%+v", s)
		}
	})
	t.Run("STO-01_a_project_has_one", func(t *testing.T) {
		if s := find(made.Refs.Project); s.Kind != storage.OfProject || s.Project != made.Refs.Project || s.Tenant != id {
			t.Errorf("%+v", s)
		}
	})
	t.Run("STO-01_and_never_a_second_one", func(t *testing.T) {
		was := find(made.Refs.Project).ID
		again, err := f.Spaces.Shared(t.Context(), system(id), made.Refs.Project)
		if err != nil || again != was {
			t.Errorf("%v, was %v, %v", again, was, err)
		}
	})
}

func TestRemoval(t *testing.T) {
	f := world(t)
	owner, space, op := uuid.New(), f.Runtime.IDs.New(), f.Runtime.IDs.New()
	write := func(by uuid.UUID, e es.Event) {
		t.Helper()
		cmd := es.Command{ID: f.Runtime.IDs.New(), Action: "deleteFiles", Tenant: acme, Actor: es.Actor{Kind: es.ActorUser, User: by}}
		if _, err := es.Execute(t.Context(), f.Runtime, cmd, storage.Aggregate, space, func(storage.State) ([]es.Event, error) { return []es.Event{e}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	load := func() operation.State {
		s, err := f.Operations.Load(t.Context(), acme, op)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write(owner, storage.SpaceCreated{Kind: storage.OfTenant, Zone: storage.DefaultZone})
	write(owner, storage.DirectoryRemovalRequested{Path: "d", Directory: "1:2:3", Operation: op})
	t.Run("OPS-02_a_request_whose_command_died_is_put_in_line", func(t *testing.T) {
		work(t, f, "the operation", func() bool { return load().Exists() })
		s := load()
		want := operation.Work{Kind: operation.RemoveDirectory, Space: space, Path: "d", Directory: "1:2:3"}
		if s.Kind != operation.DeleteDirectory || s.Work != want || s.Owner != owner || s.Subject.ID != space || s.Status != operation.Queued {
			t.Errorf("%+v", s)
		}
	})
	t.Run("OPS-01_queued_by_the_command_too_it_is_one", func(t *testing.T) {
		r := storage.Removal{Operation: op, Space: space, Owner: owner, Path: "d", Directory: "1:2:3"}
		cmd := es.Command{ID: f.Runtime.IDs.New(), Action: "deleteFiles", Tenant: acme, Actor: es.Actor{Kind: es.ActorUser, User: owner}}
		if err := f.RemoveDirectory(t.Context(), cmd, r); err != nil {
			t.Error(err)
		}
		if known, err := f.Known(t.Context(), acme, op); !known || err != nil {
			t.Errorf("%v, %v", known, err)
		}
	})
	t.Run("STO-02_what_was_removed_is_on_record_in_the_space", func(t *testing.T) {
		cmd := es.System(f.Runtime.IDs.New(), "test", "test", acme)
		if _, err := f.Operations.Start(t.Context(), cmd, op); err != nil {
			t.Fatal(err)
		}
		cmd = es.System(f.Runtime.IDs.New(), "test", "test", acme)
		if _, err := f.Operations.Succeed(t.Context(), cmd, op, 1, operation.Result{Files: 4, Bytes: 5}, operation.Amount{}); err != nil {
			t.Fatal(err)
		}
		recorded := func() (found []storage.FilesDeleted) {
			for env, err := range es.Events(t.Context(), f.Runtime, storage.Aggregate.Stream(acme, space), 0) {
				if err != nil && !strings.Contains(err.Error(), "context") {
					t.Fatal(err)
				}
				if e, ok := env.Event.(storage.FilesDeleted); ok {
					found = append(found, e)
				}
			}
			return found
		}
		work(t, f, "the record", func() bool { return len(recorded()) > 0 })
		if got := recorded(); len(got) != 1 || got[0] != (storage.FilesDeleted{Path: "d", Files: 4, Bytes: 5}) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("OPS-01_a_space_waits_for_no_retry", func(t *testing.T) {
		subjects := operation.SubjectsByKind{}
		for _, k := range f.Kinds() {
			subjects[k] = f
		}
		if err := subjects.Retry(t.Context(), es.Command{}, load()); err != nil {
			t.Error(err)
		}
		if err := subjects.MayRetry(t.Context(), access.Grants{}, load()); err != nil {
			t.Error(err)
		}
		if err := subjects.MayRetry(t.Context(), access.Grants{}, operation.State{Kind: operation.CopyAlgorithm}); err == nil {
			t.Error("a kind that nobody knows may be retried")
		}
		if err := subjects.Retry(t.Context(), es.Command{}, operation.State{Kind: operation.CopyAlgorithm}); err == nil {
			t.Error("a kind that nobody knows was retried")
		}
	})
}
