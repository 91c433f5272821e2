package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/runner"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(runChild())
	}
	pgtest.Main(m)
}

// The events of a feature that only tests have.
type (
	added struct {
		Name string `json:"name"`
	}
	changed struct {
		By int `json:"by"`
	}
	removed struct{}
	noted   struct {
		Text string `json:"text"`
	}
)

func (added) Changes() []es.Change   { return nil }
func (changed) Changes() []es.Change { return nil }
func (removed) Changes() []es.Change { return nil }
func (noted) Changes() []es.Change   { return nil }

var thingTypes = []es.TypeDef{
	es.Type[added]("thing.added.v1"),
	es.Type[changed]("thing.changed.v1"),
	es.Type[removed]("thing.removed.v1"),
}

// newerTypes are what only a newer program knows.
var newerTypes = []es.TypeDef{es.Type[noted]("thing.noted.v1")}

// faults decide which events can't be projected. The zero value lets all through.
type faults struct {
	mu   sync.Mutex
	fail func(projection string, env es.Envelope) error
}

func (f *faults) set(fail func(string, es.Envelope) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func (f *faults) check(projection string, env es.Envelope) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail == nil {
		return nil
	}
	return f.fail(projection, env)
}

// projections are a table with a row per thing and one with a row per event.
func projections(f *faults) []runner.Projection {
	id := func(env es.Envelope) uuid.UUID { return env.Root().ID }
	return []runner.Projection{
		{
			Name: "things", Version: 1,
			Schema:     `CREATE TABLE things (id uuid PRIMARY KEY, name text NOT NULL, total int NOT NULL CHECK (total < 1000000), changes int NOT NULL)`,
			Categories: []string{"thing"},
			On: map[string]runner.Handler{
				"thing.added.v1": func(w *runner.Writer, env es.Envelope) error {
					w.Insert("things", "id, name, total, changes", id(env), env.Event.(added).Name, 0, 0)
					return f.check("things", env)
				},
				"thing.changed.v1": func(w *runner.Writer, env es.Envelope) error {
					w.Exec(`UPDATE {g}.things SET total = total + $2, changes = changes + 1 WHERE id = $1`, id(env), env.Event.(changed).By)
					return f.check("things", env)
				},
				"thing.removed.v1": func(w *runner.Writer, env es.Envelope) error {
					w.Exec(`DELETE FROM {g}.things WHERE id = $1`, id(env))
					return f.check("things", env)
				},
			},
		},
		{
			Name: "entries", Version: 1,
			Schema: `CREATE TABLE entries (event uuid PRIMARY KEY, stream text NOT NULL, revision bigint NOT NULL, name text NOT NULL, at timestamptz NOT NULL);
				CREATE TABLE entry_fields (event uuid NOT NULL, field text NOT NULL)`,
			Categories: []string{"thing", "other"},
			Every: func(w *runner.Writer, env es.Envelope) error {
				w.Insert("entries", "event, stream, revision, name, at", env.ID, env.Stream.String(), int64(env.Revision), env.Name, env.Meta.Time)
				w.Insert("entry_fields", "event, field", env.ID, "a")
				w.Insert("entry_fields", "event, field", env.ID, env.ID) // an id as text
				return f.check("entries", env)
			},
		},
	}
}

// fixture is an installation: a log, a database, projections.
type fixture struct {
	t        testing.TB
	db       *pgxpool.Pool
	log      es.Log
	registry *es.Registry
	set      *runner.Set
	faults   *faults
	store    uuid.UUID
	logger   *slog.Logger
	times    runner.Times
	clock    time.Time
	known    map[uuid.UUID]es.Revision
	head     es.Position
}

func quiet() *slog.Logger {
	if os.Getenv("TALLYARD_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.DiscardHandler)
}

var quickTimes = runner.Times{
	Retry: 5 * time.Millisecond, RetryMost: 100 * time.Millisecond, Keep: time.Second, Look: 50 * time.Millisecond,
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return fixtureOn(t, pgtest.New(t), storetest.Open(t))
}

func fixtureOn(t testing.TB, db *pgxpool.Pool, log es.Log) *fixture {
	t.Helper()
	f := &fixture{
		t: t, db: db, log: log, faults: &faults{}, store: uuid.New(), logger: quiet(), times: quickTimes,
		clock: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), known: map[uuid.UUID]es.Revision{},
	}
	f.registry = registry(t, thingTypes)
	f.use(projections(f.faults)...)
	return f
}

