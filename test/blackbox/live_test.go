package blackbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// watch is a subscription on a socket of its own, by the public protocol.
type watch struct {
	t     *testing.T
	conn  *websocket.Conn
	items chan value
	// ended carries why nothing follows: a close code, "complete", or errors.
	ended chan ending
}

type ending struct {
	code   websocket.StatusCode
	reason string
	errors value
}

// subscribe begins a subscription that ends with the test.
func (c client) subscribe(document string, v vars) *watch {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn, resp, err := websocket.Dial(ctx, strings.Replace(c.p.url, "http", "ws", 1)+"/graphql", &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"},
		HTTPHeader:   http.Header{"User-Agent": {"blackbox/1"}},
	})
	if err != nil {
		cancel()
		c.t.Fatal(err)
	}
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // empty after an upgrade
	}
	w := &watch{t: c.t, conn: conn, items: make(chan value, 1000), ended: make(chan ending, 1)}
	c.t.Cleanup(func() {
		cancel()
		_ = conn.CloseNow() // the server may have closed it
	})
	conn.SetReadLimit(4 << 20)
	write := func(message any) {
		b, err := json.Marshal(message)
		if err == nil {
			err = conn.Write(ctx, websocket.MessageText, b)
		}
		if err != nil {
			c.t.Error(err)
		}
	}
	write(map[string]any{"type": "connection_init", "payload": map[string]any{"Authorization": "Bearer " + c.token}})
	write(map[string]any{"id": "1", "type": "subscribe", "payload": map[string]any{"query": document, "variables": v}})
	go w.read(ctx)
	return w
}

func (w *watch) read(ctx context.Context) {
	defer close(w.items)
	for {
		_, b, err := w.conn.Read(ctx)
		if err != nil {
			var closed websocket.CloseError
			errors.As(err, &closed)
			w.ended <- ending{code: closed.Code, reason: closed.Reason}
			return
		}
		var m struct {
			Type    string
			Payload any
		}
		if err := json.Unmarshal(b, &m); err != nil {
			w.ended <- ending{reason: err.Error()}
			return
		}
		switch m.Type {
		case "next":
			data := value{m.Payload}
			if data.at("errors").v != nil {
				w.ended <- ending{reason: "errors in an item", errors: data.at("errors")}
				return
			}
			fields, _ := data.at("data").v.(map[string]any)
			for _, item := range fields {
				w.items <- value{item}
			}
		case "error":
			w.ended <- ending{reason: "error", errors: value{m.Payload}}
			return
		case "complete":
			w.ended <- ending{reason: "complete"}
			return
		}
	}
}

const patience = 30 * time.Second

// next waits for an item.
func (w *watch) next() value {
	w.t.Helper()
	select {
	case item, ok := <-w.items:
		if !ok {
			end := <-w.ended
			w.t.Fatalf("the subscription ended: %d %s %s", end.code, end.reason, end.errors)
		}
		return item
	case <-time.After(patience):
		w.t.Fatal("nothing came")
	}
	return value{}
}

// until collects items up to the first one that matches.
func (w *watch) until(what string, matches func(value) bool) (all []value) {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case item, ok := <-w.items:
			if !ok {
				end := <-w.ended
				w.t.Fatalf("the subscription ended before %s: %d %s %s; it gave %s", what, end.code, end.reason, end.errors, all)
			}
			all = append(all, item)
			if matches(item) {
				return all
			}
		case <-deadline:
			w.t.Fatalf("no %s came, only %s", what, all)
		}
	}
}

// end waits for the end of the subscription and passes over items before it.
func (w *watch) end(within time.Duration) ending {
	w.t.Helper()
	deadline := time.After(within)
	for {
		select {
		case end := <-w.ended:
			return end
		case _, ok := <-w.items:
			if !ok {
				return <-w.ended
			}
		case <-deadline:
			w.t.Fatalf("the subscription goes on after %s", within)
		}
	}
}
