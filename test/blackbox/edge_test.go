package blackbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// answered is an answer, and what became of the connection.
type answered struct {
	status         int
	header         http.Header
	body           string
	closes, closed bool // it says so; it did
}

// raw sends bytes to the shared program.
func raw(t *testing.T, request string) (out answered) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(shared.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, err = in.ReadByte()
	return answered{answer.StatusCode, answer.Header, string(b), answer.Close, errors.Is(err, io.EOF)}
}

// TestUnfinishedBodies: nobody holds a connection with a body that never comes.
func TestUnfinishedBodies(t *testing.T) {
	const posted, good = "Content-Type: application/json\r\n", "Authorization: Bearer dev-alice\r\n"
	for name, c := range map[string]struct {
		line, headers string
		status        int
	}{
		"nobody":            {"POST /graphql", posted, 401},
		"a bad token":       {"POST /graphql", posted + "Authorization: Bearer nobody\r\n", 401},
		"another type":      {"POST /graphql", good + "Content-Type: text/plain\r\n", 415},
		"another method":    {"DELETE /graphql", good, 405},
		"a foreign origin":  {"POST /graphql", posted + good + "Origin: https://evil.example\r\n", 403},
		"a GET":             {"GET /graphql?query={me{id}}", good, 200},
		"no such route":     {"POST /nope", "", 404},
		"health":            {"GET /healthz", "", 200},
		"readiness":         {"GET /readyz", "", 200},
		"metrics":           {"GET /metrics", "", 200},
		"the schema":        {"GET /schema.graphql", "", 200},
		"the explorer":      {"GET /", "", 200},
		"a file of nobody":  {"PUT /files/home/x", "", 401},
		"a file to nowhere": {"PUT /files/nowhere/x", good, 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := fmt.Sprintf("%s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: 500\r\n\r\n{\"q", c.line, strings.TrimPrefix(shared.url, "http://"), c.headers)
			if got := raw(t, request); got.status != c.status || !got.closes || !got.closed {
				t.Errorf("%d %.200s, says that it closes: %v, closed: %v", got.status, got.body, got.closes, got.closed)
			}
		})
	}
}

// TestForeignHosts: the development mode lets in everybody by name, so a page
// that bends its own name to this machine must not get through.
func TestForeignHosts(t *testing.T) {
	port := shared.url[strings.LastIndex(shared.url, ":")+1:]
	const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n"
	for _, headers := range []string{"", "Origin: http://evil.example:" + port + "\r\n", "Authorization: Bearer dev-admin\r\n", upgrade} {
		for _, path := range []string{"/graphql?query={me{id}}", "/files/home/", "/", "/explorer/config.json", "/schema.graphql", "/metrics", "/healthz"} {
			got := raw(t, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: evil.example:%s\r\n%sConnection: close\r\n\r\n", path, port, headers))
			if got.status != http.StatusMisdirectedRequest || !strings.Contains(got.body, "localhost") {
				t.Errorf("%s with %q: %d %.200s", path, headers, got.status, got.body)
			}
		}
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		for _, origin := range []string{"127.0.0.1", "localhost"} {
			got := raw(t, fmt.Sprintf("GET /graphql?query={me{id}} HTTP/1.1\r\nHost: %s:%s\r\nOrigin: http://%s:%s\r\nAuthorization: Bearer dev-alice\r\nConnection: close\r\n\r\n", host, port, origin, port))
			if got.status != http.StatusOK {
				t.Errorf("a page of %s at %s: %d %s", origin, host, got.status, got.body)
			}
		}
	}
}

// TestHeadersOfEveryRoute: no answer is guessed at, and none is kept that was
// not meant to be.
func TestHeadersOfEveryRoute(t *testing.T) {
	for path, kept := range map[string]string{
		"/healthz": "no-store", "/readyz": "no-store", "/metrics": "no-store", "/schema.graphql": "no-store", "/nope": "no-store",
		"/graphql": "no-store", "/files/home/x": "no-store", "/explorer/config.json": "no-store", "/": "no-cache",
	} {
		got := raw(t, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path))
		if h := got.header; h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != kept {
			t.Errorf("%s: %v", path, h)
		}
	}
}
