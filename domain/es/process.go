package es

import (
	"context"

	"github.com/google/uuid"
)

// Process reacts to events with commands. It is pure where it decides and runs
// only on the worker leader, never in a rebuild. An event may be handed to it
// again after a crash: what it causes must go by [Caused].
type Process struct {
	// Name is stable: the process's checkpoint and its commands' ids hang on it.
	Name string
	// On maps stored event names to what is done about them.
	On map[string]func(ctx context.Context, env Envelope) error
}

// ProcessAdvanced is a process's checkpoint: the last event that it is done
// with. The position is a hint for this store; the event id is what counts,
// since copying a log into another store changes positions.
type ProcessAdvanced struct {
	Event    uuid.UUID `json:"event"`
	Position Position  `json:"position,string"`
}

// Changes implements Event.
func (ProcessAdvanced) Changes() []Change { return nil }

// ProcessCategory is the category of the streams of processes' checkpoints.
const ProcessCategory = "process"

// ProcessStream is the stream of a process's checkpoints.
func ProcessStream(name string) StreamID {
	return StreamOf(ProcessCategory, PlatformTenant, uuid.NewSHA1(processSpace, []byte(name)))
}

// ProcessCheckpoint gives where a process is to go on: behind the event it was
// last done with, or at the start when that event is not where the checkpoint
// says (the log was copied from another store).
func ProcessCheckpoint(ctx context.Context, rt *Runtime, name string) (Position, error) {
	for rec, err := range rt.Log.ReadStream(ctx, ProcessStream(name).String(), NoRevision, Backward, 1) {
		if err != nil {
			return StartPosition, ignoreMissing(err)
		}
		env, err := rt.Registry.Decode(rec)
		if err != nil {
			return StartPosition, err
		}
		at, ok := env.Event.(ProcessAdvanced)
		if !ok || at.Position == StartPosition {
			return StartPosition, nil
		}
		for there, err := range rt.Log.ReadAll(ctx, at.Position-1, Forward, 1) {
			if err != nil {
				return StartPosition, err
			}
			if there.ID == at.Event && there.Position == at.Position {
				return at.Position, nil
			}
		}
		return StartPosition, nil
	}
	return StartPosition, nil
}

// boundEvery is how many checkpoints lie between two times that the stream of
// checkpoints is bounded.
const boundEvery = 256

// AdvanceProcess stores a process's checkpoint and keeps the stream short.
func AdvanceProcess(ctx context.Context, rt *Runtime, name string, done Envelope) error {
	stream := ProcessStream(name)
	cmd := System(rt.IDs.New(), name, "advance", PlatformTenant)
	w, _, err := rt.append(ctx, cmd, stream, Any(), []Event{ProcessAdvanced{Event: done.ID, Position: done.Position}})
	// Not only once: a crash may fall between the first checkpoint and the bound.
	if err == nil && w.Revision%boundEvery == 0 {
		err = rt.Log.KeepLast(ctx, stream.String(), 2)
	}
	return err
}
