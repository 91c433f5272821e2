package storage_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	domainaccess "tallyard/domain/access"
	"tallyard/domain/es"
	domain "tallyard/domain/storage"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/access"
	"tallyard/projections/internal/projtest"
	"tallyard/projections/page"
	"tallyard/projections/storage"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	acme   = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	vision = uuid.MustParse("0198a000-0000-7000-8000-000000000002")
	alice  = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	bob    = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
)

// TestSpaces holds that lists show exactly the spaces that commands let a
// person read in.
func TestSpaces(t *testing.T) {
	ctx := t.Context()
	rt, reader := projtest.Open(t, storage.Projection, domain.Types)

	quota := int64(1 << 40)
	var last es.Position
	var spaces []domain.State
	for _, e := range []domain.SpaceCreated{
		{Kind: domain.Personal, Owner: alice, Zone: domain.DefaultZone},
		{Kind: domain.Personal, Owner: bob, Zone: domain.DefaultZone},
		{Kind: domain.OfProject, Project: vision, Zone: domain.DefaultZone},
		{Kind: domain.OfTenant, Zone: domain.DefaultZone},
	} {
		cmd := es.System(rt.IDs.New(), "test", "test", acme)
		out, err := es.Execute(ctx, rt, cmd, domain.Aggregate, rt.IDs.New(), func(domain.State) ([]es.Event, error) { return []es.Event{e}, nil })
		if err != nil {
			t.Fatal(err)
		}
		spaces = append(spaces, out.State)
	}
	set1 := func(domain.State) ([]es.Event, error) { return []es.Event{domain.QuotaSet{To: &quota}}, nil }
	out, err := es.Execute(ctx, rt, es.System(rt.IDs.New(), "test", "test", acme), domain.Aggregate, spaces[3].ID, set1)
	if err != nil {
		t.Fatal(err)
	}
	spaces[3], last = out.State, out.Position
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := reader.Await(wait, last, storage.Projection.Name); err != nil {
		t.Fatal(err)
	}
	q := storage.Queries{Reader: reader}
	for name, g := range map[string]domainaccess.Grants{
		"STO-01_member":       {Tenant: acme, User: alice, Active: true, Projects: map[uuid.UUID]domainaccess.Role{vision: domainaccess.Member}},
		"STO-01_outside":      {Tenant: acme, User: bob, Active: true},
		"STO-01_tenant_admin": {Tenant: acme, User: bob, Active: true, Roles: []domainaccess.Role{domainaccess.TenantAdmin}},
		"STO-01_auditor":      {Tenant: acme, User: uuid.New(), Active: true, Roles: []domainaccess.Role{domainaccess.Auditor}},
		"TEN-01_elsewhere":    {Tenant: uuid.New(), User: alice, Active: true, Projects: map[uuid.UUID]domainaccess.Role{vision: domainaccess.Member}},
		"TEN-07_suspended":    {Tenant: acme, User: alice},
	} {
		t.Run(name, func(t *testing.T) {
			var want, ids []uuid.UUID
			for _, s := range spaces {
				ids = append(ids, s.ID)
				if domain.MustRead(g, s) == nil {
					want = append(want, s.ID)
				}
			}
			viewer := access.FilterOf(g)
			rows, err := q.List(ctx, viewer, storage.Filter{}, storage.Oldest, page.Page{First: 10})
			if err != nil {
				t.Fatal(err)
			}
			found, err := q.ByIDs(ctx, viewer, ids)
			if err != nil {
				t.Fatal(err)
			}
			n, err := q.Count(ctx, viewer, storage.Filter{})
			if err != nil || n != len(want) || len(found) != len(want) || len(rows.Items) != len(want) {
				t.Fatalf("count %d, found %d, listed %d, want %d (%v)", n, len(found), len(rows.Items), len(want), err)
			}
			for i, s := range rows.Items {
				if quota := s.Quota; (quota != nil) != (s.ID == spaces[3].ID) || quota != nil && (*quota != 1<<40 || s.Version != 1) {
					t.Errorf("quota of %+v", s)
				}
				if s.ID != want[i] || !reflect.DeepEqual(found[s.ID], s) {
					t.Errorf("place %d: %+v", i, s)
				}
			}
		})
	}
}
