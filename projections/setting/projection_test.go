package setting_test

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	domain "tallyard/domain/setting"
	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/runner"
	"tallyard/projections/setting"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestByTenant(t *testing.T) {
	ctx, quiet := t.Context(), slog.New(slog.DiscardHandler)
	registry, err := es.NewRegistry(es.Types, domain.Types)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, Logger: quiet, NameKey: []byte("k")}
	set, err := runner.NewSet(setting.Projection)
	if err != nil {
		t.Fatal(err)
	}
	store, err := es.Identity(ctx, rt)
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.New(t)
	reader := runner.NewReader(db, rt.Log, set)
	run, err := runner.New(runner.Config{
		DB: db, Log: rt.Log, Registry: registry, Set: set, Store: store, Reader: reader, Logger: quiet,
		Lead: func(ctx context.Context, work func(context.Context) error) error { return work(ctx) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := run.Stop(ctx); err != nil {
			t.Error(err)
		}
	}()

	acme, globex, initech, vision := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	var last es.Position
	change := func(tenant uuid.UUID, target domain.Target, k domain.Key, v *domain.Value) {
		t.Helper()
		cmd := es.System(rt.IDs.New(), "test", "test", tenant)
		out, err := es.Execute(ctx, rt, cmd, domain.Aggregate, target.ID, func(domain.State) ([]es.Event, error) {
			return []es.Event{domain.Changed{Scope: target.Scope, Settings: []domain.Change{{Key: k, To: v}}}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		last = out.Position
	}
	days := func(n int64) *domain.Value { v := domain.Number(n); return &v }
	on := domain.Flag(true)
	const kept = domain.ClientAddressRetentionDays
	change(es.PlatformTenant, domain.OfPlatform(), kept, days(60))
	change(acme, domain.OfTenant(acme), kept, days(5))
	change(acme, domain.OfTenant(acme), kept, days(7))
	change(globex, domain.OfTenant(globex), kept, days(9))
	change(globex, domain.OfTenant(globex), kept, nil)
	change(initech, domain.OfTenant(initech), domain.ModelPublishingEnabled, &on)
	change(acme, domain.OfProject(vision), domain.ModelApprovalRequired, &on)
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := reader.Await(wait, last, setting.Projection.Name); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		key  domain.Key
		want map[uuid.UUID]domain.Value
	}{
		{"AUD-06_what_each_tenant_set_last", kept, map[uuid.UUID]domain.Value{uuid.Nil: domain.Number(60), acme: domain.Number(7)}},
		{"TEN-09_flags", domain.ModelPublishingEnabled, map[uuid.UUID]domain.Value{initech: on}},
		{"TEN-09_a_project_is_no_tenant", domain.ModelApprovalRequired, map[uuid.UUID]domain.Value{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := setting.Queries{Reader: reader}.ByTenant(ctx, c.key)
			if err != nil || !maps.Equal(got, c.want) {
				t.Fatalf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}
