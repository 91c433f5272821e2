package driver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tallyard/domain/es"
)

// mark is how far a process is, in memory and in the log.
//
// Keeping a checkpoint is an event itself. So that an idle log stays idle, it
// is kept for events that are not checkpoints only: following the log to its
// end never makes another event to follow.
type mark struct {
	d       *Driver
	kept    es.Position // the checkpoint in the log
	last    es.Envelope // the last event dealt with; id and position only
	open    int         // events dealt with behind kept
	since   time.Time   // when the first of those was
	looked  es.Position // the log was looked at up to here
	idle    time.Time   // when the log was last followed without events
	lookFor int
}

func newMark(d *Driver, from es.Position) *mark {
	return &mark{d: d, kept: from, looked: from, idle: time.Now(), lookFor: 512}
}

// dealt notes an event.
func (m *mark) dealt(ctx context.Context, rec es.Recorded) error {
	m.last = es.Envelope{ID: rec.ID, Position: rec.Position}
	m.looked = max(m.looked, rec.Position)
	if m.open == 0 {
		m.since = time.Now()
	}
	m.open++
	if m.open >= checkpointEvery {
		return m.keep(ctx)
	}
	return nil
}

// passed notes that nothing up to a position was for the process.
func (m *mark) passed(p es.Position) { m.looked = max(m.looked, p) }

// tick keeps what is due.
func (m *mark) tick(ctx context.Context) error {
	switch {
	case m.open > 0 && time.Since(m.since) >= checkpointAfter:
		return m.keep(ctx)
	case m.open == 0 && m.looked > m.kept && time.Since(m.idle) >= idleAfter:
		m.idle = time.Now()
		return m.followIdle(ctx)
	}
	return nil
}

func (m *mark) keep(ctx context.Context) error {
	if err := es.AdvanceProcess(ctx, m.d.rt, m.d.process.Name, m.last); err != nil {
		return fmt.Errorf("keep the checkpoint: %w", err)
	}
	m.kept, m.open = m.last.Position, 0
	return nil
}

// followIdle moves the checkpoint to the last event that was looked at and is
// no checkpoint of a process.
func (m *mark) followIdle(ctx context.Context) error {
	for rec, err := range m.d.rt.Log.ReadAll(ctx, m.looked+1, es.Backward, m.lookFor) {
		if err != nil {
			return fmt.Errorf("look for the end of the log: %w", err)
		}
		if rec.Position <= m.kept {
			return nil
		}
		if strings.HasPrefix(rec.Type, es.ProcessCategory+".") {
			continue
		}
		m.last = es.Envelope{ID: rec.ID, Position: rec.Position}
		return m.keep(ctx)
	}
	return nil
}

// keepAtEnd keeps the checkpoint when the driver ends; failing only costs that
// events are handed out again, which processes bear.
func (m *mark) keepAtEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkpointAfter)
	defer cancel()
	var err error
	switch {
	case m.open > 0:
		err = m.keep(ctx)
	case m.looked > m.kept:
		err = m.followIdle(ctx)
	}
	if err != nil {
		m.d.logger.WarnContext(ctx, "checkpoint not kept at the end", "error", err)
	}
}
