package embedded

import "time"

// housekeepEvery is how often the store looks after itself.
const housekeepEvery = time.Second

// housekeep notes where the log ends and watches the room on the disk, until
// the store closes. It has a goroutine of its own, so that no append waits for it.
func (s *store) housekeep() {
	defer close(s.kept)
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
