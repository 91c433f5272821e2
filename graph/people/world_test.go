package people_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/flows/devseed"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/history"
	"tallyard/graph/loader"
	"tallyard/graph/people"
	"tallyard/graph/relay"
	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/keys"
	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
	projaccess "tallyard/projections/access"
	"tallyard/projections/page"
	proj "tallyard/projections/people"
	"tallyard/projections/runner"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a seeded installation: acme with people and the project vision,
// globex with mallory.
type world struct {
	*people.API
	devseed.Handlers
	t       *testing.T
	reader  *runner.Reader
	queries loader.Queries
	tenants map[string]uuid.UUID
	ids     map[string]uuid.UUID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, log := pgtest.New(t), storetest.Open(t)
	registry, err := es.NewRegistry(es.Types, tenant.Types, project.Types, user.Types)
	no(t, err)
	master, err := keys.LoadOrCreate(t.TempDir() + "/master.key")
	no(t, err)
	persons, err := keys.NewPersons(master, postgres.NewPersonKeys(db), es.SystemClock{})
	no(t, err)
	rt := &es.Runtime{
		Log: log, Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{},
		NameKey: master.Derive(keys.Names), Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	users := &user.Handler{Runtime: rt, Keys: persons, Random: rand.Reader}
	projects := &project.Handler{Runtime: rt, Access: users}
	users.Projects = projects
	w := &world{
		Handlers: devseed.Handlers{Runtime: rt, Tenants: &tenant.Handler{Runtime: rt, Access: users}, Projects: projects, Users: users},
		t:        t, tenants: map[string]uuid.UUID{}, ids: map[string]uuid.UUID{},
	}
	no(t, w.Run(t.Context()))
	set, err := runner.NewSet(proj.Projection(persons), projaccess.Projection)
	no(t, err)
	store, err := es.Identity(t.Context(), rt)
	no(t, err)
	w.reader = runner.NewReader(db, log, set)
	run, err := runner.New(runner.Config{
		DB: db, Log: log, Registry: registry, Set: set, Store: store, Reader: w.reader, Logger: rt.Logger,
		Lead: func(ctx context.Context, work func(context.Context) error) error { return work(ctx) },
	})
	no(t, err)
	no(t, run.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		no(t, run.Stop(ctx))
	})
	sealer, err := relay.NewSealer(make([]byte, 32))
	no(t, err)
	w.queries = loader.Queries{People: proj.Queries{Reader: w.reader}, Access: projaccess.Queries{Reader: w.reader}}
	w.API = &people.API{
		Runtime: rt, Users: users, Projects: projects, Queries: w.queries.People, Commands: &command.Gateway{}, Sealer: sealer,
		History: &history.Reader{Runtime: rt, Sealer: sealer, Index: w.reader},
	}
	w.find()
	w.settle()
	return w
}

func no(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// find looks the seeded things up by name.
func (w *world) find() {
	for _, name := range devseed.Tenants {
		id, _, err := w.Handlers.Tenants.Find(w.t.Context(), name)
		no(w.t, err)
		w.tenants[name] = id
		for _, login := range []string{"admin", "carol", "alice", "bob", "audra", "oscar", "mallory"} {
			u, ok, err := w.Handlers.Users.Find(w.t.Context(), id, login)
			no(w.t, err)
			if ok {
				w.ids[login] = u
			}
		}
	}
	var err error
	w.ids["vision"], _, err = w.Handlers.Projects.Find(w.t.Context(), w.tenants["acme"], "vision")
	no(w.t, err)
}

// settle waits until the read models have the whole log, and gives its end.
func (w *world) settle() es.Position {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	no(w.t, w.reader.WaitReady(ctx))
	for rec, err := range w.Handlers.Runtime.Log.ReadAll(ctx, es.StartPosition, es.Backward, 1) {
		no(w.t, err)
		no(w.t, w.reader.Await(ctx, rec.Position, "people", "access"))
		return rec.Position
	}
	return es.StartPosition
}

// tenant is the tenant of somebody.
func (w *world) tenant(login string) uuid.UUID {
	if login == "mallory" {
		return w.tenants["globex"]
	}
	return w.tenants["acme"]
}

// page2 is a page of two rows.
var page2 = page.Page{First: 2}

// grants are somebody's rights.
func (w *world) grants(login string) access.Grants {
	w.t.Helper()
	g, err := w.Handlers.Users.Grants(w.t.Context(), w.tenant(login), w.ids[login])
	no(w.t, err)
	return g
}

// as is the context of a request of somebody, with loaders of its own.
func (w *world) as(login string) context.Context {
	w.t.Helper()
	v := authn.Viewer{Session: user.Session{Tenant: w.tenant(login), Actor: es.Actor{Kind: es.ActorUser, User: w.ids[login]}, Grants: w.grants(login)}}
	return w.queries.With(authn.With(w.t.Context(), v))
}

// by is a command of somebody.
func (w *world) by(login, action, reason string) es.Command {
	return es.Command{
		ID: uuid.New(), Action: action, Tenant: w.tenant(login), Reason: reason, Request: uuid.NewString(),
		Actor: es.Actor{Kind: es.ActorUser, User: w.ids[login]},
	}
}

// at is a moment as a client names it, by a position sealed for somebody.
func (w *world) at(login string, p es.Position) people.When {
	sealed := w.Sealer.Position(w.tenant(login), p)
	return people.When{AsOfPosition: &sealed}
}

// history reads a whole history, a page of one entry at a time.
func (w *world) history(ctx context.Context, of func(context.Context, *int32, *string) (*gqlmodel.HistoryConnection, error)) []*gqlmodel.HistoryEntry {
	w.t.Helper()
	one, many := int32(1), int32(100)
	var after *string
	var list []*gqlmodel.HistoryEntry
	for {
		c, err := of(ctx, &one, after)
		no(w.t, err)
		list = append(list, c.Nodes...)
		if after = c.PageInfo.EndCursor; !c.PageInfo.HasNextPage {
			break
		}
	}
	all, err := of(ctx, &many, nil)
	no(w.t, err)
	if len(all.Nodes) != len(list) {
		w.t.Fatalf("%d entries page by page, %d at once", len(list), len(all.Nodes))
	}
	for i, n := range all.Nodes {
		if n.Position != list[i].Position || n.Event != list[i].Event {
			w.t.Fatalf("entry %d is %s page by page, %s at once", i, list[i].Event, n.Event)
		}
	}
	return list
}

func events(list []*gqlmodel.HistoryEntry) []string {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = n.Event
	}
	return names
}

// said is everything that an entry tells, as text.
func said(n *gqlmodel.HistoryEntry) string {
	text := n.Event + " " + n.Action
	if n.Reason != nil {
		text += " " + *n.Reason
	}
	for _, c := range n.Changes {
		text += " " + c.Field + ":" + string(c.From) + ">" + string(c.To)
	}
	return text
}
