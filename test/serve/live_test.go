package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tallyard/test/program"
)

// liveItem is an item of algorithmEvents; code is that of the error that ended
// them instead.
type liveItem struct {
	Kind      string
	Algorithm *struct{ Name string }
	code      string
}

// watch subscribes to all algorithms until the test ends, not before a position
// where one is given.
func (s *site) watch(atLeast string) <-chan liveItem {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn, _, err := websocket.Dial(ctx, strings.Replace(s.client.Base, "http", "ws", 1)+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}}) //nolint:bodyclose // empty after an upgrade
	if err != nil {
		cancel()
		s.t.Fatal(err)
	}
	for _, m := range []any{
		map[string]any{"type": "connection_init", "payload": map[string]any{"Authorization": "Bearer " + s.client.Token}},
		map[string]any{"id": "1", "type": "subscribe", "payload": map[string]any{
			"query":     `subscription($p: Position) {algorithmEvents(filter: {scope: ALL}, atLeast: $p) {kind algorithm {name}}}`,
			"variables": map[string]any{"p": optional(atLeast)},
		}},
	} {
		b, err := json.Marshal(m)
		if err == nil {
			err = conn.Write(ctx, websocket.MessageText, b)
		}
		if err != nil {
			s.t.Error(err)
		}
	}
	items := make(chan liveItem, 1000)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(items)
		for {
			_, b, err := conn.Read(ctx)
			if err != nil {
				return
			}
			var m struct {
				Type    string
				Payload json.RawMessage
			}
			var next struct {
				Data struct{ AlgorithmEvents liveItem }
			}
			var failed program.Problems
			switch err := json.Unmarshal(b, &m); {
			case err == nil && m.Type == "next" && json.Unmarshal(m.Payload, &next) == nil:
				items <- next.Data.AlgorithmEvents
			case err == nil && m.Type == "error" && json.Unmarshal(m.Payload, &failed) == nil && len(failed) > 0:
				items <- liveItem{code: failed[0].Extensions.Code}
			}
		}
	})
	s.t.Cleanup(func() {
		cancel()
		reading.Wait()
		_ = conn.CloseNow() // it is closed with its context
	})
	return items
}

// metric tells whether an API process shows a line of a metric.
func (s *site) metric(name string) bool {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.client.Base+"/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Contains(string(text), "\n"+name)
}

// TestLiveWhileNoReadModelMoves: what a subscriber hears is in the log already,
// so a projector that is gone holds it up once and not with every event.
func TestLiveWhileNoReadModelMoves(t *testing.T) {
	b := newBehind(t)
	items := b.watch("")
	next := func(items <-chan liveItem) liveItem {
		t.Helper()
		select {
		case item, open := <-items:
			if !open {
				t.Fatal("the subscription ended")
			}
			return item
		case <-time.After(time.Minute):
			t.Fatal("nothing comes")
		}
		return liveItem{}
	}
	if first := next(items); first.Kind != "SNAPSHOT" {
		t.Fatalf("%+v", first)
	}
	b.stop()
	const n = 8
	positions := make([]string, n)
	names := make([]string, n)
	began := time.Now()
	var writing sync.WaitGroup
	for i := range names {
		names[i] = fmt.Sprintf("net%d", i)
		writing.Go(func() {
			made, _ := b.create(names[i], names[i])
			positions[i] = made.Receipt.Position
		})
	}
	writing.Wait()
	t.Run("LIV-04_the_wait_does_not_add_up_and_nothing_is_left_out", func(t *testing.T) {
		var came []string
		for len(came) < n {
			if item := next(items); item.Kind == "CREATED" {
				came = append(came, item.Algorithm.Name)
			}
		}
		took := time.Since(began)
		t.Logf("%d algorithms, two events each, were told of after %s", n, took.Round(time.Millisecond))
		if slices.Sort(came); !slices.Equal(came, names) {
			t.Errorf("came %v", came)
		}
		if took > n*2*time.Second {
			t.Error("every event waited for itself")
		}
	})
	t.Run("E17_a_subscription_at_its_position_is_STALE_READ_after_the_wait", func(t *testing.T) {
		began := time.Now()
		if item := next(b.watch(positions[0])); item.code != "STALE_READ" || time.Since(began) < waitLimit {
			t.Errorf("%+v after %s", item, time.Since(began))
		}
	})
	t.Run("LIV-04_the_operator_sees_it_and_when_it_is_over", func(t *testing.T) {
		const behind = `tallyard_live_behind_seconds{projections="algorithm"}`
		if !b.metric(behind) || !strings.Contains(b.api.Output(), "live updates go out without waiting") {
			t.Errorf("nothing says so:\n%s", b.api.Output())
		}
		b.show()
		b.eventually("the metric is gone", func() bool { return !b.metric(behind) })
	})
}
