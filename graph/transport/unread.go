package transport

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// bodyGrace is how long an answer waits for the rest of a body that nobody
	// read: a client that has sent all of it keeps its connection.
	bodyGrace = 25 * time.Millisecond
	// lingerTime is how long a connection lives on after such an answer, for a
	// client that reads it only once it has sent what it had to send.
	lingerTime = time.Second
	// lingerBytes is how much of a body is read for nothing.
	lingerBytes = 256 << 10
)

// Bounded answers a request at once whose body next did not read to its end,
// and closes the connection within a bounded time. The server of net/http
// waits for the rest of such a body, for ever: a client that announces a body
// and sends none would hold a connection without having signed in.
func Bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body := &countedBody{ReadCloser: r.Body, awaited: expectsContinue(r)}
		out := &boundedWriter{ResponseWriter: w, control: http.NewResponseController(w), body: body}
		defer out.settle()
		with := *r
		with.Body = body
		next.ServeHTTP(out, &with)
	})
}

// expectsContinue tells whether the client waits for a word before it sends.
func expectsContinue(r *http.Request) bool {
	return strings.EqualFold(strings.TrimSpace(r.Header.Get("Expect")), "100-continue")
}

// countedBody knows how far a body was read.
type countedBody struct {
	io.ReadCloser
	awaited bool // the first byte that is asked for tells the client to send
	ended   bool
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	b.awaited = false
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended = true
	}
	return n, err
}

// boundedWriter settles what becomes of the connection before the answer
// begins, since the answer has to say so.
type boundedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	body    *countedBody
	settled bool
}

// settle takes the rest of the body if it is there, and otherwise sees to it
// that the connection ends with this answer.
func (w *boundedWriter) settle() {
	if w.settled {
		return
	}
	w.settled = true
	if w.body.ended {
		return
	}
	header := w.Header()
	// A writer that knows no deadlines is a test's.
	if header.Get("Connection") == "" && !w.body.awaited {
		_ = w.control.SetReadDeadline(time.Now().Add(bodyGrace))
		_, _ = io.CopyN(io.Discard, w.body, lingerBytes) // whatever it is, the body has ended or not
		if w.body.ended {
			_ = w.control.SetReadDeadline(time.Time{})
			return
		}
	}
	header.Set("Connection", "close")
	_ = w.control.SetReadDeadline(time.Now().Add(lingerTime))
}

// WriteHeader implements http.ResponseWriter.
func (w *boundedWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.settle()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *boundedWriter) Write(p []byte) (int, error) {
	w.settle()
	return w.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController flushes with.
func (w *boundedWriter) FlushError() error {
	w.settle()
	return w.control.Flush()
}

// Hijack implements http.Hijacker. What becomes of the connection is up to
// whoever takes it.
func (w *boundedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.settled = true
	return w.control.Hijack()
}

// Unwrap is how http.ResponseController finds the rest.
func (w *boundedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
