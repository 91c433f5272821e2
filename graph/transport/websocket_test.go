package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tallyard/graph/transport"
	"tallyard/graph/transport/transporttest"
)

// G2: every close code in its case.
func TestCloseCodes(t *testing.T) {
	forever := `{"id":"1","type":"subscribe","payload":{"query":"subscription { forever }"}}`
	for name, c := range map[string]struct {
		frames []string
		binary bool
		code   int
		reason string
	}{
		"no JSON":                      {frames: []string{"x"}, code: 4400},
		"a list":                       {frames: []string{"[]"}, code: 4400},
		"trailing bytes":               {frames: []string{initGood + "x"}, code: 4400},
		"invalid UTF-8":                {frames: []string{"{\"type\":\"\xff\"}"}, code: 4400},
		"a NUL":                        {frames: []string{`{"type":"ping","payload":{"a":"\u0000"}}`}, code: 4400},
		"no type":                      {frames: []string{`{}`}, code: 4400},
		"a type that is a number":      {frames: []string{`{"type":1}`}, code: 4400},
		"an unknown type":              {frames: []string{`{"type":"start"}`}, code: 4400},
		"a type of the server":         {frames: []string{initGood, `{"type":"next","id":"1"}`}, code: 4400},
		"a binary message":             {frames: []string{initGood}, binary: true, code: 4400},
		"init with a list":             {frames: []string{`{"type":"connection_init","payload":[]}`}, code: 4400},
		"init with a number as token":  {frames: []string{`{"type":"connection_init","payload":{"Authorization":1}}`}, code: 4400},
		"subscribe without id":         {frames: []string{initGood, `{"type":"subscribe","payload":{"query":"{ hello }"}}`}, code: 4400},
		"subscribe with an empty id":   {frames: []string{initGood, `{"id":"","type":"subscribe","payload":{"query":"{ hello }"}}`}, code: 4400},
		"subscribe with a number":      {frames: []string{initGood, `{"id":1,"type":"subscribe","payload":{"query":"{ hello }"}}`}, code: 4400},
		"subscribe with a long id":     {frames: []string{initGood, `{"id":"` + strings.Repeat("x", 200) + `","type":"subscribe","payload":{"query":"{ hello }"}}`}, code: 4400},
		"subscribe without payload":    {frames: []string{initGood, `{"id":"1","type":"subscribe"}`}, code: 4400},
		"subscribe without query":      {frames: []string{initGood, `{"id":"1","type":"subscribe","payload":{}}`}, code: 4400},
		"subscribe, variables a list":  {frames: []string{initGood, `{"id":"1","type":"subscribe","payload":{"query":"{ hello }","variables":[]}}`}, code: 4400},
		"complete without id":          {frames: []string{initGood, `{"type":"complete"}`}, code: 4400},
		"subscribe before init":        {frames: []string{forever}, code: 4401, reason: "Unauthorized"},
		"a bad token":                  {frames: []string{`{"type":"connection_init","payload":{"Authorization":"Bearer bad"}}`}, code: 4403, reason: "Forbidden"},
		"no token":                     {frames: []string{`{"type":"connection_init"}`}, code: 4403, reason: "Forbidden"},
		"a token of another scheme":    {frames: []string{`{"type":"connection_init","payload":{"authorization":"Basic x"}}`}, code: 4403, reason: "Forbidden"},
		"sign-in is down":              {frames: []string{`{"type":"connection_init","payload":{"authorization":"Bearer down"}}`}, code: 1013},
		"sign-in is broken":            {frames: []string{`{"type":"connection_init","payload":{"authorization":"Bearer broken"}}`}, code: 4500},
		"no init in time":              {code: 4408, reason: "Connection initialisation timeout"},
		"pings but no init":            {frames: []string{`{"type":"ping"}`, `{"type":"ping"}`}, code: 4408},
		"the same id twice":            {frames: []string{initGood, forever, forever}, code: 4409, reason: "Subscriber for 1 already exists"},
		"the same id for a bad one":    {frames: []string{initGood, forever, `{"id":"1","type":"subscribe","payload":{"query":"{"}}`}, code: 4409},
		"init twice":                   {frames: []string{initGood, initGood}, code: 4429, reason: "Too many initialisation requests"},
		"a resolver forbids":           {frames: []string{initGood, `{"id":"1","type":"subscribe","payload":{"query":"subscription { closes(code: 4403) }"}}`}, code: 4403, reason: "cursor-17"},
		"a client that cannot follow":  {frames: []string{initGood, `{"id":"1","type":"subscribe","payload":{"query":"subscription { closes(code: 4499) }"}}`}, code: 4499, reason: "cursor-17"},
		"a message over 64 KiB":        {frames: []string{initGood, `{"type":"ping","payload":{"x":"` + strings.Repeat("x", 70<<10) + `"}}`}, code: 1009},
		"a message that is too nested": {frames: []string{initGood, `{"type":"ping","payload":` + strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100) + `}`}, code: 4400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Limits.InitTimeout = 500 * time.Millisecond })
			sock := s.dial()
			for _, frame := range c.frames {
				sock.send(frame)
			}
			if c.binary {
				_ = sock.conn.Write(sock.ctx, websocket.MessageBinary, []byte(`{"type":"ping"}`))
			}
			code, reason := sock.closed()
			if code != c.code || c.reason != "" && reason != c.reason {
				t.Errorf("closed with %d %q, want %d %q", code, reason, c.code, c.reason)
			}
			s.empty()
		})
	}
}

