package transport

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"tallyard/domain/fault"
)

const subprotocol = "graphql-transport-ws"

// socket is one WebSocket that speaks graphql-transport-ws.
//
// One goroutine reads; it belongs to the handler and lives as long as the
// socket. One goroutine at a time writes, see outbox; it exists only while
// there is something to write. Each running operation has one. A timer, not a
// goroutine, watches over initialisation and pings.
type socket struct {
	h             *Handler
	conn          *websocket.Conn
	wire          *pacedConn // what conn writes to
	info          RequestInfo
	authorization string // of the upgrade; the payload of connection_init goes before it
	timer         *time.Timer
	out           outbox

	ctx    context.Context // ends with the socket
	cancel context.CancelFunc

	reading context.Context // the library cuts the connection when it ends
	cut     context.CancelFunc

	heard atomic.Bool // a sign of life came since the last ping

	mu        sync.Mutex
	actor     context.Context             // descends from ctx, set by connection_init
	inited    bool                        // connection_init came
	pinged    bool                        // a ping waits for its pong
	ops       map[string]*socketOperation // those somebody listens to
	running   int                         // operations, also those nobody listens to any more
	stopWatch func() bool
}

// isUpgrade tells whether a request wants to become a WebSocket.
func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(strings.TrimSpace(r.Header.Get("Upgrade")), "websocket")
}

// serveSocket upgrades the request and leaves the socket to a goroutine of its
// own, so that the request and its buffers can go.
func (h *Handler) serveSocket(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	stopping := h.stopping
	h.mu.Unlock()
	if stopping {
		h.writeRefusal(ctx, w, mediaJSON, refuse(reasonStopping, fault.CodeUnavailable, reasonGoingAway+"."))
		return
	}
	taken := &pacingWriter{ResponseWriter: w, limit: h.cfg.Limits.WriteTimeout}
	conn, err := websocket.Accept(taken, r, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // the origin was checked against our own list
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		h.metrics.refused.Add(1) // Accept has answered
		return
	}
	conn.SetReadLimit(h.cfg.Limits.SocketMessageBytes)
	info := RequestInfoFrom(ctx)
	info.WebSocket = true
	s := &socket{
		h: h, conn: conn, wire: taken.conn, info: info,
		authorization: r.Header.Get("Authorization"),
		ops:           map[string]*socketOperation{},
	}
	s.ctx, s.cancel = context.WithCancel(WithRequestInfo(context.WithoutCancel(ctx), info))
	s.reading, s.cut = context.WithCancel(context.Background())
	s.wire.moved = func() { s.heard.Store(true) } // a ping may wait behind what is being read

	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopping {
		s.cancel()
		s.cut()
		_ = conn.CloseNow()
		return
	}
	h.sockets[s] = struct{}{}
	h.metrics.sockets.Add(1)
	h.work.Go(s.run)
}

// run reads until the socket ends, however that comes about.
func (s *socket) run() {
	defer s.release()
	s.mu.Lock()
	s.timer = time.AfterFunc(s.h.cfg.Limits.InitTimeout, s.tick)
	s.mu.Unlock()
	if s.conn.Subprotocol() != subprotocol {
		s.shut(&CloseError{CloseSubprotocol, reasonSubprotocol})
	}
	for {
		// Not under the socket's own context: the library cuts the connection
		// when it ends, without the close code.
		kind, data, err := s.conn.Read(s.reading)
		if err != nil {
			return
		}
		s.heard.Store(true)
		if s.out.closing() {
			continue // only the answer to our close counts now
		}
		if end := s.receive(kind, data); end != nil {
			s.shut(end)
		}
	}
}

// release lets go of all that the socket held.
func (s *socket) release() {
	s.timer.Stop()
	s.cancel()
	s.out.abandon()
	s.cut()
	_ = s.conn.CloseNow()
	s.mu.Lock()
	if s.stopWatch != nil {
		s.stopWatch()
	}
	s.mu.Unlock()
	s.h.mu.Lock()
	delete(s.h.sockets, s)
	s.h.mu.Unlock()
	s.h.metrics.sockets.Add(-1)
}

// tick is called by the timer: first when initialisation should be over, then
// in turn when a ping is due and when its answer should have come.
func (s *socket) tick() {
	limits := s.h.cfg.Limits
	s.mu.Lock()
	ready, pinged := s.actor != nil, s.pinged
	switch {
	case !ready:
	case !pinged:
		s.pinged = true
		s.heard.Store(false)
	case s.heard.Load():
		s.pinged = false
	}
	s.mu.Unlock()
	switch {
	case !ready:
		s.shut(&CloseError{CloseTimeout, reasonInitTimeout})
	case !pinged:
		s.out.force(s, pingFrame)
		s.timer.Reset(limits.PongTimeout)
	case s.heard.Load():
		s.timer.Reset(max(limits.PingInterval-limits.PongTimeout, limits.PingInterval/2))
	default:
		s.shut(&CloseError{CloseTimeout, reasonPongTimeout})
	}
}

// shut ends the socket with a code: operations end at once, what is on its way
// is still written, then the close frame follows. The first call counts. A
// client that does not play along is cut off before ten seconds are over.
func (s *socket) shut(end *CloseError) {
	if s.out.close(s, end) {
		time.AfterFunc(closeTime(s.h.cfg.Limits.WriteTimeout), s.cut)
	}
	s.cancel()
}

// closeTime is how long a whole close may take.
func closeTime(write time.Duration) time.Duration {
	return min(write+3*time.Second, 2*write)
}

// drop cuts the connection.
func (s *socket) drop() {
	s.out.abandon()
	s.cancel()
	s.cut()
}
