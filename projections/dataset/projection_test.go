package dataset_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	domainaccess "tallyard/domain/access"
	domain "tallyard/domain/dataset"
	"tallyard/domain/es"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/access"
	"tallyard/projections/dataset"
	"tallyard/projections/internal/projtest"
	"tallyard/projections/page"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	acme   = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	vision = uuid.MustParse("0198a000-0000-7000-8000-000000000002")
	alice  = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	bob    = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
)

// TestDataSets holds that the read model is what the fold is, and that lists
// show exactly what the rules let a person see.
func TestDataSets(t *testing.T) {
	ctx := t.Context()
	rt, reader := projtest.Open(t, dataset.Projection, domain.Types)

	op := uuid.New()
	begun := func(s domain.Step) es.Event { return domain.CacheBegun{Step: s, Operation: op} }
	ended := func(s domain.Step, o domain.Outcome) es.Event {
		return domain.CacheEnded{Step: s, Operation: op, Outcome: o, Files: 3, Bytes: 5, Problem: string(o)}
	}
	filled := []es.Event{begun(domain.Fill), ended(domain.Fill, domain.Succeeded)}
	var last es.Position
	var want []domain.State
	for i, events := range [][]es.Event{
		{},
		{domain.Updated{Name: &domain.Moved{To: "numbers"}, Description: &domain.Moved{To: "d"}, Visibility: &domain.Moved{To: "GLOBAL"}, Content: &domain.MovedContent{To: domain.Content{Directory: "e", Files: 9}}}},
		{begun(domain.Fill)},
		filled,
		append(filled[:2:2], begun(domain.Unzip), ended(domain.Unzip, domain.Succeeded)),
		append(filled[:2:2], begun(domain.Unzip), ended(domain.Unzip, domain.Failed)),
		append(filled[:2:2], begun(domain.Refresh), ended(domain.Refresh, domain.Cancelled)),
		append(filled[:2:2], begun(domain.Refresh)),
		{domain.Removed{}},
	} {
		visibility := []domainaccess.Visibility{domainaccess.Private, domainaccess.Group, domainaccess.Global}[i%3]
		id := rt.IDs.New()
		all := append([]es.Event{domain.Registered{Project: vision, Owner: alice, Name: "digits", Visibility: visibility, Content: domain.Content{Space: bob, Directory: "d", Files: 1, Bytes: 2}}}, events...)
		var s domain.State
		for _, e := range all {
			out, err := es.Execute(ctx, rt, es.System(rt.IDs.New(), "test", "test", acme), domain.Aggregate, id, func(domain.State) ([]es.Event, error) { return []es.Event{e}, nil })
			if err != nil {
				t.Fatal(err)
			}
			s, last = out.State, out.Position
		}
		want = append(want, s)
	}
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := reader.Await(wait, last, dataset.Projection.Name); err != nil {
		t.Fatal(err)
	}
	q := dataset.Queries{Reader: reader}
	for name, g := range map[string]domainaccess.Grants{
		"STO-08_owner":        {Tenant: acme, User: alice, Active: true},
		"STO-08_member":       {Tenant: acme, User: bob, Active: true, Projects: map[uuid.UUID]domainaccess.Role{vision: domainaccess.Member}},
		"STO-08_outside":      {Tenant: acme, User: bob, Active: true},
		"STO-08_tenant_admin": {Tenant: acme, User: bob, Active: true, Roles: []domainaccess.Role{domainaccess.TenantAdmin}},
		"TEN-01_elsewhere":    {Tenant: vision, User: alice, Active: true},
		"TEN-07_suspended":    {Tenant: acme, User: alice},
	} {
		t.Run(name, func(t *testing.T) {
			viewer := access.FilterOf(g)
			rows, err := q.List(ctx, viewer, dataset.Filter{}, page.Order{Column: dataset.ByUpdated, IDColumn: "t.id"}, page.Page{First: 100})
			if err != nil {
				t.Fatal(err)
			}
			got := map[uuid.UUID]domain.State{}
			for _, s := range rows.Items {
				got[s.ID] = s
			}
			seen := 0
			for _, s := range want {
				if !s.Exists() || domainaccess.MustSee(g, s.Thing()) != nil {
					if _, shown := got[s.ID]; shown {
						t.Errorf("shown: %+v", s)
					}
					continue
				}
				seen++
				if !reflect.DeepEqual(got[s.ID], s) {
					t.Errorf("the read model has %+v, the fold %+v", got[s.ID], s)
				}
			}
			if n, err := q.Count(ctx, viewer, dataset.Filter{}); err != nil || n != seen || len(got) != seen {
				t.Errorf("count %d, listed %d, want %d (%v)", n, len(got), seen, err)
			}
		})
	}
}
