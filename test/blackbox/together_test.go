package blackbox_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// together sends the same moment's requests and gives the payloads of one
// mutation in their order.
func together(t *testing.T, mutation string, n int, request func(i int) (client, vars)) []value {
	t.Helper()
	out, errs := make([]value, n), make([]error, n)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		c, input := request(i)
		body, err := json.Marshal(vars{"query": document(mutation), "variables": vars{"input": input}})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			<-begin
			var r reply
			if r, errs[i] = c.try(body); errs[i] == nil && len(r.errors) > 0 {
				errs[i] = fmt.Errorf("%s", r.body)
			}
			out[i] = r.at(mutation)
		})
	}
	close(begin)
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	return out
}

// tally counts answers by the codes of their refusals; "" are those done.
func tally(payloads []value) map[string]int {
	counts := map[string]int{}
	for _, p := range payloads {
		counts[strings.Join(p.strs("userErrors", "code"), " ")]++
	}
	return counts
}

// events lists the stored names of what happened to an algorithm.
func (c client) events(algorithm string) []string {
	c.t.Helper()
	return c.ask(`query($id: ID!) { algorithm(id: $id) { history(first: 100) { nodes { event } } } }`, vars{"id": algorithm}).strs("algorithm.history.nodes", "event")
}

func count(list []string, name string) (n int) {
	for _, s := range list {
		if s == name {
			n++
		}
	}
	return n
}

func TestTogether(t *testing.T) {
	w := newWorld(t)
	t.Run("GEN-04_32_clients_publish_the_same_version", func(t *testing.T) {
		algorithm, version := w.create(w.input(unique("race")))
		got := together(t, "publishAlgorithmVersion", 32, func(i int) (client, vars) {
			return []client{w.owner, w.admin}[i%2], vars{"id": version, "visibility": []string{"GROUP", "GLOBAL"}[i%2]}
		})
		counts := tally(got)
		t.Logf("32 publications: %v", counts)
		if counts[""] != 1 || counts["INVALID_STATE"] != 31 {
			t.Errorf("%v", counts)
		}
		for _, p := range got {
			if e := p.at("userErrors.0"); e.v != nil && (e.str("message") == "" || e.str("details.0.name") != "state") {
				t.Errorf("the conflict is not clear: %s", e)
			}
		}
		w.owner.reaches(version, "PUBLISHED")
		events := w.owner.events(algorithm)
		for _, want := range []string{"algorithm.publication_started.v1", "algorithm.published.v1"} {
			if count(events, want) != 1 {
				t.Errorf("%d of %s in %v", count(events, want), want, events)
			}
		}
	})
	t.Run("GEN-04_32_clients_expect_the_same_version_of_it", func(t *testing.T) {
		_, version := w.create(w.command(unique("race")))
		got := together(t, "updateAlgorithmVersion", 32, func(i int) (client, vars) {
			return w.owner, vars{"id": version, "description": fmt.Sprint("by ", i), "expectedVersion": 1}
		})
		counts := tally(got)
		t.Logf("32 edits of version 1: %v", counts)
		if counts[""] != 1 || counts["VERSION_CONFLICT"] != 31 {
			t.Errorf("%v", counts)
		}
	})
	t.Run("GEN-04_E22_32_edits_without_an_expected_version", func(t *testing.T) {
		algorithm, version := w.create(w.command(unique("race")))
		before := len(w.owner.events(algorithm))
		got := together(t, "updateAlgorithmVersion", 32, func(i int) (client, vars) {
			return w.owner, vars{"id": version, "description": fmt.Sprint("by ", i)}
		})
		if counts := tally(got); counts[""] != 32 {
			t.Errorf("%v", counts)
		}
		if after := len(w.owner.events(algorithm)); after != before+32 {
			t.Errorf("%d events, then %d", before, after)
		}
	})
	t.Run("W24_two_clients_make_the_next_version", func(t *testing.T) {
		algorithm, _ := w.create(w.command(unique("race")))
		for round := range 10 {
			label := fmt.Sprintf("r%d", round)
			got := together(t, "createAlgorithmVersion", 2, func(int) (client, vars) {
				return w.owner, vars{"algorithmId": algorithm, "label": label, "image": vars{"reference": "x"}, "source": vars{"command": "x"}}
			})
			if counts := tally(got); counts[""] != 1 || counts["VERSION_TAKEN"] != 1 {
				t.Errorf("round %d: %v", round, counts)
			}
		}
		labels := w.owner.ask(`query($id: ID!) { algorithm(id: $id) { versions(first: 100) { nodes { label } } } }`, vars{"id": algorithm}).strs("algorithm.versions.nodes", "label")
		if len(labels) != 11 {
			t.Errorf("%v", labels)
		}
	})
	t.Run("GEN-01_twins_of_one_name_at_once", func(t *testing.T) {
		name := unique("Zo")
		twins := []string{name + "\u00eb", name + "e\u0308"}
		counts := tally(together(t, "createAlgorithm", 16, func(i int) (client, vars) {
			return []client{w.owner, w.peer}[i/8], with(w.command(twins[i%2]), nil)
		}))
		if counts[""] != 1 || counts["NAME_TAKEN"] != 15 {
			t.Errorf("%v", counts)
		}
	})
}