func TestAnotherSubprotocolIsClosedWith4406(t *testing.T) {
	for _, protocols := range [][]string{{}, {"graphql-ws"}, {"nonsense"}} {
		s := open(t, nil)
		c := s.dial(protocols...)
		if code, reason := c.closed(); code != 4406 || reason != "Subprotocol not acceptable" {
			t.Errorf("%q: %d %q", protocols, code, reason)
		}
		s.empty()
	}
}

func TestASocketFromAForeignOriginIsNotOpened(t *testing.T) {
	s := open(t, nil)
	for origin, opens := range map[string]bool{
		"": true, s.server.URL: true, "https://app.example.org": true,
		"https://evil.example": false, "null": false,
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		_, status, err := s.tryDial(header, "graphql-transport-ws")
		if (err == nil) != opens || !opens && status != http.StatusForbidden {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

func TestTheTokenMayComeWithTheUpgrade(t *testing.T) {
	s := open(t, nil)
	c, _, err := s.tryDial(http.Header{"Authorization": {"Bearer good"}}, "graphql-transport-ws")
	if err != nil {
		t.Fatal(err)
	}
	c.send(`{"type":"connection_init"}`)
	c.expect("connection_ack", "")
}

func TestOperationsOverASocket(t *testing.T) {
	s := open(t, nil)
	c := s.ready()

	c.subscribe("a", "subscription { count(to: 3) }")
	for i := 1; i <= 3; i++ {
		if m := c.expect("next", "a"); string(m.Payload) != fmt.Sprintf(`{"data":{"count":%d}}`, i) {
			t.Errorf("item %d: %s", i, m.Payload)
		}
	}
	c.expect("complete", "a")

	c.subscribe("a", "{ hello }") // the id is free again
	if m := c.expect("next", "a"); string(m.Payload) != `{"data":{"hello":"Hello"}}` {
		t.Errorf("a query: %s", m.Payload)
	}
	c.expect("complete", "a")

	c.subscribe("m", `mutation { write(value: "x") }`)
	c.expect("next", "m")
	c.expect("complete", "m")

	// An error is the last message of its operation: no complete follows.
	for id, query := range map[string]string{
		"e1": "{", "e2": "{ nothing }", "e3": "subscription { refused }", "e4": "subscription($x: Int!) { count(to: $x) }", "e5": "subscription { panics }",
	} {
		c.subscribe(id, query)
		m := c.expect("error", id)
		var errs []struct{ Extensions map[string]any }
		if err := json.Unmarshal(m.Payload, &errs); err != nil || len(errs) == 0 || errs[0].Extensions["requestId"] == nil || errs[0].Extensions["code"] == nil {
			t.Errorf("%s: %s", id, m.Payload)
		}
		if strings.Contains(string(m.Payload), "secret") {
			t.Errorf("%s: %s", id, m.Payload)
		}
	}

	// G19: errors of nested resolvers arrive, with the data.
	c.subscribe("n", "subscription { nestedErrors { value } }")
	if m := c.expect("next", "n"); !strings.Contains(string(m.Payload), `"data":{"nestedErrors":{"value":null}}`) || !strings.Contains(string(m.Payload), "NOT_FOUND") {
		t.Errorf("nested: %s", m.Payload)
	}
	c.expect("complete", "n")

	c.send(`{"type":"ping","payload":{"n":1}}`)
	if m := c.expect("pong", ""); string(m.Payload) != `{"n":1}` {
		t.Errorf("pong: %s", m.Payload)
	}
	c.send(`{"type":"pong"}`)
	c.send(`{"type":"complete","id":"never"}`)
	c.send(`{"type":"ping"}`)
	c.expect("pong", "")
	_ = c.conn.Close(1000, "")
	s.empty()
}

func TestCompleteStopsASubscriptionAndFreesItsID(t *testing.T) {
	s := open(t, nil)
	c := s.ready()
	for range 3 {
		c.subscribe("x", "subscription { forever }")
		c.expect("next", "x")
		c.send(`{"id":"x","type":"complete"}`)
	}
	eventually(t, "the sources end", func() bool { return s.resolvers.Streams.Load() == 0 })
}

func TestAtMostSoManyOperationsRunOnASocket(t *testing.T) {
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Limits.SocketOperations = 5 })
	c := s.ready()
	for i := range 6 {
		c.subscribe(fmt.Sprint(i), "subscription { forever }")
	}
	for {
		m, err := c.read()
		if err != nil {
			t.Fatal(err)
		}
		if m.Type == "error" {
			if m.ID != "5" || !strings.Contains(string(m.Payload), "LIMIT_EXCEEDED") {
				t.Errorf("%s: %s", m.ID, m.Payload)
			}
			break
		}
	}
	// The refusal comes at once; the others may still be on their way to run.
	eventually(t, "five run", func() bool { return s.handler.Metrics().Running == 5 })
}

// TEN-07
func TestARevokedTokenClosesItsSocketsWith4403(t *testing.T) {
	s := open(t, nil)
	a, b := s.ready(), s.ready()
	a.subscribe("1", "subscription { forever }")
	a.expect("next", "1")
	s.tokens.Revoke(&transport.CloseError{Code: transport.CloseForbidden, Reason: "This user was suspended"})
	for _, c := range []*client{a, b} {
		if code, reason := c.closed(); code != 4403 || reason != "This user was suspended" {
			t.Errorf("%d %q", code, reason)
		}
	}
	c := s.ready()
	s.tokens.Revoke(nil)
	if code, _ := c.closed(); code != 4403 {
		t.Errorf("%d", code)
	}
	s.empty()
}

func TestASocketWithoutPongIsClosed(t *testing.T) {
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) {
		c.Limits.PingInterval, c.Limits.PongTimeout = 80*time.Millisecond, 40*time.Millisecond
	})
	c := s.ready()
	if code, reason := c.closed(); code != 4408 || reason != "Pong timeout" {
		t.Errorf("%d %q", code, reason)
	}
	alive := s.ready()
	for range 4 { // answers, and stays
		_, data, err := alive.conn.Read(alive.ctx)
		if err != nil || string(data) != `{"type":"ping"}` {
			t.Fatalf("%s %v", data, err)
		}
		alive.send(`{"type":"pong"}`)
	}
}

