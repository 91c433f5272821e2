package model_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	domainaccess "tallyard/domain/access"
	"tallyard/domain/es"
	domain "tallyard/domain/model"
	"tallyard/domain/patch"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/access"
	"tallyard/projections/internal/projtest"
	"tallyard/projections/model"
	"tallyard/projections/page"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func fixed(last byte) uuid.UUID {
	id := uuid.MustParse("0198a000-0000-7000-8000-000000000000")
	id[15] = last
	return id
}

var (
	acme, globex            = fixed(1), fixed(2)
	vision, home            = fixed(3), fixed(40)
	alice, bob, carol       = fixed(10), fixed(11), fixed(12)
	admin, auditor, mallory = fixed(13), fixed(14), fixed(15)
)

var people = map[uuid.UUID]domainaccess.Grants{
	alice:   {Tenant: acme, User: alice, Active: true, Projects: map[uuid.UUID]domainaccess.Role{vision: domainaccess.Member}},
	bob:     {Tenant: acme, User: bob, Active: true, Projects: map[uuid.UUID]domainaccess.Role{vision: domainaccess.Member}},
	carol:   {Tenant: acme, User: carol, Active: true},
	admin:   {Tenant: acme, User: admin, Active: true, Roles: []domainaccess.Role{domainaccess.TenantAdmin}},
	auditor: {Tenant: acme, User: auditor, Active: true, Roles: []domainaccess.Role{domainaccess.Auditor}},
	mallory: {Tenant: globex, User: mallory, Active: true, Roles: []domainaccess.Role{domainaccess.TenantAdmin}},
}

// around stands for the other features.
type around struct{}

func (around) Grants(_ context.Context, _, user uuid.UUID) (domainaccess.Grants, error) {
	return people[user], nil
}

func (around) Model(_ context.Context, _, _ uuid.UUID, directory, _ string) (domain.Directory, error) {
	return domain.Directory{Space: home, Path: directory}, nil
}

func (around) Exists(_ context.Context, _, id uuid.UUID) (bool, error) { return id == vision, nil }

func (around) Using(context.Context, uuid.UUID, uuid.UUID) ([]domain.Use, error) { return nil, nil }

type world struct {
	*domain.Handler
	t       *testing.T
	queries model.Queries
}

func newWorld(t *testing.T) *world {
	t.Helper()
	rt, reader := projtest.Open(t, model.Projection, domain.Types)
	return &world{
		Handler: &domain.Handler{Runtime: rt, Access: around{}, Projects: around{}, Directories: around{}, Users: around{}}, t: t,
		queries: model.Queries{Reader: reader},
	}
}

func by(user uuid.UUID) es.Command {
	return es.Command{ID: uuid.New(), Action: "test", Tenant: people[user].Tenant, Actor: es.Actor{Kind: es.ActorUser, User: user}}
}

