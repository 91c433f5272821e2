package es

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/fault"
)

// maxAttempts bounds how often a command is decided again after losing a race.
const maxAttempts = 5

// Outcome is what a command left behind on one aggregate.
type Outcome[S any] struct {
	State    S
	Revision Revision
	Position Position
	// Changed is false when there was nothing to do; no event was written then.
	Changed bool
}

// Decide is the pure core of a command: the state as it stands → the events
// that follow, or the fault that refuses it. No events mean nothing changes.
type Decide[S any] func(S) ([]Event, error)

// Execute carries out a command on one aggregate: load, decide, append with
// the revision that was read. When somebody else was faster it decides again
// on what is there now, at most five times, then it is a CONFLICT. A command
// that was carried out already, before a crash, is recognised by its id.
func Execute[S any](ctx context.Context, rt *Runtime, cmd Command, a Aggregate[S], id uuid.UUID, decide Decide[S]) (Outcome[S], error) {
	stream := a.Stream(cmd.Tenant, id)
	unlock, err := rt.locks.lock(ctx, stream.String())
	if err != nil {
		return Outcome[S]{}, err
	}
	defer unlock()

	resumed := cmd.resumed
	for attempt := range maxAttempts {
		if attempt > 0 {
			if err := jitter(ctx, attempt); err != nil {
				return Outcome[S]{}, err
			}
		}
		out, err := attemptOnce(ctx, rt, cmd, a, id, resumed, decide)
		if !errors.Is(err, ErrWrongRevision) {
			return out, err
		}
		// The append may have been ours, its answer lost: look for it.
		resumed = true
	}
	return Outcome[S]{}, fault.New(fault.Conflict, fault.CodeConflict,
		"Others are changing this at the same moment; nothing was done, try again.")
}

func attemptOnce[S any](ctx context.Context, rt *Runtime, cmd Command, a Aggregate[S], id uuid.UUID, resumed bool, decide Decide[S]) (Outcome[S], error) {
	stream := a.Stream(cmd.Tenant, id)
	look := uuid.Nil
	if resumed {
		look = cmd.ID
	}
	l, err := load(ctx, rt, a, stream, look)
	if err != nil {
		return Outcome[S]{}, err
	}
	if l.seen != nil {
		return found(cmd, l), nil
	}
	events, err := decide(l.State)
	if look == uuid.Nil && cmd.Key != "" && (err != nil || len(events) == 0) {
		// With a key the same command may have been finished by another process
		// that took this one for dead: what is refused now may be its own work.
		out, done, lookErr := Carried(ctx, rt, cmd.again(), a, id)
		if lookErr != nil || done {
			return out, lookErr
		}
	}
	if err != nil {
		return Outcome[S]{State: l.State, Revision: l.Revision, Position: l.Position}, err
	}
	if len(events) == 0 {
		cmd.reached(l.Position)
		return Outcome[S]{State: l.State, Revision: l.Revision, Position: l.Position}, nil
	}
	written, envelopes, err := rt.append(ctx, cmd, stream, At(l.Revision), events)
	if err != nil {
		return Outcome[S]{}, err
	}
	for _, env := range envelopes {
		l.apply(a, env)
	}
	l.Position = written.Position
	keep(ctx, rt, a, stream, l)
	return Outcome[S]{State: l.State, Revision: l.Revision, Position: l.Position, Changed: true}, nil
}

// Carried tells whether a command left its events on an aggregate before: a
// handler that gathers facts asks it first, since facts that let the command
// through the first time may be gone now. It only looks when the command was
// begun before, so that it costs nothing otherwise.
func Carried[S any](ctx context.Context, rt *Runtime, cmd Command, a Aggregate[S], id uuid.UUID) (Outcome[S], bool, error) {
	if !cmd.resumed {
		return Outcome[S]{}, false, nil
	}
	l, err := load(ctx, rt, a, a.Stream(cmd.Tenant, id), cmd.ID)
	if err != nil || l.seen == nil {
		return Outcome[S]{}, false, err
	}
	return found(cmd, l), true, nil
}

// found is the outcome of a command whose events are in the stream already.
func found[S any](cmd Command, l Loaded[S]) Outcome[S] {
	last := l.seen[len(l.seen)-1]
	cmd.wrote(l.seen)
	cmd.reached(last.Position)
	return Outcome[S]{State: l.State, Revision: last.Revision, Position: last.Position, Changed: true}
}

// append encodes and writes a command's events to one stream and returns them
// as a reader of the log would see them.
func (rt *Runtime) append(ctx context.Context, cmd Command, stream StreamID, expected Expected, events []Event) (Written, []Envelope, error) {
	now := rt.Now()
	raws := make([]Raw, len(events))
	envelopes := make([]Envelope, len(events))
	for i, e := range events {
		meta := cmd.metadata(now, i)
		raw, err := rt.Registry.Encode(e, meta)
		if err != nil {
			return Written{}, nil, err
		}
		raw.ID = cmd.eventID(stream, raw.Type, i)
		raws[i] = raw
		envelopes[i] = Envelope{ID: raw.ID, Name: raw.Type, Stream: stream, Meta: meta, Event: e}
	}
	written, err := rt.Log.Append(ctx, stream.String(), expected, raws...)
	if err != nil {
		return Written{}, nil, fmt.Errorf("append to %s: %w", stream, err)
	}
	first := written.Revision - Revision(len(events)) + 1
	for i := range envelopes {
		envelopes[i].Revision = first + Revision(i)
		envelopes[i].Position = written.Position
	}
	cmd.wrote(envelopes)
	cmd.reached(written.Position)
	return written, envelopes, nil
}

// wrote notes the names of the command's events.
func (c Command) wrote(envelopes []Envelope) {
	if c.track == nil {
		return
	}
	for _, e := range envelopes {
		c.track.names = append(c.track.names, e.Name)
	}
}

// reached notes how far in the log the command's effects lie.
func (c Command) reached(p Position) {
	if c.track != nil && p > c.track.position {
		c.track.position = p
	}
}
