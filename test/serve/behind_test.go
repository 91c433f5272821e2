package serve

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tallyard/test/program"
)

// waitLimit is how long commands and reads wait for the read models (rule 10
// of the API).
const waitLimit = 2 * time.Second

// behind is an installation whose projector can stop: nothing that is written
// between stop and show shows.
type behind struct {
	*site
	api, projector *program.Program
	project        string
}

func newBehind(t *testing.T) *behind {
	t.Helper()
	s := newSite(t)
	b := &behind{site: s, projector: s.serve("projector", s.local), api: s.serve("api,worker", s.local)}
	s.client = b.api.Client(strings.TrimSpace(s.command("bootstrap", "--tenant", "acme", "--project", "vision", "--login", "ada", "--name", "Ada Example")))
	s.eventually("the project is seen", func() bool {
		var data struct {
			Projects struct{ Nodes []struct{ ID string } }
		}
		s.do(`{projects(first: 1) {nodes {id}}}`, nil, &data)
		if len(data.Projects.Nodes) == 1 {
			b.project = data.Projects.Nodes[0].ID
		}
		return b.project != ""
	})
	return b
}

// stop ends the projector.
func (b *behind) stop() {
	b.t.Helper()
	if err := b.projector.Stop(); err != nil {
		b.t.Fatal(err)
	}
}

// show starts a projector again.
func (b *behind) show() {
	b.t.Helper()
	b.projector = b.serve("projector", b.local)
}

// answer is a whole answer, as it goes over the wire.
type answer struct {
	status int
	text   []byte
	took   time.Duration
}

func (b *behind) post(query string, variables map[string]any) answer {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		b.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.client.Base+"/graphql", bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+b.client.Token)
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{resp.StatusCode, text, time.Since(began)}
}

// created is the payload of createAlgorithm.
type created struct {
	Algorithm  *struct{ ID, Name string }
	UserErrors program.Problems
	Receipt    struct {
		CommandID, Position string
		Replayed, Pending   bool
	}
}

func (b *behind) create(name, key string) (created, time.Duration) {
	b.t.Helper()
	a := b.post(`mutation($i: CreateAlgorithmInput!) {createAlgorithm(input: $i) {algorithm {id name} userErrors {code message} receipt {commandId position replayed pending}}}`,
		map[string]any{"i": map[string]any{
			"projectId": b.project, "name": name, "label": "v1", "idempotencyKey": key,
			"image": map[string]any{"reference": "pytorch:2.6"}, "source": map[string]any{"command": "python train.py"},
		}})
	var out struct {
		Data   struct{ CreateAlgorithm created }
		Errors program.Problems
	}
	if err := json.Unmarshal(a.text, &out); err != nil || len(out.Errors) > 0 || a.status != http.StatusOK {
		b.t.Fatalf("%d %s", a.status, a.text)
	}
	return out.Data.CreateAlgorithm, a.took
}

// list counts the algorithms and tells what happened to them.
func (b *behind) list(atLeast string) (count int, events []string) {
	b.t.Helper()
	var data struct {
		Algorithms struct {
			TotalCount int
			Nodes      []struct {
				History struct{ Nodes []struct{ Event string } }
			}
		}
	}
	b.do(`query($p: Position) {algorithms(first: 100, atLeast: $p) {totalCount nodes {history(first: 100) {nodes {event}}}}}`,
		map[string]any{"p": optional(atLeast)}, &data)
	for _, n := range data.Algorithms.Nodes {
		for _, e := range n.History.Nodes {
			events = append(events, e.Event)
		}
	}
	return data.Algorithms.TotalCount, events
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// TestE17 sends a command while no read model moves: it is accepted all the
// same, tells where it is, and is done once, however often it is sent.
func TestE17(t *testing.T) {
	b := newBehind(t)
	b.stop()
	first, took := b.create("resnet", "once")
	t.Run("E17_it_is_accepted_with_its_position_after_the_wait", func(t *testing.T) {
		if first.Algorithm == nil || first.Algorithm.Name != "resnet" || len(first.UserErrors) > 0 {
			t.Errorf("%+v", first)
		}
		if r := first.Receipt; !r.Pending || r.Replayed || r.Position == "" || r.CommandID == "" {
			t.Errorf("%+v", r)
		}
		if took < waitLimit {
			t.Errorf("answered after %s, though nothing shows", took)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	t.Run("E17_sent_again_it_is_not_done_again", func(t *testing.T) {
		again, _ := b.create("resnet", "once")
		if again.Algorithm == nil || *again.Algorithm != *first.Algorithm || len(again.UserErrors) > 0 {
			t.Errorf("%+v, first %+v", again, first)
		}
		if r := again.Receipt; !r.Replayed || !r.Pending || r.Position != first.Receipt.Position || r.CommandID != first.Receipt.CommandID {
			t.Errorf("%+v, first %+v", r, first.Receipt)
		}
		another, _ := b.create("resnet", "another")
		if len(another.UserErrors) != 1 || another.UserErrors[0].Code != "NAME_TAKEN" || another.Algorithm != nil {
			t.Errorf("what does not show yet does not count: %+v", another)
		}
	})
	t.Run("E17_a_read_at_its_position_is_STALE_READ_after_the_wait", func(t *testing.T) {
		a := b.post(`query($p: Position) {algorithms(first: 1, atLeast: $p) {totalCount}}`, map[string]any{"p": first.Receipt.Position})
		var out struct {
			Data   any
			Errors []struct {
				Message    string
				Path       []any
				Extensions map[string]any
			}
		}
		if err := json.Unmarshal(a.text, &out); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d after %s: %s", a.status, a.took.Round(time.Millisecond), a.text)
		if a.status != http.StatusOK || out.Data != nil || len(out.Errors) != 1 {
			t.Fatalf("%d %s", a.status, a.text)
		}
		e := out.Errors[0]
		if e.Extensions["code"] != "STALE_READ" || e.Extensions["requestId"] == nil || e.Message == "" || len(e.Path) != 1 || e.Path[0] != "algorithms" {
			t.Errorf("%+v", e)
		}
		if a.took < waitLimit {
			t.Errorf("it gave up after %s", a.took)
		}
	})
	t.Run("E17_other_reads_go_on_with_what_there_is", func(t *testing.T) {
		if n, _ := b.list(""); n != 0 {
			t.Errorf("%d show", n)
		}
	})
	t.Run("E17_what_was_accepted_shows_once_when_they_move_again", func(t *testing.T) {
		b.show()
		n, events := b.list(first.Receipt.Position)
		if n != 1 || len(events) != 2 || events[0] != "algorithm.created.v1" || events[1] != "algorithm.version_added.v1" {
			t.Errorf("%d algorithms, %v", n, events)
		}
		if again, _ := b.create("resnet", "once"); !again.Receipt.Replayed || again.Receipt.Pending {
			t.Errorf("%+v", again.Receipt)
		}
	})
}