func registry(t testing.TB, lists ...[]es.TypeDef) *es.Registry {
	t.Helper()
	r, err := es.NewRegistry(append(lists, es.Types)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// use changes the projections.
func (f *fixture) use(list ...runner.Projection) {
	f.t.Helper()
	set, err := runner.NewSet(list...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.set = set
}

func (f *fixture) config() runner.Config {
	return runner.Config{
		DB: f.db, Log: f.log, Registry: f.registry, Set: f.set, Store: f.store, Logger: f.logger, Times: f.times,
		Lead: leadOn(f.db, f.logger),
	}
}

func leadOn(db *pgxpool.Pool, logger *slog.Logger) func(context.Context, func(context.Context) error) error {
	leader := &postgres.Leader{Pool: db, Logger: logger, Retry: 50 * time.Millisecond, Check: 50 * time.Millisecond, Deadline: 2 * time.Second}
	return func(ctx context.Context, work func(context.Context) error) error {
		return leader.Lead(ctx, "projector", work)
	}
}

// running is a started runner with its reader.
type running struct {
	*runner.Runner
	reader *runner.Reader
	stop   func()
}

// start runs the projections until the test ends or stop is called.
func (f *fixture) start() *running {
	f.t.Helper()
	cfg := f.config()
	cfg.Reader = f.reader()
	r, err := runner.New(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := r.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	var once sync.Once
	stop := func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := r.Stop(ctx); err != nil {
				f.t.Error(err)
			}
		})
	}
	f.t.Cleanup(stop)
	return &running{r, cfg.Reader, stop}
}

func (f *fixture) reader() *runner.Reader { return runner.NewReader(f.db, f.log, f.set) }

// ready waits for the first catch-up.
func (f *fixture) ready(r *running) {
	f.t.Helper()
	select {
	case <-r.Ready():
	case <-time.After(30 * time.Second):
		f.t.Fatal("not ready in time")
	}
}

// caughtUp waits until every projection has the last appended event.
func (f *fixture) caughtUp(r *running, projections ...string) {
	f.t.Helper()
	if len(projections) == 0 {
		projections = f.set.Names()
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), 30*time.Second)
	defer cancel()
	if err := r.reader.Await(ctx, f.head, projections...); err != nil {
		f.t.Fatalf("waiting for %d: %v; progress %v", f.head, err, r.reader.Progress())
	}
}

// append writes events to a thing's stream, a millisecond apart in recorded time.
func (f *fixture) append(id uuid.UUID, events ...es.Event) es.Position {
	f.t.Helper()
	last, ok := f.known[id]
	if !ok {
		last = es.NoRevision
	}
	raws := make([]es.Raw, len(events))
	for i, e := range events {
		f.clock = f.clock.Add(time.Millisecond)
		raws[i] = encode(f.t, f.registry, e, f.clock)
	}
	w, err := f.log.Append(f.t.Context(), stream(id), es.At(last), raws...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.known[id] = w.Revision
	f.head = max(f.head, w.Position)
	return w.Position
}

func stream(id uuid.UUID) string { return es.StreamOf("thing", es.PlatformTenant, id).String() }

func encode(t testing.TB, r *es.Registry, e es.Event, at time.Time) es.Raw {
	t.Helper()
	raw, err := r.Encode(e, es.Metadata{Actor: es.Actor{Kind: es.ActorSystem, Part: "test"}, Command: uuid.New(), Action: "test", Time: at})
	if err != nil {
		t.Fatal(err)
	}
	raw.ID = uuid.New()
	return raw
}

// foreign writes an event that nobody has registered.
func (f *fixture) foreign(id uuid.UUID, name string) es.Position {
	f.t.Helper()
	meta, _ := json.Marshal(es.Metadata{Time: f.clock})
	last, ok := f.known[id]
	if !ok {
		last = es.NoRevision
	}
	w, err := f.log.Append(f.t.Context(), stream(id), es.At(last), es.Raw{ID: uuid.New(), Type: name, Data: []byte(`{"text":"x"}`), Metadata: meta})
	if err != nil {
		f.t.Fatal(err)
	}
	f.known[id] = w.Revision
	f.head = max(f.head, w.Position)
	return w.Position
}

// one reads one value from the live tables.
func one[V any](t testing.TB, r *runner.Reader, sql string, args ...any) V {
	t.Helper()
	var v V
	if err := r.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// equal verifies the live tables against a rebuild.
func (f *fixture) equal(r *running) runner.VerifyReport {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	report, err := r.Verify(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	if !report.Equal {
		f.t.Fatalf("the live tables are not what a rebuild makes:\n%s", report.Text())
	}
	return report
}

// eventually repeats check until it gives no error.
func eventually(t testing.TB, limit time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func expect(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

var errRefused = errors.New("this event can't be projected")
