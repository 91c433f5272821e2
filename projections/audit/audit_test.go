package audit_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/audit"
	"tallyard/projections/internal/projtest"
	"tallyard/projections/page"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	acme  = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	alice = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
)

type world struct {
	t       *testing.T
	runtime *es.Runtime
	queries audit.Queries
}

func newWorld(t *testing.T) *world {
	t.Helper()
	rt, reader := projtest.Open(t, audit.Projection, algorithm.Types)
	return &world{t: t, runtime: rt, queries: audit.Queries{Reader: reader}}
}

// do carries out a command of alice on an algorithm: its events, then refused.
func (w *world) do(action string, id uuid.UUID, refused error, events ...es.Event) {
	w.t.Helper()
	cmd := es.Command{ID: uuid.New(), Action: action, Tenant: acme, Actor: es.Actor{Kind: es.ActorUser, User: alice}, Subject: es.Ref{Kind: algorithm.Category, ID: id}}
	_, err := es.Run(w.t.Context(), w.runtime, cmd, func(ctx context.Context, cmd es.Command) (struct{}, error) {
		_, err := es.Execute(ctx, w.runtime, cmd, algorithm.Aggregate, id, func(algorithm.State) ([]es.Event, error) { return events, nil })
		if err == nil {
			err = refused
		}
		return struct{}{}, err
	})
	if _, isFault := fault.All(err); err != nil && !isFault {
		w.t.Fatal(err)
	}
}

// list gives the entries that a filter lets through, by action.
func (w *world) list(f audit.Filter) map[string]audit.Entry {
	w.t.Helper()
	for rec, err := range w.runtime.Log.ReadAll(w.t.Context(), es.StartPosition, es.Backward, 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
		defer cancel()
		if err := w.queries.Reader.Await(ctx, rec.Position, audit.Projection.Name); err != nil {
			w.t.Fatal(err)
		}
	}
	f.Tenant = acme
	rows, err := w.queries.List(w.t.Context(), f, audit.Newest(true), page.Page{First: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[string]audit.Entry{}
	for _, e := range rows.Items {
		found[e.Action] = e
	}
	return found
}

func TestEntries(t *testing.T) {
	w := newWorld(t)
	id, version, draft := uuid.New(), uuid.New(), uuid.New()
	secret := algorithm.Settings{Description: "of the first one"}
	w.do("createAlgorithm", id, nil,
		algorithm.AlgorithmCreated{Name: "shared", Owner: alice},
		algorithm.VersionAdded{OfVersion: algorithm.OfVersion{Version: version}, Label: "v1", Settings: secret})
	w.do("publishAlgorithmVersion", id, nil,
		algorithm.VersionPublished{OfVersion: algorithm.OfVersion{Version: version}, Visibility: access.Global})
	w.do("createAlgorithmVersion", id, nil,
		algorithm.VersionAdded{OfVersion: algorithm.OfVersion{Version: draft}, Label: "draft", Settings: algorithm.Settings{Description: "unpublished"}})
	w.do("favoriteAlgorithm", id, nil, algorithm.FavoriteAdded{Algorithm: id})
	w.do("halfWay", id, fault.New(fault.State, fault.CodeInvalidState, "No further."),
		algorithm.VersionEdited{OfVersion: algorithm.OfVersion{Version: draft}})

	t.Run("AUD-01_a_command_refused_after_its_first_event_ends_as_refused", func(t *testing.T) {
		e := w.list(audit.Filter{})["halfWay"]
		if e.Outcome != audit.Refused || len(e.Faults) != 1 || e.Faults[0].Code != fault.CodeInvalidState {
			t.Errorf("it ended as %s with %+v", e.Outcome, e.Faults)
		}
		if !slices.Equal(e.Events, []string{"algorithm.version_edited.v1", "refusals.command_refused.v1"}) {
			t.Errorf("its events are %v", e.Events)
		}
		if e := w.list(audit.Filter{})["createAlgorithm"]; e.Outcome != audit.Done || len(e.Faults) != 0 {
			t.Errorf("one of several events ended as %s with %v", e.Outcome, e.Faults)
		}
	})
	t.Run("AUD-02_who_sees_an_algorithm_reads_nothing_of_the_versions_they_do_not_see", func(t *testing.T) {
		if got := w.list(audit.Filter{Subject: id}); len(got) != 5 {
			t.Errorf("its owner reads %d entries, want 5", len(got))
		}
		got := w.list(audit.Filter{Subject: id, Cut: audit.Cut{Outside: true}})
		if len(got) != 2 || got["createAlgorithm"].Action == "" || got["favoriteAlgorithm"].Action == "" {
			t.Errorf("others read %v", got)
		}
		if !got["createAlgorithm"].Mixed() || got["favoriteAlgorithm"].Mixed() {
			t.Error("what was made together with its first version tells of that, too")
		}
		if got := w.list(audit.Filter{Subject: id, Cut: audit.Cut{Outside: true}, Search: "of the first one"}); len(got) != 0 {
			t.Errorf("a search finds what is not shown: %v", got)
		}
		if got := w.list(audit.Filter{Subject: id, Search: "of the first one"}); len(got) != 1 {
			t.Errorf("its owner finds %v", got)
		}
	})
}