// G15: a reader that stalls loses its socket, and everything it held is gone.
func TestAStalledReaderIsDropped(t *testing.T) {
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Limits.WriteTimeout = 300 * time.Millisecond })
	c := s.ready()
	c.subscribe("1", "subscription { flood(bytes: 60000) }")
	c.subscribe("2", "subscription { forever }")
	s.empty() // while nothing is read
	if n := s.handler.Metrics().SlowClosed; n != 1 {
		t.Errorf("%d counted", n)
	}
}

// A peer that never reads our close frame, nor answers it, does not keep the socket.
func TestAStalledReaderCannotDelayItsClose(t *testing.T) {
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Limits.WriteTimeout = 300 * time.Millisecond })
	c := s.ready()
	c.subscribe("1", "subscription { closes(code: 4499) }")
	start := time.Now()
	s.empty()
	if took := time.Since(start); took > 9*time.Second {
		t.Errorf("it took %v", took)
	}
}

// G14 over a socket.
func TestAMutationOverASocketOutlivesIt(t *testing.T) {
	s := open(t, func(_ *transport.Config, r *transporttest.Resolvers) {
		r.Entered, r.Release = make(chan struct{}), make(chan struct{})
	})
	c := s.ready()
	c.subscribe("m", `mutation { write(value: "x") }`)
	<-s.resolvers.Entered
	_ = c.conn.CloseNow()
	eventually(t, "the socket is gone", func() bool { return s.handler.Metrics().Sockets == 0 })
	close(s.resolvers.Release)
	eventually(t, "the mutation ran", func() bool { return s.resolvers.Written.Load() == 1 })
}

func TestAQueryOverASocketEndsWithIt(t *testing.T) {
	s := open(t, func(_ *transport.Config, r *transporttest.Resolvers) { r.Entered = make(chan struct{}) })
	c := s.ready()
	c.subscribe("q", "{ slow }")
	<-s.resolvers.Entered
	_ = c.conn.CloseNow()
	eventually(t, "the query is cancelled", func() bool { return s.resolvers.Cancelled.Load() == 1 })
	s.empty()
}

