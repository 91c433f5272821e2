package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"tallyard/domain/es"
)

const (
	defaultCallTimeout = 10 * time.Second
	defaultSilentAfter = 8 * time.Second
	// stuckAfter is how long a call may ignore the end of its context.
	stuckAfter = 2 * time.Second
	// closeTimeout bounds how long Close waits for calls that hang in the client.
	closeTimeout = 5 * time.Second
)

// Config tells how to reach the event store.
type Config struct {
	// Address is unix:/path for a server on this machine, or a connection
	// string, esdb://… or esdb+discover://….
	Address string
	// Logger takes the log; nil discards it.
	Logger *slog.Logger
	// CallTimeout bounds calls whose context has no deadline, and how long a
	// read may make no progress; 0 is 10 s.
	CallTimeout time.Duration
	// SilentAfter is how long a subscription may deliver nothing before the
	// server is asked whether there is something; 0 is 8 s. It is reopened
	// within SilentAfter plus 5 s.
	SilentAfter time.Duration
}

// Log is the event log of a server, reached over the public client.
type Log struct {
	config      *esdb.Configuration
	logger      *slog.Logger
	callTimeout time.Duration
	silentAfter time.Duration

	base   context.Context // ends when the log is closed
	cancel context.CancelFunc
	work   sync.WaitGroup // owner, subscriptions, watchers, disposals

	mu      sync.Mutex
	closed  bool
	current *session
	ready   chan struct{} // closed when current is replaced by a new session
	lastErr error         // why the last attempt to connect failed
}

var _ es.Log = (*Log)(nil)

// errClosed is what calls after Close get.
var errClosed = fmt.Errorf("%w: the connection was closed", es.ErrUnavailable)

// Open connects to the event store. It fails when the address is wrong or no
// connection comes about while the context lasts, at most for the call timeout.
// Later losses of the connection are mended by themselves.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	config, err := parseAddress(cfg.Address)
	if err != nil {
		return nil, err
	}
	l := &Log{config: config, logger: cfg.Logger, callTimeout: cfg.CallTimeout, silentAfter: cfg.SilentAfter, ready: make(chan struct{})}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	if l.callTimeout <= 0 {
		l.callTimeout = defaultCallTimeout
	}
	if l.silentAfter <= 0 {
		l.silentAfter = defaultSilentAfter
	}
	l.base, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.work.Go(l.own)
	ctx, done := l.bounded(ctx)
	defer done()
	if _, err := l.session(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// own is the owner goroutine: it connects, watches for the end of the session,
// and connects again, until the log is closed.
func (l *Log) own() {
	wait := newBackoff(50*time.Millisecond, time.Second)
	for l.base.Err() == nil {
		s, err := l.attempt()
		if err != nil {
			l.setError(err)
			if wait.announce() {
				l.logger.Warn("the event store can't be reached; trying on", "error", err)
			}
			wait.sleep(l.base)
			continue
		}
		if s == nil {
			return
		}
		wait.reset()
		l.publish(s)
		select {
		case <-s.dead:
		case <-l.base.Done():
			s.retire("closing")
		}
		l.work.Go(func() {
			s.users.Wait()
			if err := s.client.Close(); err != nil {
				l.logger.Warn("close an event store client", "error", err)
			}
		})
	}
}

// attempt makes one attempt to connect and gives up waiting for it, but not
// looking after it, when the log is closed.
func (l *Log) attempt() (*session, error) {
	type result struct {
		s   *session
		err error
	}
	done := make(chan result, 1)
	l.work.Go(func() {
		s, err := l.connect()
		done <- result{s, err}
	})
	select {
	case r := <-done:
		return r.s, r.err
	case <-l.base.Done():
		l.work.Go(func() {
			if r := <-done; r.s != nil {
				_ = r.s.client.Close()
			}
		})
		return nil, nil
	}
}

func (l *Log) publish(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.lastErr = s, nil
	close(l.ready)
	l.ready = make(chan struct{})
}

func (l *Log) setError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastErr = err
}

// session gives the current session, waiting for one while the context lasts.
func (l *Log) session(ctx context.Context) (*session, error) {
	for {
		l.mu.Lock()
		s, ready := l.current, l.ready
		l.mu.Unlock()
		if s != nil {
			select {
			case <-s.dead:
			default:
				return s, nil
			}
		}
		select {
		case <-ready:
		case <-l.base.Done():
			return nil, errClosed
		case <-ctx.Done():
			l.mu.Lock()
			cause := l.lastErr
			l.mu.Unlock()
			if cause == nil {
				return nil, fmt.Errorf("%w: no connection: %w", es.ErrUnavailable, ctx.Err())
			}
			return nil, fmt.Errorf("%w: no connection: %w: %w", es.ErrUnavailable, ctx.Err(), cause)
		}
	}
}

// bounded gives a context that ends with the log, and after the call timeout
// where the given one has no deadline.
func (l *Log) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	var cancel context.CancelFunc
	if _, has := ctx.Deadline(); has {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithTimeout(ctx, l.callTimeout)
	}
	stop := context.AfterFunc(l.base, cancel)
	return ctx, func() { stop(); cancel() }
}

// Close ends the subscriptions and reads, waits for calls under way and closes
// the connection.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.work.Wait()
	}()
	timeout := time.NewTimer(closeTimeout)
	defer timeout.Stop()
	select {
	case <-done:
		return nil
	case <-timeout.C:
		return errors.New("close the event store: a call hangs in the client and was left behind")
	}
}

// start runs a goroutine that Close waits for; it refuses once the log is closed.
func (l *Log) start(f func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	l.work.Go(f)
	return nil
}
