package eventstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"tallyard/domain/es"
)

// messageBuffer is how many messages wait for a consumer that is slower than
// the server; behind them the server's sending stops.
const messageBuffer = 64

// subscription implements [es.Subscription]. Its goroutine opens one
// subscription of the client after another; the position of the last message
// carries over, so that nothing is missed and nothing comes twice.
type subscription struct {
	log    *Log
	filter *esdb.SubscriptionFilter
	// all is set where the caller's filter is empty: then the store's own
	// events in users' streams are left out, too.
	all    bool
	ctx    context.Context
	cancel context.CancelFunc
	out    chan es.Message
	done   chan struct{}
	err    error // set before done is closed
	closed atomic.Bool

	seen es.Position // everything up to it was delivered or looked at
	// told is seen for the watchdog, and waiting since when the server has
	// been waited for, in nanoseconds, 0 while the consumer is.
	told    atomic.Uint64
	waiting atomic.Int64
}

// Subscribe implements [es.Log]. The context bounds the subscription's life.
func (l *Log) Subscribe(ctx context.Context, start es.Start, filter es.Filter) (es.Subscription, error) {
	if len(filter.StreamPrefixes) > 0 && len(filter.TypePrefixes) > 0 {
		return nil, errors.New("subscribe: a filter has streams or types, not both")
	}
	s := &subscription{
		log: l, filter: clientFilter(filter), all: len(filter.StreamPrefixes)+len(filter.TypePrefixes) == 0,
		out: make(chan es.Message, messageBuffer), done: make(chan struct{}), seen: start.Position(),
	}
	if start.End() {
		// The end is pinned down now. If the first connection broke before the
		// first message, the end of the log would be further on by then.
		end, err := call(ctx, l, func(ctx context.Context, c *esdb.Client, _ int) (es.Position, error) {
			return lastPosition(ctx, c)
		})
		if err != nil {
			return nil, fmt.Errorf("subscribe: %w", err)
		}
		s.seen = end
	}
	s.told.Store(uint64(s.seen))
	s.ctx, s.cancel = context.WithCancel(ctx)
	stop := context.AfterFunc(l.base, s.cancel)
	if err := l.start(func() { defer stop(); s.run() }); err != nil {
		stop()
		s.cancel()
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	return s, nil
}

// clientFilter translates a filter. Without one the store's own events, whose
// types begin with "$", are left out.
func clientFilter(f es.Filter) *esdb.SubscriptionFilter {
	switch {
	case len(f.StreamPrefixes) > 0:
		return &esdb.SubscriptionFilter{Type: esdb.StreamFilterType, Prefixes: f.StreamPrefixes}
	case len(f.TypePrefixes) > 0:
		return &esdb.SubscriptionFilter{Type: esdb.EventFilterType, Prefixes: f.TypePrefixes}
	default:
		return &esdb.SubscriptionFilter{Type: esdb.EventFilterType, Regex: `^[^\$]`}
	}
}

// Messages implements [es.Subscription].
func (s *subscription) Messages() <-chan es.Message { return s.out }

// Err implements [es.Subscription].
func (s *subscription) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close implements [es.Subscription].
func (s *subscription) Close() {
	s.closed.Store(true)
	s.cancel()
	<-s.done
}

// run follows the log until the subscription's end.
func (s *subscription) run() {
	defer s.cancel()
	defer close(s.done)
	defer close(s.out)
	wait := newBackoff(20*time.Millisecond, time.Second)
	for {
		before := s.seen
		c, err := s.follow()
		switch {
		case s.closed.Load():
			return
		case s.log.base.Err() != nil:
			s.err = errClosed
			return
		case s.ctx.Err() != nil:
			s.err = context.Cause(s.ctx)
			return
		case c == final && lasting(err):
			s.err = fmt.Errorf("subscription: %w", err)
			return
		}
		if s.seen > before {
			wait.reset()
		}
		if wait.announce() {
			s.log.logger.Info("a subscription is being opened again", "after", uint64(s.seen), "reason", err)
		}
		wait.sleep(s.ctx)
	}
}

// errSilent ends a subscription that delivers nothing although there is something.
var errSilent = errors.New("the server has events but sends none")

// follow opens one subscription of the client and delivers from it until it breaks.
func (s *subscription) follow() (class, error) {
	l := s.log
	open, opened := context.WithTimeout(s.ctx, attemptTimeout)
	defer opened()
	ses, err := l.session(open)
	if err != nil {
		return again, err
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	sub, err := use(open, ctx, ses, true, func(ctx context.Context, c *esdb.Client) (*esdb.Subscription, error) {
		return c.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{
			From: allPosition(s.seen, es.Forward), Filter: s.filter,
		})
	})
	if err != nil {
		c, err := classify(err)
		if c == renew || c == again && open.Err() != nil && s.ctx.Err() == nil {
			c = renew
			ses.retire(err.Error())
		}
		return c, err
	}
	defer ses.leave()
	defer func() { _ = sub.Close() }() // it never fails
	watch := make(chan struct{})
	go func() {
		defer close(watch)
		s.watch(ctx, cancel, ses)
	}()
	defer func() { cancel(nil); <-watch }()
	c, err := s.receive(sub)
	if cause := context.Cause(ctx); cause != nil && s.ctx.Err() == nil {
		return again, cause // the watchdog's doing
	}
	if c == renew {
		ses.retire(err.Error())
	}
	return c, err
}

// receive delivers messages until the client's subscription is dropped.
func (s *subscription) receive(sub *esdb.Subscription) (class, error) {
	defer s.waiting.Store(0)
	for {
		s.waiting.Store(time.Now().UnixNano())
		m, err := guard(s.log, func() (*esdb.SubscriptionEvent, error) { return sub.Recv(), nil })
		s.waiting.Store(0)
		if err != nil {
			return classify(err)
		}
		if m.SubscriptionDropped != nil {
			return classify(m.SubscriptionDropped.Error)
		}
		message, deliver, err := s.translate(m)
		if err != nil {
			return final, err
		}
		s.told.Store(uint64(s.seen))
		if !deliver {
			continue
		}
		// Only the end of the subscription may keep a message back that counts
		// as seen, not the end of this connection.
		select {
		case s.out <- message:
		case <-s.ctx.Done():
			return again, s.ctx.Err()
		}
	}
}

// translate turns a message of the client into one of ours and moves seen. It
// tells whether there is something to deliver.
func (s *subscription) translate(m *esdb.SubscriptionEvent) (message es.Message, deliver bool, err error) {
	switch {
	case m.EventAppeared != nil:
		e, err := recorded(m.EventAppeared.OriginalEvent())
		if err != nil {
			return es.Message{}, false, err
		}
		if e.Position <= s.seen {
			return es.Message{}, false, nil
		}
		s.seen = e.Position
		if s.all && internal(e) {
			return es.Message{}, false, nil
		}
		return es.Message{Kind: es.MessageEvent, Event: e, Position: e.Position}, true, nil
	case m.CheckPointReached != nil:
		p := m.CheckPointReached
		if p.Commit != p.Prepare {
			return es.Message{}, false, errSplitPosition
		}
		if es.Position(p.Commit) <= s.seen {
			return es.Message{}, false, nil
		}
		s.seen = es.Position(p.Commit)
		return es.Message{Kind: es.MessageCheckpoint, Position: s.seen}, true, nil
	case m.CaughtUp != nil:
		return es.Message{Kind: es.MessageCaughtUp}, true, nil
	default:
		return es.Message{}, false, nil
	}
}
