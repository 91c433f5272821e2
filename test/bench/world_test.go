package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/graph/relay"
	"tallyard/infra/eventstore"
	"tallyard/test/program"
)

// world is a running program with a history, shared by the measurements.
type world struct {
	path, data string
	p          *program.Program
	admin      *program.Client
	company    Company
	fay        string // login of somebody who sees few rows
	events     int
	appended   time.Duration // how long the history took to append
	projected  time.Duration // how long it took from the first append until it was projected
}

var shared struct {
	once sync.Once
	w    *world
	stop func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	os.Exit(code)
}

// size is how many algorithms the history has.
func size(b *testing.B) int {
	b.Helper()
	s := os.Getenv("BENCH_ALGORITHMS")
	if s == "" {
		return 100_000
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// filled gives the program with the history; the first to ask waits for it.
func filled(b *testing.B) *world {
	b.Helper()
	shared.once.Do(func() {
		w, remove := place(b)
		shared.stop = func() {
			if w.p != nil {
				_ = w.p.Stop() // its directory goes all the same
			}
			remove()
		}
		w.fill(b)
		shared.w = w
	})
	if shared.w == nil {
		b.Fatal("the history could not be made")
	}
	return shared.w
}

// place builds the program and gives it a place that is empty.
func place(b *testing.B) (w *world, remove func()) {
	b.Helper()
	dir, err := os.MkdirTemp("", "tallyard-b-")
	if err != nil {
		b.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // G302: Postgres, as another user, passes through
		b.Fatal(err)
	}
	bin := filepath.Join(dir, "tallyard")
	if p := os.Getenv("TALLYARD_PROGRAM"); p != "" {
		bin = p
	} else if out, err := program.Command(b.Context(), "go", "build", "-o", bin, "tallyard/cmd/tallyard"); err != nil {
		b.Fatal(out)
	}
	// What it leaves says nothing about what was measured.
	return &world{path: bin, data: filepath.Join(dir, "data")}, func() { _ = os.RemoveAll(dir) }
}

// bare is a place of this measurement alone.
func bare(b *testing.B) *world {
	b.Helper()
	w, remove := place(b)
	b.Cleanup(remove)
	return w
}

func (w *world) stop(b *testing.B) {
	b.Helper()
	if err := w.p.Stop(); err != nil {
		b.Fatal(err)
	}
}

// start starts the program and tells how long it took until it was ready.
func (w *world) start(b *testing.B) time.Duration {
	b.Helper()
	p, err := program.Start(w.path, "dev", "--addr", "127.0.0.1:0", "--data-dir", w.data)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := p.Await(ctx); err != nil {
		b.Fatal(err)
	}
	w.p, w.admin = p, p.Client("dev-admin")
	return time.Since(p.Started)
}

// people makes a company of n people and n projects.
func (w *world) people(b *testing.B, n int) {
	b.Helper()
	ask := func(what, mutation, of string, input map[string]any) uuid.UUID {
		var data map[string]map[string]any
		query := fmt.Sprintf("mutation($i: %s!) {%s(input: $i) {%s {id} userErrors {code message}}}", what, mutation, of)
		if err := w.admin.Do(b.Context(), query, map[string]any{"i": input}, &data); err != nil {
			b.Fatal(err)
		}
		made, _ := data[mutation][of].(map[string]any)
		if made == nil {
			b.Fatal(data)
		}
		id, _ := relay.Parse(made["id"].(string))
		return id.UUID
	}
	var me struct {
		Me struct{ Tenant struct{ ID string } }
	}
	if err := w.admin.Do(b.Context(), `{me {tenant {id}}}`, nil, &me); err != nil {
		b.Fatal(err)
	}
	tenant, _ := relay.Parse(me.Me.Tenant.ID)
	w.company.Tenant = tenant.UUID
	var users struct {
		Users struct {
			Nodes []struct{ ID, LoginName string }
		}
	}
	if err := w.admin.Do(b.Context(), `{users(first: 50) {nodes {id loginName}}}`, nil, &users); err != nil {
		b.Fatal(err)
	}
	var projects struct {
		Projects struct{ Nodes []struct{ ID string } }
	}
	if err := w.admin.Do(b.Context(), `{projects(first: 1) {nodes {id}}}`, nil, &projects); err != nil {
		b.Fatal(err)
	}
	vision, _ := relay.Parse(projects.Projects.Nodes[0].ID)
	w.company.Projects = append(w.company.Projects, vision.UUID)
	for i := range n {
		w.company.Projects = append(w.company.Projects, ask("CreateProjectInput", "createProject", "project",
			map[string]any{"name": fmt.Sprintf("project_%d", i)}))
		login := fmt.Sprintf("owner%d", i)
		user := ask("CreateUserInput", "createUser", "user", map[string]any{"loginName": login, "displayName": fmt.Sprintf("Owner %d", i)})
		w.company.Owners = append(w.company.Owners, user)
		ask("GrantRoleInput", "grantRole", "user", map[string]any{
			"userId": relay.Of(relay.User, user), "role": "MEMBER",
			"projectId": relay.Of(relay.Project, w.company.Projects[i+1]), "reason": "Works there.",
		})
	}
	for _, u := range users.Users.Nodes {
		if u.LoginName == "alice" || u.LoginName == "carol" {
			id, _ := relay.Parse(u.ID)
			// They own a good part, so that their own lists are long.
			w.company.Owners = append(w.company.Owners, slices.Repeat([]uuid.UUID{id.UUID}, n/2)...)
		}
	}
	w.fay = "fay"
	remote := ask("CreateProjectInput", "createProject", "project", map[string]any{"name": "remote"})
	fay := ask("CreateUserInput", "createUser", "user", map[string]any{"loginName": w.fay, "displayName": "Fay Example"})
	ask("GrantRoleInput", "grantRole", "user", map[string]any{
		"userId": relay.Of(relay.User, fay), "role": "MEMBER",
		"projectId": relay.Of(relay.Project, remote), "reason": "Works there.",
	})
}

// registry knows the events that the history is made of.
func registry(b *testing.B) *es.Registry {
	b.Helper()
	reg, err := es.NewRegistry(es.Types, algorithm.Types)
	if err != nil {
		b.Fatal(err)
	}
	return reg
}

// log reaches the program's event store as the program does.
func (w *world) log(b *testing.B) *eventstore.Log {
	b.Helper()
	log, err := eventstore.Open(b.Context(), eventstore.Config{Address: "unix:" + filepath.Join(w.data, "run", "events.sock")})
	if err != nil {
		b.Fatal(err)
	}
	return log
}

// fill starts the program and appends the history while it projects.
func (w *world) fill(b *testing.B) {
	b.Helper()
	w.start(b)
	w.people(b, 20)
	log := w.log(b)
	defer log.Close() //nolint:errcheck // only this measurement's connection
	started := time.Now()
	n, err := Seed(b.Context(), log, registry(b), w.company, size(b))
	if err != nil {
		b.Fatal(err)
	}
	w.events, w.appended = n, time.Since(started)
	w.caughtUp(b)
	w.projected = time.Since(started)
	b.Logf("%d algorithms, %d events: appended in %.1f s, projected %.1f s after the first", size(b), n, w.appended.Seconds(), w.projected.Seconds())
	// A table that grew under the planner's eyes would be planned for as empty.
	if _, err := w.pool(b, nil).Exec(b.Context(), "ANALYZE"); err != nil {
		b.Fatal(err)
	}
}

// caughtUp waits until everything is projected.
func (w *world) caughtUp(b *testing.B) {
	b.Helper()
	for {
		out, err := program.Command(b.Context(), w.path, "projections", "status", "--json", "--data-dir", w.data)
		if err != nil {
			b.Fatal(out)
		}
		var status struct {
			Projections []struct{ Lag struct{ Events int } }
		}
		if err := json.Unmarshal([]byte(out), &status); err != nil {
			b.Fatal(err)
		}
		if len(status.Projections) > 0 && !slices.ContainsFunc(status.Projections, func(p struct{ Lag struct{ Events int } }) bool { return p.Lag.Events > 0 }) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// pool reaches the program's database as its superuser, who may look into
// statements and plans.
func (w *world) pool(b *testing.B, configure func(*pgxpool.Config)) *pgxpool.Pool {
	b.Helper()
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/tallyard", RawQuery: url.Values{
		"host": {filepath.Join(w.data, "postgres", "socket")}, "port": {"5432"}, "sslmode": {"disable"},
	}.Encode()}
	cfg, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		b.Fatal(err)
	}
	if configure != nil {
		configure(cfg)
	}
	pool, err := pgxpool.NewWithConfig(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return pool
}
