package postgres_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
)

var day = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

func TestSnapshots(t *testing.T) {
	s, ctx := postgres.NewSnapshots(pgtest.New(t)), t.Context()
	want := func(fold int, revision int64, state string) {
		t.Helper()
		r, data, ok, err := s.Load(ctx, "s", fold)
		if err != nil || ok != (state != "") || string(data) != state || ok && int64(r) != revision {
			t.Fatalf("%d %q %v %v", r, data, ok, err)
		}
	}
	save := func(fold int, revision int64, state string) {
		t.Helper()
		if err := s.Save(ctx, "s", es.Revision(revision), fold, []byte(state)); err != nil {
			t.Fatal(err)
		}
	}
	want(1, 0, "")
	save(1, 200, "a")
	save(1, 400, "b")
	save(1, 300, "late")
	save(2, 400, "c")
	want(1, 400, "b")
	want(2, 400, "c")
	if err := s.DeleteOlder(ctx, "s", 2); err != nil {
		t.Fatal(err)
	}
	want(1, 0, "")
	want(2, 400, "c")
	if err := s.Delete(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	want(2, 0, "")
}

func TestOrigins(t *testing.T) {
	o, ctx := postgres.NewOrigins(pgtest.New(t)), t.Context()
	old, young := uuid.New(), uuid.New()
	record := func(id uuid.UUID, agent string, at time.Time) {
		t.Helper()
		if err := o.Record(ctx, postgres.Origin{Request: id, Address: "192.0.2.1", UserAgent: agent, At: at}); err != nil {
			t.Fatal(err)
		}
	}
	record(old, "curl", day)
	record(old, "second word", day)
	record(young, "\xff\x00"+strings.Repeat("é", 600), day.Add(time.Hour))
	found, err := o.Find(ctx, []uuid.UUID{old, young, uuid.New()})
	if err != nil || len(found) != 2 || found[old].UserAgent != "curl" || !found[old].At.Equal(day) {
		t.Fatalf("%v %v", found, err)
	}
	if agent := found[young].UserAgent; len(agent) > 512 || !strings.HasPrefix(agent, "\uFFFDé") {
		t.Fatalf("%d bytes: %q", len(agent), agent)
	}
}

func TestOriginsAreKeptAsLongAsTheirTenantSays(t *testing.T) {
	o, ctx := postgres.NewOrigins(pgtest.New(t)), t.Context()
	acme, globex := uuid.New(), uuid.New()
	left := map[uuid.UUID]bool{}
	for _, c := range []struct {
		tenant uuid.UUID
		at     time.Time
		stays  bool
	}{
		{acme, day, false}, {acme, day.Add(time.Hour), true}, // acme says: from the first half hour on
		{globex, day.Add(time.Hour), false}, {globex, day.Add(2 * time.Hour), true}, // others: from one and a half on
	} {
		id := uuid.New()
		left[id] = c.stays
		if err := o.Record(ctx, postgres.Origin{Request: id, Tenant: c.tenant, Address: "192.0.2.1", At: c.at}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := o.DeleteOf(ctx, acme, day.Add(30*time.Minute)); n != 1 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
	if n, err := o.DeleteOthers(ctx, []uuid.UUID{acme}, day.Add(90*time.Minute)); n != 1 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
	found, err := o.Find(ctx, slices.Collect(maps.Keys(left)))
	if err != nil {
		t.Fatal(err)
	}
	for id, stays := range left {
		if _, ok := found[id]; ok != stays {
			t.Errorf("%v: there %v, want %v", id, ok, stays)
		}
	}
}

func TestPersonKeysTheFirstOneCounts(t *testing.T) {
	k, ctx := postgres.NewPersonKeys(pgtest.New(t)), t.Context()
	tenant, person := uuid.New(), uuid.New()
	for _, offered := range []string{"first", "second"} {
		kept, err := k.Put(ctx, tenant, person, []byte(offered), day)
		if err != nil || string(kept) != "first" {
			t.Fatalf("%q %v", kept, err)
		}
	}
	if _, ok, err := k.Get(ctx, uuid.New(), person); ok || err != nil {
		t.Fatalf("another tenant sees it: %v %v", ok, err)
	}
	if b, ok, err := k.Get(ctx, tenant, person); !ok || string(b) != "first" || err != nil {
		t.Fatalf("%q %v %v", b, ok, err)
	}
	for range 2 {
		if err := k.Delete(ctx, tenant, person); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := k.Get(ctx, tenant, person); ok || err != nil {
		t.Fatalf("%v %v", ok, err)
	}
}

func TestOperationProgressKeepsTheNewest(t *testing.T) {
	s, ctx := postgres.NewOperationProgress(pgtest.New(t)), t.Context()
	p := postgres.Progress{Operation: uuid.New(), Tenant: uuid.New(), DoneBytes: 5, TotalBytes: 9, DoneFiles: 1, TotalFiles: 2, At: day}
	late := p
	late.DoneBytes, late.At = 3, day.Add(-time.Second)
	for _, sample := range []postgres.Progress{p, late} {
		if err := s.Save(ctx, sample); err != nil {
			t.Fatal(err)
		}
	}
	found, err := s.Find(ctx, p.Tenant, []uuid.UUID{p.Operation})
	if err != nil || found[p.Operation] != p {
		t.Fatalf("%v %v", found, err)
	}
	if found, err := s.Find(ctx, uuid.New(), []uuid.UUID{p.Operation}); err != nil || len(found) != 0 {
		t.Fatalf("another tenant sees it: %v %v", found, err)
	}
	if err := s.Delete(ctx, p.Operation); err != nil {
		t.Fatal(err)
	}
}