func TestAMutationOverASocketIsNotStoppedByComplete(t *testing.T) {
	s := open(t, func(_ *transport.Config, r *transporttest.Resolvers) {
		r.Entered, r.Release = make(chan struct{}), make(chan struct{})
	})
	c := s.ready()
	c.subscribe("m", `mutation { write(value: "x") }`)
	<-s.resolvers.Entered
	c.send(`{"id":"m","type":"complete"}`)
	c.send(`{"type":"ping"}`)
	c.expect("pong", "")
	close(s.resolvers.Release)
	eventually(t, "the mutation ran", func() bool { return s.resolvers.Written.Load() == 1 })
}

func TestStoppingClosesSocketsWith1001AndWaitsForMutations(t *testing.T) {
	s := open(t, func(_ *transport.Config, r *transporttest.Resolvers) {
		r.Entered, r.Release = make(chan struct{}), make(chan struct{})
	})
	c, idle := s.ready(), s.ready()
	c.subscribe("m", `mutation { write(value: "x") }`)
	<-s.resolvers.Entered
	done := make(chan error, 1)
	go func() { done <- s.handler.Close(context.Background()) }()
	for _, c := range []*client{c, idle} {
		if code, _ := c.closed(); code != 1001 {
			t.Errorf("closed with %d", code)
		}
	}
	select {
	case <-done:
		t.Fatal("it did not wait for the mutation")
	case <-time.After(50 * time.Millisecond):
	}
	close(s.resolvers.Release)
	if err := <-done; err != nil || s.resolvers.Written.Load() != 1 {
		t.Errorf("%v, %d written", err, s.resolvers.Written.Load())
	}
	_, status, err := s.tryDial(nil)
	if err == nil || status != http.StatusServiceUnavailable {
		t.Errorf("a socket after the end: %v", err)
	}
}

// A client that hangs up in the middle of anything leaves nothing behind.
func TestCutConnectionsLeaveNothingBehind(t *testing.T) {
	s := open(t, nil)
	for i := range 40 {
		c := s.ready()
		for j := range 5 {
			c.subscribe(fmt.Sprint(j), "subscription { forever }")
		}
		if i%2 == 0 {
			c.expectAny()
		}
		_ = c.conn.CloseNow()
	}
	s.empty()
}

// Bytes that are no WebSocket frames end the socket, nothing else.
func TestRawNonsenseEndsTheSocket(t *testing.T) {
	s := open(t, nil)
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprint(conn, "GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n")
	eventually(t, "the socket is open", func() bool { return s.handler.Metrics().Sockets == 1 })
	_, _ = conn.Write([]byte(strings.Repeat("\xff\x00\x7f", 1000)))
	s.empty()
}

// A close frame holds 123 bytes. A reason may be cut, a cursor may not.
func TestLongReasonsAreCutButNeverCursors(t *testing.T) {
	for _, c := range []struct {
		code, length int
		want         string
	}{
		{4499, 123, strings.Repeat("c", 123)}, {4499, 124, ""}, {4403, 123, strings.Repeat("c", 123)}, {4403, 500, strings.Repeat("c", 120) + "…"},
	} {
		s := open(t, func(_ *transport.Config, r *transporttest.Resolvers) {
			r.End = func(ctx context.Context, code int) {
				transport.End(ctx, &transport.CloseError{Code: code, Reason: strings.Repeat("c", c.length)})
			}
		})
		sock := s.ready()
		sock.subscribe("1", fmt.Sprintf("subscription { closes(code: %d) }", c.code))
		if code, reason := sock.closed(); code != c.code || reason != c.want {
			t.Errorf("%d of %d: %d %q", c.code, c.length, code, reason)
		}
	}
}

// Mutations go on after complete, so they still count.
func TestAClientCannotPileUpMutationsByNotListening(t *testing.T) {
	s := open(t, func(c *transport.Config, r *transporttest.Resolvers) {
		c.Limits.SocketOperations = 3
		r.Entered, r.Release = make(chan struct{}), make(chan struct{})
	})
	c := s.ready()
	for i := range 3 {
		c.subscribe(fmt.Sprint(i), `mutation { write(value: "x") }`)
		<-s.resolvers.Entered
		c.send(fmt.Sprintf(`{"id":"%d","type":"complete"}`, i))
	}
	c.subscribe("more", `mutation { write(value: "x") }`)
	if m := c.expect("error", "more"); !strings.Contains(string(m.Payload), "LIMIT_EXCEEDED") {
		t.Errorf("%s", m.Payload)
	}
	close(s.resolvers.Release)
	eventually(t, "the others ran", func() bool { return s.resolvers.Written.Load() == 3 })
}
