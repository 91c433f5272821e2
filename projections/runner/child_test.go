package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/eventstore/storetest"
	"tallyard/infra/postgres"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/runner"
)

// childEnv makes the test binary project instead of running tests: a program
// to be killed. It holds the store's identity, its address, and that of Postgres.
const childEnv = "TALLYARD_TEST_PROJECTOR"

func runChild() int {
	err := func() error {
		ctx := context.Background()
		parts := strings.SplitN(os.Getenv(childEnv), "|", 3)
		log, err := eventstore.Open(ctx, eventstore.Config{Address: parts[1]})
		if err != nil {
			return err
		}
		db, err := postgres.Open(ctx, parts[2], postgres.Options{MaxConns: 6})
		if err != nil {
			return err
		}
		registry, err := es.NewRegistry(thingTypes, es.Types)
		if err != nil {
			return err
		}
		set, err := runner.NewSet(projections(&faults{})...)
		if err != nil {
			return err
		}
		r, err := runner.New(runner.Config{
			DB: db, Log: log, Registry: registry, Set: set, Store: uuid.MustParse(parts[0]), Logger: quiet(), Times: quickTimes,
			Lead: leadOn(db, quiet()),
		})
		if err != nil {
			return err
		}
		if err := r.Start(ctx); err != nil {
			return err
		}
		select {} // until it is killed
	}()
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

// TestKilledAtAnyMomentTheTablesAreThoseOfACleanRebuild kills the projector
// under load, also in the middle of a rebuild, which the next one finishes.
func TestKilledAtAnyMomentTheTablesAreThoseOfACleanRebuild(t *testing.T) {
	url := pgtest.URL(t)
	db, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	server := storetest.Serve(t, embedded.Config{})
	f := fixtureOn(t, db, storetest.Connect(t, eventstore.Config{Address: server.Address()}))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]uuid.UUID, 30)
	for i := range ids {
		ids[i] = uuid.New()
		f.append(ids[i], added{"a"})
	}
	kills, sent := 10, 0
	if testing.Short() {
		kills = 3
	}
	for n := range kills {
		var stderr bytes.Buffer
		child := exec.Command(exe)
		child.Env = append(os.Environ(), childEnv+"="+f.store.String()+"|"+server.Address()+"|"+url)
		child.Stderr = &stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if n%3 == 1 {
			// Asked for by somebody who does not wait: the request must be carried out all the same.
			_, err := db.Exec(t.Context(), `INSERT INTO tallyard.projection_requests (id, kind, argument, state, result, requested_at)
				VALUES ($1, 'rebuild', '{}', 'open', '', now())`, uuid.New())
			if err != nil {
				t.Fatal(err)
			}
		}
		end := time.Now().Add(200*time.Millisecond + rand.N(900*time.Millisecond))
		for time.Now().Before(end) {
			lot := make([]es.Event, 1+rand.N(20))
			for i := range lot {
				lot[i] = changed{1}
			}
			f.append(ids[rand.N(len(ids))], lot...)
			sent += len(lot)
		}
		_ = child.Process.Kill()
		_ = child.Wait() // it was killed: that is its error
		if stderr.Len() > 0 && os.Getenv("TALLYARD_TEST_LOG") == "" {
			t.Fatal(stderr.String())
		}
	}
	r := f.start()
	f.ready(r)
	f.caughtUp(r)
	eventually(t, 20*time.Second, func() error {
		s, err := r.Status(t.Context())
		if err != nil {
			return err
		}
		return expect(len(s.Requests) == 0, "%d requests are still open", len(s.Requests))
	})
	if n := one[int](t, r.reader, `SELECT sum(changes)::int FROM {g}.things`); n != sent {
		t.Fatalf("%d changes, want %d: each exactly once", n, sent)
	}
	report := f.equal(r)
	t.Logf("%d kills, %d events, equal at position %d", kills, sent, report.Position)
	var failed int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM tallyard.projection_requests WHERE state <> 'done'`).Scan(&failed); err != nil || failed != 0 {
		t.Fatalf("%d requests not done, %v", failed, err)
	}
}
