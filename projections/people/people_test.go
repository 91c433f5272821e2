package people_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/flows/devseed"
	"tallyard/domain/patch"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/keys"
	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
	projaccess "tallyard/projections/access"
	"tallyard/projections/page"
	"tallyard/projections/people"
	"tallyard/projections/runner"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a seeded installation with its read model.
type world struct {
	devseed.Handlers
	t      *testing.T
	db     *pgxpool.Pool
	reader *runner.Reader
	people people.Queries
	access projaccess.Queries
	tenant uuid.UUID
	ids    map[string]uuid.UUID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, log := pgtest.New(t), storetest.Open(t)
	registry, err := es.NewRegistry(es.Types, tenant.Types, project.Types, user.Types)
	if err != nil {
		t.Fatal(err)
	}
	master, err := keys.LoadOrCreate(t.TempDir() + "/master.key")
	if err != nil {
		t.Fatal(err)
	}
	persons, err := keys.NewPersons(master, postgres.NewPersonKeys(db), es.SystemClock{})
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	if os.Getenv("TALLYARD_TEST_LOG") != "" {
		logger = slog.Default()
	}
	rt := &es.Runtime{
		Log: log, Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{},
		NameKey: master.Derive(keys.Names), Logger: logger, Refusals: es.NewRefusals(),
	}
	users := &user.Handler{Runtime: rt, Keys: persons, Random: rand.Reader}
	projects := &project.Handler{Runtime: rt, Access: users}
	users.Projects = projects
	w := &world{
		Handlers: devseed.Handlers{Runtime: rt, Tenants: &tenant.Handler{Runtime: rt, Access: users}, Projects: projects, Users: users},
		t:        t, db: db, ids: map[string]uuid.UUID{},
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.start(persons)
	w.find()
	return w
}

// start runs the projections until the test ends.
func (w *world) start(persons user.PersonKeys) {
	set, err := runner.NewSet(people.Projection(persons), projaccess.Projection)
	if err != nil {
		w.t.Fatal(err)
	}
	rt := w.Runtime
	if err := set.Check(rt.Registry); err != nil {
		w.t.Fatal(err)
	}
	store, err := es.Identity(w.t.Context(), rt)
	if err != nil {
		w.t.Fatal(err)
	}
	w.reader = runner.NewReader(w.db, rt.Log, set)
	w.people, w.access = people.Queries{Reader: w.reader}, projaccess.Queries{Reader: w.reader}
	r, err := runner.New(runner.Config{
		DB: w.db, Log: rt.Log, Registry: rt.Registry, Set: set, Store: store, Reader: w.reader, Logger: rt.Logger,
		Lead: func(ctx context.Context, work func(context.Context) error) error { return work(ctx) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := r.Start(context.WithoutCancel(w.t.Context())); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := r.Stop(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.settle()
}

// settle waits until the read model shows the whole log.
func (w *world) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if err := w.reader.WaitReady(ctx); err != nil {
		w.t.Fatal(err)
	}
	for rec, err := range w.Runtime.Log.ReadAll(ctx, es.StartPosition, es.Backward, 1) {
		if err == nil {
			err = w.reader.Await(ctx, rec.Position, "people", "access")
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// find looks the seeded things up by name.
func (w *world) find() {
	for _, name := range devseed.Tenants {
		id, ok, err := w.Tenants.Find(w.t.Context(), name)
		if err != nil || !ok {
			w.t.Fatalf("%s: %v %v", name, ok, err)
		}
		w.ids[name] = id
		for _, login := range []string{"admin", "carol", "alice", "bob", "audra", "oscar", "mallory"} {
			if u, ok, err := w.Users.Find(w.t.Context(), id, login); err != nil {
				w.t.Fatal(err)
			} else if ok {
				w.ids[login] = u
			}
		}
		for _, p := range []string{"vision", "research"} {
			if u, ok, err := w.Projects.Find(w.t.Context(), id, p); err != nil {
				w.t.Fatal(err)
			} else if ok {
				w.ids[p] = u
			}
		}
	}
	w.tenant = w.ids["acme"]
}

func (w *world) grants(name string) access.Grants {
	w.t.Helper()
	tenant := w.tenant
	if name == "mallory" {
		tenant = w.ids["globex"]
	}
	g, err := w.Users.Grants(w.t.Context(), tenant, w.ids[name])
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

// by is a command of a user.
func (w *world) by(name, action string) es.Command {
	g := w.grants(name)
	return es.Command{ID: uuid.New(), Action: action, Tenant: g.Tenant, Reason: "test", Actor: es.Actor{Kind: es.ActorUser, User: g.User}}
}

func names[T any](rows page.Rows[T], name func(T) string) []string {
	list := []string{}
	for _, r := range rows.Items {
		list = append(list, name(r))
	}
	return list
}

func TestPeople(t *testing.T) {
	w := newWorld(t)
	all := page.Page{First: 20}

	t.Run("GEN-03_the_seed_makes_everything_once", func(t *testing.T) {
		before := w.head()
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := w.head(); after != before {
			t.Fatalf("the log went from %d to %d", before, after)
		}
	})
	t.Run("TEN-01_people_see_the_people_of_their_tenant", func(t *testing.T) {
		for name, want := range map[string][]string{
			"alice":   {"admin", "alice", "audra", "bob", "carol", "oscar"},
			"mallory": {"mallory"},
		} {
			rows, err := w.people.Users(t.Context(), w.grants(name), people.UserFilter{}, all)
			equal(t, names(rows, func(u people.User) string { return u.LoginName }), want, err)
			n, err := w.people.CountUsers(t.Context(), w.grants(name), people.UserFilter{})
			if err != nil || n != len(want) {
				t.Fatalf("got %d, %v", n, err)
			}
		}
		found, err := w.people.UsersByID(t.Context(), w.grants("mallory"), []uuid.UUID{w.ids["alice"], w.ids["mallory"]})
		if err != nil || len(found) != 1 || found[w.ids["mallory"]].DisplayName != "Mallory Example" {
			t.Fatalf("got %v, %v", found, err)
		}
	})
	t.Run("TEN-01_tenants_and_projects", func(t *testing.T) {
		for name, want := range map[string][2][]string{
			"alice":   {{"acme"}, {"vision"}},
			"audra":   {{"acme"}, {"vision"}},
			"oscar":   {{"acme", "globex"}, {}},
			"mallory": {{"globex"}, {"research"}},
		} {
			tenants, err := w.people.Tenants(t.Context(), w.grants(name), all)
			equal(t, names(tenants, func(x people.Tenant) string { return x.Name }), want[0], err)
			projects, err := w.people.Projects(t.Context(), w.grants(name), all)
			equal(t, names(projects, func(x people.Project) string { return x.Name }), want[1], err)
		}
	})
	t.Run("TEN-02_members_of_a_project", func(t *testing.T) {
		f := people.UserFilter{Project: w.ids["vision"]}
		rows, err := w.people.Users(t.Context(), w.grants("alice"), f, page.Page{First: 2})
		equal(t, names(rows, func(u people.User) string { return u.LoginName }), []string{"alice", "bob"}, err)
		last := rows.Items[1].Key()
		rows, err = w.people.Users(t.Context(), w.grants("alice"), f, page.Page{First: 2, After: &last})
		equal(t, names(rows, func(u people.User) string { return u.LoginName }), []string{"carol"}, err)
		rows, err = w.people.Users(t.Context(), w.grants("mallory"), f, all)
		equal(t, names(rows, func(u people.User) string { return u.LoginName }), []string{}, err)
	})
	t.Run("TEN-02_roles", func(t *testing.T) {
		ids := []uuid.UUID{w.ids["alice"], w.ids["admin"], w.ids["mallory"]}
		for name, want := range map[string]int{"alice": 1, "audra": 2, "bob": 0} {
			roles, err := w.access.RolesOf(t.Context(), w.grants(name), ids)
			if err != nil || len(roles) != want {
				t.Fatalf("%s: got %v, %v", name, roles, err)
			}
			if name != "bob" && roles[w.ids["alice"]][0] != (user.Grant{Role: access.Member, Project: w.ids["vision"]}) {
				t.Fatalf("got %v", roles)
			}
		}
	})
	t.Run("TEN-04_TEN-08_powers", func(t *testing.T) {
		carol := w.ids["carol"]
		for _, p := range []access.Permission{access.PublishModels, access.SubmitUrgentJobs} {
			if _, err := w.Users.GrantPermission(t.Context(), w.by("admin", "grantPermission"), carol, p); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Users.RevokePermission(t.Context(), w.by("admin", "revokePermission"), carol, access.PublishModels); err != nil {
			t.Fatal(err)
		}
		for _, to := range []access.BusinessScope{access.Inference, access.Training} {
			if _, err := w.Users.SetBusinessScope(t.Context(), w.by("admin", "setBusinessScope"), carol, to); err != nil {
				t.Fatal(err)
			}
		}
		w.settle()
		for name, want := range map[string]int{"carol": 1, "admin": 1, "audra": 1, "alice": 0, "mallory": 0} {
			got, err := w.access.PowersOf(t.Context(), w.grants(name), []uuid.UUID{carol, w.ids["bob"]})
			if err != nil || len(got) != want {
				t.Fatalf("%s: %v, %v", name, got, err)
			}
			if p := got[carol]; want == 1 && (p.Scope != access.Training || len(p.Permissions) != 1 || p.Permissions[0] != access.SubmitUrgentJobs) {
				t.Errorf("%s: %+v", name, p)
			}
		}
	})
	t.Run("TEN-11_a_project_is_renamed", func(t *testing.T) {
		if _, err := w.Projects.Update(t.Context(), w.by("admin", "updateProject"), w.ids["vision"], project.Update{Name: patch.To("sight")}); err != nil {
			t.Fatal(err)
		}
		w.settle()
		found, err := w.people.ProjectsByID(t.Context(), w.grants("alice"), []uuid.UUID{w.ids["vision"], w.ids["research"]})
		if err != nil || len(found) != 1 || found[w.ids["vision"]].Name != "sight" {
			t.Fatalf("got %v, %v", found, err)
		}
		if _, taken, _ := w.Projects.Find(t.Context(), w.tenant, "vision"); taken {
			t.Fatal("the old name is still taken")
		}
	})
	t.Run("AUD-07_who_could_see_it_on_that_day", func(t *testing.T) {
		member, before := w.ids["bob"], time.Now()
		if _, err := w.Users.Suspend(t.Context(), w.by("admin", "suspendUser"), member); err != nil {
			t.Fatal(err)
		}
		w.settle()
		for _, c := range []struct {
			at    time.Time
			reach int
			want  bool
		}{{before, projaccess.ReachGroup, true}, {time.Now(), projaccess.ReachGroup, false}, {before, projaccess.ReachOwner, false}, {before, projaccess.ReachGlobal, true}} {
			saw := w.saw(w.ids["vision"], w.ids["alice"], c.reach, c.at)
			if saw[member] != c.want || !saw[w.ids["alice"]] || !saw[w.ids["audra"]] || saw[w.ids["mallory"]] {
				t.Fatalf("%+v: got %v", c, saw)
			}
		}
	})
	t.Run("AUD-06_an_erased_person_stays_erased", func(t *testing.T) {
		if _, err := w.Users.ErasePersonalData(t.Context(), w.by("admin", "erasePersonalData"), w.ids["bob"]); err != nil {
			t.Fatal(err)
		}
		w.settle()
		found, err := w.people.UsersByID(t.Context(), w.grants("alice"), []uuid.UUID{w.ids["bob"]})
		u := found[w.ids["bob"]]
		if err != nil || !u.Erased || u.State != user.Erased || u.DisplayName != user.ErasedName || u.Email != "" {
			t.Fatalf("got %+v, %v", u, err)
		}
		var n int
		if err := w.reader.QueryRow(t.Context(), `SELECT count(*) FROM {g}.users u WHERE u::text ILIKE '%bob%'`).Scan(&n); err != nil || n != 0 {
			t.Fatalf("%d rows still name the person, %v", n, err)
		}
	})
	t.Run("TEN-07_who_is_not_active_sees_nothing", func(t *testing.T) {
		rows, err := w.people.Users(t.Context(), w.grants("bob"), people.UserFilter{}, all)
		equal(t, names(rows, func(u people.User) string { return u.LoginName }), []string{}, err)
	})
}

func (w *world) head() es.Position {
	w.t.Helper()
	for rec, err := range w.Runtime.Log.ReadAll(w.t.Context(), es.StartPosition, es.Backward, 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		return rec.Position
	}
	return es.StartPosition
}

func (w *world) saw(project, owner uuid.UUID, reach int, at time.Time) map[uuid.UUID]bool {
	w.t.Helper()
	rows, err := w.reader.Query(w.t.Context(), projaccess.SawAt("$1::uuid", "$2::uuid", "$3::uuid", "$4::int", "$5::timestamptz"),
		w.tenant, project, owner, reach, at)
	if err != nil {
		w.t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		w.t.Fatal(err)
	}
	saw := map[uuid.UUID]bool{}
	for _, id := range ids {
		saw[id] = true
	}
	return saw
}

func equal(t *testing.T, got, want []string, err error) {
	t.Helper()
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}
