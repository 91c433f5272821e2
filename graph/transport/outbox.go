package transport

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// outbox is what waits to be written to a socket. It is bounded; whoever has
// more to say waits, so that a slow client slows its own subscriptions and
// nothing else. While it is not empty one goroutine writes it out, under
// deadlines that progress moves on, see pacedConn; a client that has stopped
// reading loses its socket then.
type outbox struct {
	mu        sync.Mutex
	frames    [][]byte
	bytes     int
	writing   bool
	end       *CloseError // is sent last
	abandoned bool
	room      chan struct{} // closed when there is room again; nil when nobody waits
}

// put adds a message, waiting for room. It returns false when the message will
// not be sent: ctx or the socket has ended.
func (o *outbox) put(ctx context.Context, s *socket, frame []byte) bool {
	limits := &s.h.cfg.Limits
	for {
		o.mu.Lock()
		if o.abandoned || o.end != nil || ctx.Err() != nil {
			o.mu.Unlock()
			return false
		}
		if len(o.frames) < limits.SocketQueue && (o.bytes == 0 || o.bytes+len(frame) <= limits.SocketQueueBytes) {
			o.add(s, frame)
			o.mu.Unlock()
			return true
		}
		if o.room == nil {
			o.room = make(chan struct{})
		}
		room := o.room
		o.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// force adds a message of the protocol itself, which is small and comes at
// most once per tick, without waiting.
func (o *outbox) force(s *socket, frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.abandoned && o.end == nil {
		o.add(s, frame)
	}
}

func (o *outbox) add(s *socket, frame []byte) {
	o.frames = append(o.frames, frame)
	o.bytes += len(frame)
	o.start(s)
}

func (o *outbox) start(s *socket) {
	if !o.writing {
		o.writing = true
		s.h.work.Go(func() { o.write(s) })
	}
}

// close lets nothing more in and ends the socket once the rest is written. It
// tells whether it was the first to do so.
func (o *outbox) close(s *socket, end *CloseError) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.abandoned || o.end != nil {
		return false
	}
	o.end = end
	s.wire.finishBy(time.Now().Add(s.h.cfg.Limits.WriteTimeout))
	o.wake()
	o.start(s)
	return true
}

// abandon forgets what is left: the connection is gone.
func (o *outbox) abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.abandoned = true
	o.frames, o.bytes = nil, 0
	o.wake()
}

func (o *outbox) closing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end != nil || o.abandoned
}

func (o *outbox) wake() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// next takes the first message; without one it says how to go on.
func (o *outbox) next() (frame []byte, end *CloseError) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.frames) == 0 {
		o.frames = nil // an idle socket holds no queue
		if o.end == nil || o.abandoned {
			o.writing = false
			return nil, nil
		}
		return nil, o.end
	}
	frame = o.frames[0]
	o.frames[0] = nil
	o.frames = o.frames[1:]
	o.bytes -= len(frame)
	o.wake()
	return frame, nil
}

// write empties the outbox.
func (o *outbox) write(s *socket) {
	for {
		frame, end := o.next()
		if frame == nil {
			if end != nil {
				// Waits a few seconds for the other side's close, at most.
				_ = s.conn.Close(websocket.StatusCode(end.Code), end.fitting())
			}
			return
		}
		err := s.conn.Write(context.Background(), websocket.MessageText, frame) // the wire has the deadlines
		stalled := s.wire.stalled.Load()
		if stalled {
			s.h.metrics.slowClosed.Add(1)
		}
		if err != nil {
			s.drop()
			return
		}
		if stalled {
			o.giveUp()
			s.cancel()
			time.AfterFunc(lingerTime, s.cut) // its answer is not waited for any longer
		}
	}
}

// giveUp forgets what waits for a client that has stopped reading, and parts
// from it. A cursor behind what is forgotten is not its own: it has that of the
// last item that reached it.
func (o *outbox) giveUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.frames, o.bytes = nil, 0
	if o.end == nil || o.end.Code == CloseTooSlow {
		o.end = &CloseError{Code: CloseTooSlow}
	}
	o.wake()
}
