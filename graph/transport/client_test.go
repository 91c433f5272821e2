package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// client is a WebSocket without any protocol on top.
type client struct {
	t    *testing.T
	conn *websocket.Conn
	ctx  context.Context
}

// dial opens a socket; without arguments it asks for graphql-transport-ws.
func (s *site) dial(subprotocols ...string) *client {
	s.t.Helper()
	if subprotocols == nil {
		subprotocols = []string{"graphql-transport-ws"}
	}
	c, _, err := s.tryDial(nil, subprotocols...)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// tryDial tries to open a socket and returns the status of the answer, too.
func (s *site) tryDial(header http.Header, subprotocols ...string) (*client, int, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	s.t.Cleanup(cancel)
	conn, res, err := websocket.Dial(ctx, s.url, &websocket.DialOptions{Subprotocols: subprotocols, HTTPHeader: header})
	status := 0
	if res != nil {
		status = res.StatusCode
		if res.Body != nil {
			_ = res.Body.Close()
		}
	}
	if err != nil {
		return nil, status, err
	}
	conn.SetReadLimit(-1)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{s.t, conn, ctx}, status, nil
}

const initGood = `{"type":"connection_init","payload":{"Authorization":"Bearer good"}}`

// ready dials and initialises.
func (s *site) ready() *client {
	s.t.Helper()
	c := s.dial()
	c.send(initGood)
	c.expect("connection_ack", "")
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if err := c.conn.Write(c.ctx, websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatalf("writing: %v", err)
	}
}

func (c *client) subscribe(id, query string) {
	c.t.Helper()
	payload, _ := json.Marshal(map[string]string{"query": query})
	c.send(fmt.Sprintf(`{"id":%q,"type":"subscribe","payload":%s}`, id, payload))
}

type message struct {
	Type    string
	ID      string
	Payload json.RawMessage
}

// read reads a message; pings are skipped.
func (c *client) read() (message, error) {
	for {
		_, data, err := c.conn.Read(c.ctx)
		if err != nil {
			return message{}, err
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			return message{}, err
		}
		if m.Type != "ping" {
			return m, nil
		}
	}
}

func (c *client) expect(kind, id string) message {
	c.t.Helper()
	m, err := c.read()
	if err != nil {
		c.t.Fatalf("waiting for %s: %v", kind, err)
	}
	if m.Type != kind || m.ID != id {
		c.t.Fatalf("got %s %q %s, want %s %q", m.Type, m.ID, m.Payload, kind, id)
	}
	return m
}

// closed reads until the server closes, and returns its code and reason.
func (c *client) closed() (int, string) {
	c.t.Helper()
	for {
		if _, err := c.read(); err != nil {
			var end websocket.CloseError
			if !errors.As(err, &end) {
				c.t.Fatalf("the socket ended without a code: %v", err)
			}
			return int(end.Code), end.Reason
		}
	}
}

func (s *site) empty() {
	s.t.Helper()
	eventually(s.t, "everything a socket held is gone", func() bool {
		m := s.handler.Metrics()
		return m.Sockets == 0 && m.Running == 0 && s.resolvers.Streams.Load() == 0
	})
}

func (c *client) expectAny() {
	c.t.Helper()
	if _, err := c.read(); err != nil {
		c.t.Fatal(err)
	}
}
