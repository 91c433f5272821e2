package persistent

import "time"

// writeBackoff is how long the group waits after a write of its owner failed.
const writeBackoff = time.Second

// mark is the group's checkpoint.
type mark struct {
	at      Position
	seq     uint64
	known   bool // it was written, by this group or an earlier one
	writing bool
	next    Position // being written
	nextSeq uint64
	written time.Time // when the last one was asked for
	earlier time.Time // no attempt before, after one that failed
}

// done is how far the source is finished: everything up to the position is
// acknowledged, skipped, parked or none of the group's.
func (g *Group) done() (Position, uint64) {
	if e := g.source.open.Front(); e != nil {
		m := e.Value.(*message)
		return m.before, m.seq - 1
	}
	return g.source.looked, g.source.seq
}

// Checkpoint tells where to write a checkpoint, if it is time for one; the
// owner answers with CheckpointWritten. final asks for whatever progress there
// is, for a group that is about to end.
func (g *Group) Checkpoint(now time.Time, final bool) (Position, bool) {
	at, seq := g.done()
	if g.mark.writing || !g.checkpointDue(now, seq-g.mark.seq, final) {
		return 0, false
	}
	g.mark.writing, g.mark.next, g.mark.nextSeq, g.mark.written = true, at, seq, now
	return at, true
}

func (g *Group) checkpointDue(now time.Time, finished uint64, final bool) bool {
	switch {
	case finished == 0:
		return false
	case final:
		return true
	case now.Before(g.mark.earlier):
		return false
	case finished >= uint64(atLeastOne(g.settings.MaxCheckpointCount)):
		return true
	default:
		return finished >= uint64(g.settings.MinCheckpointCount) && !now.Before(g.mark.written.Add(g.settings.checkpointAfter()))
	}
}

// CheckpointWritten tells what became of the checkpoint that was asked for.
func (g *Group) CheckpointWritten(now time.Time, ok bool) {
	m := &g.mark
	m.writing = false
	if !ok {
		m.earlier = now.Add(writeBackoff)
		return
	}
	m.at, m.seq, m.known = m.next, m.nextSeq, true
}

// LastCheckpoint is the last checkpoint that was written, if any was.
func (g *Group) LastCheckpoint() (Position, bool) { return g.mark.at, g.mark.known }

// NextCheck is when the group must be looked at again though nobody says
// anything: to expire a message, to write a checkpoint, or to try a write again.
func (g *Group) NextCheck(now time.Time) (at time.Time, ok bool) {
	sooner := func(t time.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	if e := g.inFlight.Front(); e != nil && !e.Value.(*message).deadline.IsZero() {
		sooner(e.Value.(*message).deadline)
	}
	_, seq := g.done()
	finished, most := seq-g.mark.seq, uint64(atLeastOne(g.settings.MaxCheckpointCount))
	if finished >= min(uint64(atLeastOne(g.settings.MinCheckpointCount)), most) && !g.mark.writing {
		t := g.mark.written.Add(g.settings.checkpointAfter())
		if finished >= most {
			t = now
		}
		if t.Before(g.mark.earlier) {
			t = g.mark.earlier
		}
		sooner(t)
	}
	if len(g.parking) > 0 {
		sooner(g.replay.parkAfter)
	}
	if g.truncateDue() {
		sooner(g.replay.truncateAfter)
	}
	return at, ok
}
