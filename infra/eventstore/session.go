package eventstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// session is one client, from its first connection to its end. Clients are
// never mended: at the first sign that the server is gone a session is retired,
// the owner makes another, and the old client is closed once nobody uses it.
//
// When a call comes back with Unavailable, the client forgets its connection
// without closing it, and the next caller makes it look for a server again; if
// that fails the client is dead and callers behind it hang for ever. So nobody
// may enter the client from the moment on at which it forgets. The client
// announces that moment to its logger, in the goroutine of the failed call and
// before it acts; there the session is retired (see note). The gate makes it
// exact: who enters holds it for reading until the client has handed out the
// connection, and retiring holds it for writing.
type session struct {
	client *esdb.Client
	log    *Log
	gate   sync.RWMutex
	gone   bool          // guarded by gate
	dead   chan struct{} // closed when the session is retired
	users  sync.WaitGroup
}

// connect makes a client and tries it out alone, so that its search for a
// server, if it fails, harms nobody.
func (l *Log) connect() (*session, error) {
	s := &session{log: l, dead: make(chan struct{})}
	config := *l.config
	config.Logger = s.note
	client, err := esdb.NewClient(&config)
	if err != nil {
		return nil, fmt.Errorf("configure the event store's client: %w", err)
	}
	if _, err := client.GetServerVersion(); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.client = client
	return s, nil
}

// enter admits a user, which must call leave when it is done with the client
// and all that it got from it. The returned context is the one to call the
// client with: it opens the gate again as soon as the client has taken its
// connection, which it shows by asking for the deadline.
func (s *session) enter(ctx context.Context) (entered context.Context, pass func(), ok bool) {
	// Where it can't be had at once the session is being retired.
	if !s.gate.TryRLock() {
		return nil, nil, false
	}
	if s.gone {
		s.gate.RUnlock()
		return nil, nil, false
	}
	s.users.Add(1)
	e := &entryContext{Context: ctx, gate: &s.gate}
	return e, e.pass, true
}

func (s *session) leave() { s.users.Done() }

// retire keeps everybody else out and tells the users that the session is at its end.
func (s *session) retire(reason string) {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.gone {
		return
	}
	s.gone = true
	close(s.dead)
	s.log.logger.Info("the connection to the event store is being replaced", "reason", reason)
}

// note takes the client's log messages.
func (s *session) note(level, format string, args ...any) {
	if level == esdb.LogError && len(args) == 1 {
		if err, ok := args[0].(error); ok && status.Code(err) == codes.Unavailable {
			s.retire("the server is unavailable")
		}
	}
	text := fmt.Sprintf(format, args...)
	if level == esdb.LogWarn {
		s.log.logger.Warn("event store client", "message", text)
		return
	}
	// What it calls an error comes back to the caller as one, too.
	s.log.logger.Debug("event store client", "level", level, "message", text)
}

// entryContext opens a session's gate at the first question for its deadline.
type entryContext struct {
	context.Context
	gate   *sync.RWMutex
	passed atomic.Bool
}

func (c *entryContext) pass() {
	if c.passed.CompareAndSwap(false, true) {
		c.gate.RUnlock()
	}
}

// Deadline implements [context.Context].
func (c *entryContext) Deadline() (time.Time, bool) {
	c.pass()
	return c.Context.Deadline()
}
