package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/projections/audit"
	"tallyard/projections/page"
)

func TestCommandsThatComeAgain(t *testing.T) {
	w := newWorld(t)
	id := uuid.New()
	cmd := func(action string) es.Command {
		return es.Command{
			ID: uuid.New(), Action: action, Tenant: acme, Actor: es.Actor{Kind: es.ActorUser, User: alice}, Key: "key",
			Digest: []byte("in"), Subject: es.Ref{Kind: algorithm.Category, ID: id}, Reason: "because",
		}
	}
	create := func(ctx context.Context, c es.Command) error {
		_, err := es.Execute(ctx, w.runtime, c, algorithm.Aggregate, id, func(algorithm.State) ([]es.Event, error) {
			return []es.Event{algorithm.AlgorithmCreated{Name: "n", Owner: alice}, algorithm.AlgorithmDeleted{Name: "n"}}, nil
		})
		return err
	}
	for _, first := range []error{fault.New(fault.Conflict, fault.CodeConflict, "Busy."), nil} {
		_, err := es.Run(t.Context(), w.runtime, cmd("again"), func(ctx context.Context, c es.Command) (struct{}, error) {
			if first != nil {
				return struct{}{}, first
			}
			return struct{}{}, create(ctx, c)
		})
		if !errors.Is(err, first) {
			t.Fatal(err)
		}
	}
	for range 12 {
		c := cmd("flood")
		c.Key = ""
		if _, err := es.Run(t.Context(), w.runtime, c, func(context.Context, es.Command) (struct{}, error) {
			return struct{}{}, fault.New(fault.State, fault.CodeInUse, "In use.")
		}); err == nil {
			t.Fatal("not refused")
		}
	}
	w.runtime.Refusals.Summarise(t.Context(), w.runtime, w.runtime.Now().Add(time.Minute))
	got := w.list(audit.Filter{})

	t.Run("AUD-01_a_conflict_that_came_to_an_end_is_one_entry_that_ends_as_done", func(t *testing.T) {
		e := got["again"]
		if e.Outcome != audit.Done || len(e.Faults) != 1 || e.Faults[0].Code != fault.CodeConflict || e.Reason != "because" || len(e.Events) != 3 {
			t.Errorf("%+v", e)
		}
		if len(e.Changes) != 4 || e.Changes[0].Field != "name" {
			t.Errorf("changes %s", es.ValueOf(e.Changes))
		}
	})
	t.Run("AUD-01_keys_names_and_checkpoints_make_no_entries", func(t *testing.T) {
		for action := range got {
			if !slices.Contains([]string{"again", "flood", "summariseRefusals"}, action) {
				t.Errorf("entry %s", action)
			}
		}
	})
	t.Run("AUD-01_a_flood_is_ten_entries_and_a_summary", func(t *testing.T) {
		n, err := w.queries.Count(t.Context(), audit.Filter{Tenant: acme, Actions: []string{"flood"}, Outcomes: []audit.Outcome{audit.Refused}})
		if n != 10 || err != nil {
			t.Errorf("%d entries, %v", n, err)
		}
		e := got["summariseRefusals"]
		if e.Outcome != audit.Summary || e.Actor.User != alice || e.Faults[0].Code != fault.CodeInUse || string(e.Changes[0].To) != "2" ||
			!strings.Contains(string(e.Changes[2].To), `"action": "flood"`) || !strings.Contains(string(e.Changes[2].To), id.String()) {
			t.Errorf("%+v", e)
		}
	})
}

func TestAuditList(t *testing.T) {
	w := newWorld(t)
	ids := make([]uuid.UUID, 10)
	for i := range ids {
		ids[i] = uuid.New()
		w.do(fmt.Sprintf("do_%d", i), ids[i], nil, algorithm.AlgorithmCreated{Name: fmt.Sprintf("排序_%d%%\\\"x", i), Owner: alice, Project: ids[i]})
	}
	w.list(audit.Filter{})
	count := func(f audit.Filter) int {
		t.Helper()
		return len(w.list(f))
	}
	for name, c := range map[string]struct {
		f audit.Filter
		n int
	}{
		"AUD-02_subject":                 {audit.Filter{Subject: ids[3]}, 1},
		"AUD-02_actor":                   {audit.Filter{Actor: alice}, 10},
		"AUD-02_another_actor":           {audit.Filter{Actor: ids[0]}, 0},
		"AUD-02_action":                  {audit.Filter{Actions: []string{"do_1", "do_2"}}, 2},
		"AUD-02_outcome":                 {audit.Filter{Outcomes: []audit.Outcome{audit.Refused}}, 0},
		"AUD-02_until":                   {audit.Filter{To: time.Now().Add(-time.Hour)}, 0},
		"AUD-02_from":                    {audit.Filter{From: time.Now().Add(-time.Hour)}, 10},
		"AUD-02_persons":                 {audit.Filter{Persons: true}, 10},
		"AUD-02_search_in_chinese":       {audit.Filter{Search: "排序"}, 10},
		"AUD-02_search_any_case":         {audit.Filter{Search: "DO_7"}, 1},
		"AUD-02_a_percent_sign_is_one":   {audit.Filter{Search: "3%"}, 1},
		"AUD-02_an_underscore_is_one":    {audit.Filter{Search: "do0"}, 0},
		"AUD-02_a_statement_is_a_string": {audit.Filter{Search: "'; DROP TABLE audit_entries; --"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := count(c.f); got != c.n {
				t.Errorf("gives %d, want %d", got, c.n)
			}
		})
	}
	t.Run("TEN-01_another_tenant_reads_nothing", func(t *testing.T) {
		rows, err := w.queries.List(t.Context(), audit.Filter{Tenant: uuid.New()}, audit.Newest(true), page.Page{First: 100})
		if err != nil || len(rows.Items) != 0 {
			t.Errorf("%d, %v", len(rows.Items), err)
		}
	})
	t.Run("AUD-02_pages_do_not_shift_while_entries_come", func(t *testing.T) {
		var walked []string
		var key *page.Key
		for n := 0; ; n++ {
			rows, err := w.queries.List(t.Context(), audit.Filter{Tenant: acme, Outcomes: []audit.Outcome{audit.Done}}, audit.Newest(true), page.Page{First: 3, After: key})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range rows.Items {
				walked = append(walked, e.Action)
			}
			if !rows.HasNext {
				break
			}
			k := rows.Items[len(rows.Items)-1].Key()
			key = &k
			w.do("late", uuid.New(), nil, algorithm.AlgorithmCreated{Name: "late"})
			w.list(audit.Filter{})
		}
		want := make([]string, 10)
		for i := range want {
			want[i] = fmt.Sprintf("do_%d", 9-i)
		}
		if !slices.Equal(walked, want) {
			t.Errorf("walked %v", walked)
		}
	})
	t.Run("AUD-01_values_of_environment_variables_are_not_found", func(t *testing.T) {
		w.do("edit", uuid.New(), nil, algorithm.VersionAdded{Label: "findable", Settings: algorithm.Settings{
			Environment: []algorithm.Pair{{Name: "TOKEN", Value: "hush-hush"}},
		}})
		for search, want := range map[string]int{"hush": 0, "TOKEN": 0, "findable": 1, "environment": 1} {
			if got := count(audit.Filter{Search: search}); got != want {
				t.Errorf("%s gives %d, want %d", search, got, want)
			}
		}
	})
}
