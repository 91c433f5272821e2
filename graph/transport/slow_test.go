package transport_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tallyard/graph/transport"
	"tallyard/graph/transport/transporttest"
)

// slowConn is read at a steady pace, or not at all while it is held.
type slowConn struct {
	net.Conn
	pace time.Duration // between two pieces of 16 KiB
	held atomic.Bool
}

// Read implements io.Reader.
func (c *slowConn) Read(p []byte) (int, error) {
	for c.held.Load() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(c.pace)
	return c.Conn.Read(p[:min(len(p), 16<<10)])
}

// slowly opens a socket that is read by a slowConn.
func (s *site) slowly(pace time.Duration) (*client, *slowConn) {
	s.t.Helper()
	slow := &slowConn{pace: pace}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		slow.Conn = conn
		return slow, conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	s.t.Cleanup(cancel)
	conn, res, err := websocket.Dial(ctx, s.url, &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dial}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if res.Body != nil {
		_ = res.Body.Close()
	}
	conn.SetReadLimit(-1)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	c := &client{s.t, conn, ctx}
	c.send(initGood)
	c.expect("connection_ack", "")
	return c, slow
}

// LIV-04: whoever reads slowly and steadily is no stalled client, however long
// a message takes and however much waits behind it.
func TestASteadySlowReaderIsNotStalled(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) {
		c.Limits.WriteTimeout = time.Second
		c.Limits.PingInterval, c.Limits.PongTimeout = time.Second, 500*time.Millisecond
	})
	c, _ := s.slowly(10 * time.Millisecond)
	c.subscribe("1", "subscription { flood(bytes: 4000000) }")
	began := time.Now()
	for range 3 {
		if m := c.expect("next", "1"); len(m.Payload) < 4_000_000 {
			t.Fatalf("%d bytes", len(m.Payload))
		}
	}
	if took := time.Since(began); took < 3*time.Second {
		t.Fatalf("it took %v: that is not slow", took)
	}
	_ = c.conn.CloseNow()
	s.empty()
}

// G15, LIV-04: who has stopped reading loses the socket and all it held, and
// finds whole messages and the reason when it wakes up.
func TestAStalledReaderFindsTheReason(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Limits.WriteTimeout = 300 * time.Millisecond })
	c, slow := s.slowly(0)
	c.subscribe("1", "subscription { flood(bytes: 60000) }")
	c.subscribe("2", "subscription { forever }")
	c.expectAny()
	slow.held.Store(true)
	s.empty() // while nothing is read
	if n := s.handler.Metrics().SlowClosed; n != 1 {
		t.Errorf("%d counted", n)
	}
	slow.held.Store(false)
	for {
		if _, err := c.read(); err != nil {
			var end websocket.CloseError
			if !errors.As(err, &end) || end.Code != transport.CloseTooSlow {
				t.Errorf("%v", err)
			}
			return
		}
	}
}

// A long answer over HTTP has more time than a short one.
func TestASlowReaderGetsAllOfALongAnswer(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *transport.Config, _ *transporttest.Resolvers) { c.Limits.WriteTimeout = time.Second })
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	slow := &slowConn{Conn: conn, pace: 20 * time.Millisecond}
	web := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return slow, nil }}}
	defer web.CloseIdleConnections()
	body, err := json.Marshal(map[string]any{
		"query":     "query($v: String!) { a: text(value: $v) b: text(value: $v) c: text(value: $v) d: text(value: $v) e: text(value: $v) }",
		"variables": map[string]string{"v": strings.Repeat("x", 900_000)},
	})
	if err != nil {
		t.Fatal(err)
	}
	res, err := web.Do(s.request(http.MethodPost, s.url, string(body), "Authorization", "Bearer good"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if n, err := io.Copy(io.Discard, res.Body); err != nil || n < 4_500_000 {
		t.Errorf("%d of %d bytes: %v", n, res.ContentLength, err)
	}
}
