package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"tallyard/infra/eventstore/embedded/persistent"
)

// group is a running group. Its state is shared, under a lock that is held for
// moments only, between the calls of its consumers and one goroutine that reads
// and writes for it.
type group struct {
	store  *store
	logger *slog.Logger
	name   groupName
	entry  groupEntry
	filter *eventFilter

	kick   chan struct{} // wakes the goroutine; holds one
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	mu       sync.Mutex
	state    *persistent.Group
	sessions map[*session]struct{}
	replay   *replayRequest // asked for, not begun
	ended    error          // what new consumers are told, once the group takes none
	keep     bool           // write down how far it is before it ends
}

// session is a consumer's call.
type session struct {
	consumer *persistent.Consumer
	wake     chan struct{} // there may be something to take; holds one
	dropped  chan struct{} // closed when the group is done with the consumer
	cause    error         // why; set before dropped is closed
	about    consumerInfo
}

// consumerInfo is what GetInfo tells of a consumer.
type consumerInfo struct{ from, user, connection string }

// replayRequest asks for parked messages up to a revision, exclusive.
type replayRequest struct{ stop persistent.Position }

// startGroup lets a group run from its checkpoint on.
func startGroup(ctx context.Context, st *store, logger *slog.Logger, e groupEntry) *group {
	g := &group{
		store: st, logger: logger.With("group", e.name().id()), name: e.name(), entry: e,
		kick: make(chan struct{}, 1), done: make(chan struct{}), sessions: map[*session]struct{}{},
	}
	ctx, g.cancel = context.WithCancel(ctx)
	after, known, err := g.loadCheckpoint(ctx)
	if err == nil {
		g.filter, err = e.filter()
	}
	g.state = persistent.New(time.Now(), e.settings(), after, known)
	if err != nil {
		g.fail(err)
		close(g.done)
		return g
	}
	go g.run(ctx)
	return g
}

// loadCheckpoint reads behind which position the group goes on, and whether
// that is a checkpoint.
func (g *group) loadCheckpoint(ctx context.Context) (persistent.Position, bool, error) {
	e, ok, err := g.store.lastVisible(ctx, g.name.checkpoints())
	if err != nil || !ok {
		return g.entry.StartAfter, false, err
	}
	var text string
	if err := json.Unmarshal(e.data, &text); err != nil {
		return 0, false, fmt.Errorf("read the checkpoint at %d: %w", e.position, err)
	}
	at, err := persistent.ParsePosition(text, g.name.wholeLog())
	if err != nil {
		return 0, false, fmt.Errorf("read the checkpoint at %d: %w", e.position, err)
	}
	return at, true, nil
}

// connect adds a consumer.
func (g *group) connect(capacity int, about consumerInfo) (*session, error) {
	s := &session{wake: make(chan struct{}, 1), dropped: make(chan struct{}), about: about}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended != nil {
		return nil, g.ended
	}
	var err error
	s.consumer, err = g.state.Connect(time.Now(), capacity, func() { signal(s.wake) })
	if errors.Is(err, persistent.ErrMaximumSubscribers) {
		return nil, errGroupFull
	}
	g.sessions[s] = struct{}{}
	signal(g.kick)
	return s, err
}

// signal wakes who waits at a channel that holds one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// disconnect takes a consumer out, if the group has not dropped it already.
func (g *group) disconnect(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.sessions[s]; ok {
		delete(g.sessions, s)
		g.state.Disconnect(time.Now(), s.consumer)
		signal(g.kick)
	}
}

// take gives the consumer's next event.
func (g *group) take(s *session) (persistent.Delivery, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Take(s.consumer)
}

func (g *group) ack(s *session, ids []uuid.UUID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.Ack(time.Now(), s.consumer, ids)
	signal(g.kick)
}

func (g *group) nack(s *session, action persistent.Action, reason string, ids []uuid.UUID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.Nack(time.Now(), s.consumer, action, reason, ids)
	if action == persistent.Stop {
		g.dropAll(errGroupDropped)
	}
	signal(g.kick)
}

// dropAll ends the calls of all consumers. The caller holds the lock.
func (g *group) dropAll(cause error) {
	for s := range g.sessions {
		delete(g.sessions, s)
		g.state.Disconnect(time.Now(), s.consumer)
		s.cause = cause
		close(s.dropped)
	}
}

// replayParked asks for parked messages to be delivered again.
func (g *group) replayParked(stop persistent.Position) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended != nil {
		return g.ended
	}
	if g.replay == nil || g.replay.stop < stop {
		g.replay = &replayRequest{stop: stop}
	}
	signal(g.kick)
	return nil
}

// fail ends the group with an error of the store, until it is started again.
func (g *group) fail(err error) {
	g.logger.Error("a persistent subscription can't go on", "error", err)
	cause := err
	if !errors.Is(err, errFailed) && !errors.Is(err, errStopping) {
		cause = groupFailure{err.Error()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = cause
	g.dropAll(cause)
}

// end drops all consumers and waits until the goroutine has ended. With keep, it
// writes down first how far the group is.
func (g *group) end(keep bool) {
	g.mu.Lock()
	if g.ended == nil {
		g.ended, g.keep = errGroupDropped, keep
		g.dropAll(errGroupDropped)
	}
	g.mu.Unlock()
	g.cancel()
	select {
	case <-g.done:
	case <-g.store.failed():
		// What it does with the files of a failed store may never come back.
		late := time.NewTimer(lastWrites)
		defer late.Stop()
		select {
		case <-g.done:
		case <-late.C:
		}
	}
}