// sameAnswers proves that payloads say the same, but for receipt.replayed.
func sameAnswers(t *testing.T, payloads []value) (first int) {
	t.Helper()
	var shown []string
	for _, p := range payloads {
		if p.str("receipt.replayed") == "false" {
			first++
		}
		s := p.String()
		for _, volatile := range []string{"replayed", "pending"} {
			s = strings.NewReplacer(`"`+volatile+`":true`, "", `"`+volatile+`":false`, "").Replace(s)
		}
		shown = append(shown, s)
	}
	slices.Sort(shown)
	if different := slices.Compact(shown); len(different) != 1 {
		t.Errorf("different answers: %v", different)
	}
	return first
}

func TestIdempotency(t *testing.T) {
	p := own(t)
	w := worldOf(t, p)
	name, key := unique("once"), unique("key")
	input := with(w.command(name), vars{"idempotencyKey": key})
	var before value
	t.Run("GEN-03_G13_one_key_50_times_at_once", func(t *testing.T) {
		got := together(t, "createAlgorithm", 50, func(int) (client, vars) { return w.owner, input })
		counts, first := tally(got), sameAnswers(t, got)
		algorithms := w.owner.ask(`query($p: ID!) { algorithms(filter: {projectId: $p}) { totalCount } }`, vars{"p": w.project}).str("algorithms.totalCount")
		events := w.owner.events(got[0].str("algorithm.id"))
		t.Logf("50 requests with one key: outcomes %v, done now %d, algorithms %s, events %v", counts, first, algorithms, events)
		if counts[""] != 50 || first != 1 || algorithms != "1" {
			t.Errorf("outcomes %v, done now %d, algorithms %s", counts, first, algorithms)
		}
		before = got[0]
	})
	t.Run("GEN-03_another_input_is_a_conflict", func(t *testing.T) {
		w.owner.refuse("createAlgorithm", with(input, vars{"name": unique("other")}), "IDEMPOTENCY_CONFLICT")
	})
	t.Run("GEN-03_the_actor_is_part_of_the_scope", func(t *testing.T) {
		got := w.peer.do("createAlgorithm", with(w.command(unique("other")), vars{"idempotencyKey": key}))
		if got.str("receipt.replayed") != "false" {
			t.Errorf("%s", got)
		}
	})
	t.Run("GEN-03_a_refusal_is_tried_anew", func(t *testing.T) {
		again := vars{"idempotencyKey": unique("key")}
		w.peer.refuse("createAlgorithm", with(w.command(name), again), "NAME_TAKEN")
		w.peer.refuse("createAlgorithm", with(w.command(name), again), "NAME_TAKEN")
	})
	t.Run("GEN-03_a_token_is_shown_once", func(t *testing.T) {
		in := vars{"expiresAt": soon(), "idempotencyKey": unique("key")}
		if got := w.owner.do("createApiToken", in); got.str("token") == "" {
			t.Errorf("%s", got)
		}
		got := w.owner.attempt("createApiToken", in)
		if got.str("token") != "" || got.str("receipt.replayed") != "true" {
			t.Errorf("%s", got)
		}
	})
	t.Run("GEN-03_G13_over_a_restart", func(t *testing.T) {
		p.restart(t)
		got := w.owner.do("createAlgorithm", input)
		if sameAnswers(t, []value{before, got}); got.str("receipt.replayed") != "true" {
			t.Errorf("%s", got)
		}
		w.owner.refuse("createAlgorithm", with(input, vars{"label": "v2"}), "IDEMPOTENCY_CONFLICT")
	})
}
