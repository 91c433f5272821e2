package transport_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tallyard/graph/transport"
)

// bounded serves a handler behind Bounded.
func bounded(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(transport.Bounded(f))
	t.Cleanup(s.Close)
	return s
}

// wire is a connection that is spoken to byte by byte.
type wire struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dialWire(t *testing.T, s *httptest.Server) *wire {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	return &wire{t, c, bufio.NewReader(c)}
}

func (w *wire) say(format string, args ...any) {
	w.t.Helper()
	if _, err := fmt.Fprintf(w, format, args...); err != nil {
		w.t.Fatal(err)
	}
}

// answer reads an answer and returns its status and what it says of the connection.
func (w *wire) answer() (status int, closes bool) {
	w.t.Helper()
	r, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	defer func() { _ = r.Body.Close() }()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		w.t.Fatalf("half an answer: %v", err)
	}
	return r.StatusCode, r.Close
}

// ends waits for the server to close.
func (w *wire) ends() {
	w.t.Helper()
	if _, err := w.in.ReadByte(); err == nil || strings.Contains(err.Error(), "timeout") {
		w.t.Errorf("the connection goes on: %v", err)
	}
}

const unfinished = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{\"q"

// A refusal does not wait for a body that may never come.
func TestARequestWithAnUnfinishedBodyIsAnsweredAndClosed(t *testing.T) {
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		request string
		status  int
	}{
		"refused unread":   {refuse, unfinished, 401},
		"a body of chunks": {refuse, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 401},
		"a GET":            {refuse, "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n", 401},
		"a large one":      {refuse, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000000\r\n\r\nabc", 401},
		"one that waits for a word": {
			refuse, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\nExpect: 100-continue\r\n\r\n", 401,
		},
		"without a word": {func(http.ResponseWriter, *http.Request) {}, unfinished, 200},
		"written alone":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("no")) }, unfinished, 200},
		"flushed": {func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
		}, unfinished, 200},
		"read in part": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadFull(r.Body, make([]byte, 2))
			w.WriteHeader(http.StatusBadRequest)
		}, unfinished, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dialWire(t, bounded(t, c.handler))
			w.say("%s", c.request)
			if status, closes := w.answer(); status != c.status || !closes {
				t.Errorf("status %d, says that it closes: %v", status, closes)
			}
			w.ends()
		})
	}
}

// Whoever has sent all of a body keeps the connection, whether it was read or not.
func TestARequestWithAWholeBodyKeepsItsConnection(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"unread": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"read": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusUnauthorized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dialWire(t, bounded(t, handler))
			for range 3 {
				w.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
				if status, closes := w.answer(); status != 401 || closes {
					t.Fatalf("status %d, closes: %v", status, closes)
				}
			}
		})
	}
}

// A body that is read may take its time, and so may what comes after it.
func TestBoundedLeavesLongBodiesAlone(t *testing.T) {
	w := dialWire(t, bounded(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		time.Sleep(1200 * time.Millisecond)
		if err != nil || r.Context().Err() != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	}))
	w.say("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na")
	for _, rest := range []string{"b", "c"} {
		time.Sleep(700 * time.Millisecond)
		w.say("%s", rest)
	}
	if status, closes := w.answer(); status != 200 || closes {
		t.Errorf("status %d, closes: %v", status, closes)
	}
}

// A connection that was taken over has no deadline of ours.
func TestBoundedLetsGoOfAConnectionThatIsTaken(t *testing.T) {
	w := dialWire(t, bounded(t, func(w http.ResponseWriter, _ *http.Request) {
		c, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			_, _ = io.CopyN(c, in, 6)
		}()
	}))
	w.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nabc")
	time.Sleep(1300 * time.Millisecond)
	w.say("def")
	got := make([]byte, 6)
	if _, err := io.ReadFull(w.in, got); err != nil || string(got) != "abcdef" {
		t.Errorf("%q, %v", got, err)
	}
}