func (w *world) imports(name string, number int) domain.VersionRef {
	w.t.Helper()
	r, err := w.Import(w.t.Context(), by(alice), domain.ImportInput{Project: vision, Name: name, Number: number, Directory: name, Fields: domain.Fields{
		Scenario: patch.To("vision"), Metrics: patch.To([]domain.Metric{{Name: "f1", Value: 0.5}}),
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	return domain.VersionRef{Model: r.Refs.Model, Version: r.Refs.Version}
}

func (w *world) must(_ es.Result[domain.Refs], err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// caughtUp waits until everything in the log is in the tables.
func (w *world) caughtUp() {
	w.t.Helper()
	for rec, err := range w.Runtime.Log.ReadAll(w.t.Context(), es.StartPosition, es.Backward, 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
		defer cancel()
		if err := w.queries.Reader.Await(ctx, rec.Position, model.Projection.Name); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestFold compares the rows with what the log folds to, after every kind of event.
func TestFold(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	first, second := w.imports("cats", 1), w.imports("cats", 2)
	check := func(name string) {
		t.Run("GEN-01_"+name, func(t *testing.T) {
			w.caughtUp()
			l, err := es.Load(ctx, w.Runtime, domain.Aggregate, acme, first.Model)
			if err != nil {
				t.Fatal(err)
			}
			want := l.State
			got, err := w.queries.ByIDs(ctx, access.FilterOf(people[admin]), []uuid.UUID{first.Model})
			if err != nil {
				t.Fatal(err)
			}
			rows, err := w.queries.VersionsOf(ctx, access.FilterOf(people[admin]), []uuid.UUID{first.Model}, page.Page{First: 10})
			if err != nil {
				t.Fatal(err)
			}
			s := got[first.Model]
			for _, v := range slices.Backward(rows[first.Model].Items) {
				s.Versions = append(s.Versions, v.Version)
			}
			if want.Deleted {
				want = domain.State{}
			}
			if !reflect.DeepEqual(s, want) {
				t.Errorf("%+v\nwant %+v", s, want)
			}
		})
	}
	check("imported")
	w.must(w.UpdateVersion(ctx, by(admin), domain.UpdateInput{VersionRef: first, Fields: domain.Fields{
		Description: patch.To("sees"), Metrics: patch.Clear[[]domain.Metric](), Parameters: patch.To([]domain.Pair{{Name: "lr", Value: "1"}}),
	}}))
	check("edited")
	w.must(w.Share(ctx, by(alice), second, domainaccess.Global))
	check("shared")
	w.must(w.Unshare(ctx, by(alice), second))
	check("taken_back")
	if _, err := w.Transfer(ctx, by(admin), first.Model, alice, bob); err != nil {
		t.Fatal(err)
	}
	check("transferred")
	if list, err := w.queries.OwnedBy(ctx, acme, bob); err != nil || len(list) != 1 || list[0].ID != first.Model {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := w.queries.InProject(ctx, acme, vision); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	w.must(w.Delete(ctx, by(bob), first))
	check("a_version_deleted")
	w.must(w.Delete(ctx, by(bob), second))
	check("all_deleted")
}

// TestVisible tells who has what in their list.
func TestVisible(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.imports("private", 1)
	group, global := w.imports("group", 1), w.imports("global", 1)
	w.imports("global", 2) // the owner's alone
	w.must(w.Share(ctx, by(alice), group, domainaccess.Group))
	w.must(w.Share(ctx, by(alice), global, domainaccess.Global))
	w.caughtUp()
	for name, c := range map[string]struct {
		user     uuid.UUID
		want     []string
		versions int
	}{
		"owner":          {alice, []string{"private", "group", "global"}, 2},
		"member":         {bob, []string{"group", "global"}, 1},
		"others":         {carol, []string{"global"}, 1},
		"admin":          {admin, []string{"private", "group", "global"}, 2},
		"auditor":        {auditor, []string{"private", "group", "global"}, 2},
		"another_tenant": {mallory, nil, 0},
	} {
		t.Run("MDL-03_"+name, func(t *testing.T) {
			viewer := access.FilterOf(people[c.user])
			rows, err := w.queries.List(ctx, viewer, model.Filter{}, page.Order{Column: model.ByCreated, IDColumn: "t.id"}, page.Page{First: 10})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range rows.Items {
				got = append(got, s.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			if n, err := w.queries.Count(ctx, viewer, model.Filter{}); err != nil || n != len(c.want) {
				t.Errorf("counted %d, %v", n, err)
			}
			if n, err := w.queries.CountVersionsOf(ctx, viewer, global.Model); err != nil || n != c.versions {
				t.Errorf("%d versions, %v", n, err)
			}
			// A version that is not seen does not bring its model into a search.
			hidden, err := w.queries.Count(ctx, viewer, model.Filter{Search: "private"})
			if err != nil || hidden != min(1, len(c.want)/3) {
				t.Errorf("a search finds %d, %v", hidden, err)
			}
		})
	}
	t.Run("STO-02_directories_with_a_mark", func(t *testing.T) {
		got, err := w.queries.SourcesIn(ctx, acme, home)
		if slices.Sort(got); err != nil || !slices.Equal(got, []string{"global", "group", "private"}) {
			t.Errorf("%v, %v", got, err)
		}
	})
}
