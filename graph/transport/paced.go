package transport

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

const (
	// socketBuffer is what the kernel holds of a socket's bytes, doubled by it. It
	// tells of room once a third is free, so that with a large one a client that
	// reads slowly and steadily looks for seconds as if it did not read at all.
	socketBuffer = 64 << 10
	// partingBuffer is what it may hold when a client has stalled: the frame that
	// is on its way and the close frame then fit in, and wait there for a client
	// that wakes up later.
	partingBuffer = 1 << 20
	// partingTime is how long a piece of them may take to get there.
	partingTime = 200 * time.Millisecond
	// piece is how many bytes have a deadline of their own.
	piece = 16 << 10
	// blocked is when a write has waited for the other side.
	blocked = 20 * time.Millisecond
)

// pacedConn is the connection of a socket. What is written has its deadline by
// progress: a client that reads slowly takes as long as it takes, one that has
// stopped is noticed. From then on writing is only for parting.
type pacedConn struct {
	net.Conn
	limit   time.Duration         // for a piece to leave
	until   atomic.Pointer[int64] // nanoseconds; for everything, once the socket closes
	stalled atomic.Bool
	moved   func() // the other side was seen to read
}

// Write implements io.Writer.
func (c *pacedConn) Write(p []byte) (n int, err error) {
	for n < len(p) {
		began := time.Now()
		if err := c.SetWriteDeadline(c.deadline(began)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(p[n:min(n+piece, len(p))])
		n += m
		switch late := errors.Is(err, os.ErrDeadlineExceeded); {
		case late && !c.stalled.Load():
			if m == 0 || c.over() {
				c.part()
			}
		case err != nil:
			return n, err
		case time.Since(began) > blocked:
			c.moved()
		}
	}
	return n, nil
}

func (c *pacedConn) deadline(now time.Time) time.Time {
	if c.stalled.Load() {
		return now.Add(partingTime)
	}
	at := now.Add(c.limit)
	if until := c.until.Load(); until != nil && at.UnixNano() > *until {
		return time.Unix(0, *until)
	}
	return at
}

// over tells whether the time for everything has run out.
func (c *pacedConn) over() bool {
	until := c.until.Load()
	return until != nil && time.Now().UnixNano() >= *until
}

// finishBy bounds all that is still written.
func (c *pacedConn) finishBy(at time.Time) {
	nano := at.UnixNano()
	c.until.Store(&nano)
}

// part makes room in the kernel for the rest of a frame and the close frame.
func (c *pacedConn) part() {
	c.stalled.Store(true)
	setWriteBuffer(c.Conn, partingBuffer)
}

func setWriteBuffer(c net.Conn, bytes int) {
	if tcp, ok := c.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(bytes) // it works without, less well
	}
}

// pacingWriter hands out a connection that is taken over as a pacedConn.
type pacingWriter struct {
	http.ResponseWriter
	limit time.Duration
	conn  *pacedConn
}

// Hijack implements http.Hijacker.
func (w *pacingWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	setWriteBuffer(conn, socketBuffer)
	w.conn = &pacedConn{Conn: conn, limit: w.limit, moved: func() {}}
	return w.conn, bufio.NewReadWriter(buffered.Reader, bufio.NewWriter(w.conn)), nil
}

// Unwrap is how http.ResponseController finds the rest.
func (w *pacingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
