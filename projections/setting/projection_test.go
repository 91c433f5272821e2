package setting_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	domain "tallyard/domain/setting"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/internal/projtest"
	"tallyard/projections/setting"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestByTenant(t *testing.T) {
	ctx := t.Context()
	rt, reader := projtest.Open(t, setting.Projection, domain.Types)

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
