package embedded

import (
	"context"
	"errors"
	"sync"
	"time"
)

// housekeepEvery is how often the store looks after itself.
const housekeepEvery = time.Second

// keep runs what the store does by itself until it closes.
func (s *store) keep() {
	defer close(s.kept)
	var all sync.WaitGroup
	all.Go(s.housekeep)
	all.Go(s.scavengeNowAndThen)
	all.Wait()
}

// housekeep notes where the log ends and watches the room on the disk, until
// the store closes. It has a goroutine of its own, so that no append waits for it.
func (s *store) housekeep() {
	tick := time.NewTicker(housekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.noteEnd()
			s.measureSpace()
		case <-s.done: // everything that was let in is committed
			s.noteEnd()
			return
		case <-s.failed():
			return
		}
	}
}

// noteEnd writes down how far the log is safe. That it can't is no reason to
// stop: what is lost by it is a check.
func (s *store) noteEnd() {
	if s.failure() != nil {
		return
	}
	if err := s.end.note(s.committed.Load()); err != nil {
		s.logger.Warn("the event store can't note where its log ends", "error", err)
	}
}

const (
	// scavengeSettle is how long after its start the store scavenges at the
	// earliest: whoever starts it has other things to do then.
	scavengeSettle = time.Minute
	// scavengeRetry is when a scavenge that failed is tried again.
	scavengeRetry = 10 * time.Minute
)

// scavengeNowAndThen scavenges once in every period, counted from the end of
// the last run, also over restarts.
func (s *store) scavengeNowAndThen() {
	if s.opt.scavengeEvery <= 0 {
		return
	}
	wait := scavengeSettle
	if state, err := readScavengeState(s.db); err == nil && !state.running && state.finished > 0 {
		due := time.Duration(state.finished-ticks(s.opt.clock()))*100 + s.opt.scavengeEvery
		wait = max(wait, min(due, s.opt.scavengeEvery)) // a clock that went back does not put it off for ever
	}
	wait = min(wait, s.opt.scavengeEvery)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.quit:
			return
		case <-s.failed():
			return
		}
		wait = s.opt.scavengeEvery
		if _, err := s.scavenge(context.Background(), nil); err != nil && !errors.Is(err, errStopping) && s.failure() == nil {
			s.logger.Warn("the event store could not be scavenged", "error", err)
			wait = min(wait, scavengeRetry)
		}
		timer.Reset(wait)
	}
}
