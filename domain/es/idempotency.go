package es

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/fault"
)

// CommandAccepted opens a command that came with an idempotency key.
type CommandAccepted struct {
	ID     uuid.UUID   `json:"id"`     // the command's id
	Digest []byte      `json:"digest"` // of the input, so that the key can't be used for another
	IDs    []uuid.UUID `json:"ids"`    // of the things it makes
}

// Changes implements Event.
func (CommandAccepted) Changes() []Change { return nil }

// CommandCompleted closes a command that came with an idempotency key. It has
// what is needed to give the same answer again: references, no contents.
type CommandCompleted struct {
	Refs     json.RawMessage `json:"refs,omitempty"`
	Position Position        `json:"position,string"` // a hint for read-your-writes, void after a copy of the log
	Events   []string        `json:"events,omitempty"`
	Faults   []StoredFault   `json:"faults,omitempty"`
}

// Changes implements Event.
func (CommandCompleted) Changes() []Change { return nil }

// StoredFault is a refusal as it is kept. Messages never hold personal data or secrets.
type StoredFault struct {
	Kind    fault.Kind        `json:"kind"`
	Code    fault.Code        `json:"code"`
	Message string            `json:"message"`
	Field   []string          `json:"field,omitempty"`
	Details map[string]string `json:"details,omitempty"`
}

// CommandCategory is the category of the streams of idempotency keys.
const CommandCategory = "command"

// commandWait is how long a repeated command waits for the first to end
// elsewhere before it finishes the work itself.
const commandWait = 2 * time.Second

type commandState struct {
	Accepted  *CommandAccepted
	Completed *CommandCompleted
}

var commandAggregate = Aggregate[commandState]{
	Category: CommandCategory,
	Fold:     1,
	Evolve: func(s commandState, e Envelope) commandState {
		switch ev := e.Event.(type) {
		case CommandAccepted:
			s.Accepted = &ev
		case CommandCompleted:
			s.Completed = &ev
		}
		return s
	},
}

// keySpace is the name space of the streams of idempotency keys.
var keySpace = uuid.MustParse("0b1f6f0a-58c3-5f59-9f0e-61f7d3b0c9d2")

func (c Command) keyStream() StreamID {
	who := c.Actor.User.String() + "/" + c.Action + "/" + c.Key
	id := uuid.NewSHA1(keySpace, []byte(who))
	if c.item > 0 {
		// Apart from the key: whatever would be written into it, a client may have
		// chosen as a key of its own.
		id = uuid.NewSHA1(id, []byte(strconv.Itoa(c.item)))
	}
	return StreamOf(CommandCategory, c.Tenant, id)
}

// Result is what Run hands back: the references that the command made its
// answer from, and where its effects lie in the log.
type Result[R any] struct {
	Refs     R
	Command  uuid.UUID
	Position Position // StartPosition: nothing was written
	Events   []string // stored names of what was written, for read-your-writes
	Replayed bool
}

// Run carries out a command once per idempotency key. R holds references from
// which the answer is built; with the same key it comes back as it was the
// first time, also a refusal. Refusals are recorded before they are returned.
func Run[R any](ctx context.Context, rt *Runtime, cmd Command, f func(context.Context, Command) (R, error)) (Result[R], error) {
	cmd.track = &track{}
	if cmd.Key == "" {
		cmd.ids = drawIDs(rt)
		refs, err := f(ctx, cmd)
		rt.refused(ctx, cmd, err)
		return resultOf(cmd, refs), err
	}
	stream := cmd.keyStream()
	unlock, err := rt.locks.lock(ctx, stream.String())
	if err != nil {
		return Result[R]{}, err
	}
	defer unlock()
	s, first, err := accept(ctx, rt, cmd, stream)
	if err != nil {
		return Result[R]{}, err
	}
	if !bytes.Equal(s.Accepted.Digest, cmd.Digest) {
		err := fault.New(fault.Conflict, fault.CodeIdempotency,
			"This idempotency key was used with another input; use a new key.").At("idempotencyKey")
		rt.refused(ctx, cmd, err)
		return resultOf(cmd, *new(R)), err
	}
	if s.Completed != nil {
		return replay[R](s)
	}
	// What is left: a command that is new, or one that died half way.
	cmd.ID, cmd.ids, cmd.resumed = s.Accepted.ID, s.Accepted.IDs, !first
	refs, runErr := f(ctx, cmd)
	elsewhere, err := complete(ctx, rt, cmd, stream, refs, runErr)
	if err != nil {
		return Result[R]{}, err
	}
	if elsewhere.Completed != nil {
		return replay[R](elsewhere)
	}
	return resultOf(cmd, refs), runErr
}

func resultOf[R any](cmd Command, refs R) Result[R] {
	return Result[R]{Refs: refs, Command: cmd.ID, Position: cmd.track.position, Events: cmd.track.names}
}

// accept opens the command, or finds how far it came.
func accept(ctx context.Context, rt *Runtime, cmd Command, stream StreamID) (commandState, bool, error) {
	deadline := rt.Clock.Now().Add(commandWait)
	for attempt := 1; ; attempt++ {
		l, err := load(ctx, rt, commandAggregate, stream, uuid.Nil)
		if err != nil {
			return l.State, false, err
		}
		if !l.Exists() {
			ev := CommandAccepted{ID: cmd.ID, Digest: cmd.Digest, IDs: drawIDs(rt)}
			// The key's stream must not move the receipt: no read model waits for it.
			quiet := cmd
			quiet.track = nil
			_, _, err := rt.append(ctx, quiet, stream, NoStream(), []Event{ev})
			if err == nil {
				return commandState{Accepted: &ev}, true, nil
			}
			if !errors.Is(err, ErrWrongRevision) {
				return l.State, false, err
			}
		} else if l.State.Accepted == nil {
			return l.State, false, fmt.Errorf("stream %s does not begin with its acceptance", stream)
		} else if l.State.Completed != nil || rt.Clock.Now().After(deadline) || attempt > 60 {
			return l.State, false, nil
		}
		// Somebody is at it elsewhere, or was when their process died.
		if err := jitter(ctx, 6); err != nil {
			return commandState{}, false, err
		}
	}
}

// complete closes the command, unless its failure is one that a new attempt may
// mend. Who closed it first gives the answer for all: that one comes back.
func complete(ctx context.Context, rt *Runtime, cmd Command, stream StreamID, refs any, runErr error) (commandState, error) {
	done := CommandCompleted{}
	if runErr != nil {
		rt.refused(ctx, cmd, runErr)
		faults, ok := final(runErr)
		if !ok {
			return commandState{}, runErr
		}
		done.Faults = faults
	} else {
		b, err := json.Marshal(refs)
		if err != nil {
			return commandState{}, fmt.Errorf("references of %s: %w", cmd.Action, err)
		}
		done.Refs = b
	}
	done.Position, done.Events = cmd.track.position, cmd.track.names
	quiet := cmd
	// With an id of its own: the store would take another process's completion,
	// which may hold another answer, for a repetition of this one.
	quiet.track, quiet.run = nil, rt.IDs.New()
	_, _, err := rt.append(ctx, quiet, stream, At(0), []Event{done})
	if !errors.Is(err, ErrWrongRevision) {
		return commandState{}, err
	}
	l, err := load(ctx, rt, commandAggregate, stream, uuid.Nil)
	return l.State, err
}

// final tells whether an error is an answer that stays: a refusal, not a mishap.
func final(err error) ([]StoredFault, bool) {
	faults, ok := fault.All(err)
	if !ok {
		return nil, false
	}
	stored := make([]StoredFault, len(faults))
	for i, f := range faults {
		if f.Code == fault.CodeConflict || !recorded(f.Kind) {
			return nil, false
		}
		stored[i] = StoredFault{Kind: f.Kind, Code: f.Code, Message: f.Message, Field: f.Field, Details: f.Details}
	}
	return stored, true
}

func replay[R any](s commandState) (Result[R], error) {
	r := Result[R]{Command: s.Accepted.ID, Position: s.Completed.Position, Events: s.Completed.Events, Replayed: true}
	if len(s.Completed.Faults) > 0 {
		list := make(fault.List, len(s.Completed.Faults))
		for i, f := range s.Completed.Faults {
			list[i] = &fault.Fault{Kind: f.Kind, Code: f.Code, Message: f.Message, Field: f.Field, Details: f.Details}
		}
		return r, list
	}
	if err := json.Unmarshal(s.Completed.Refs, &r.Refs); err != nil {
		return r, fmt.Errorf("references of an earlier command: %w", err)
	}
	return r, nil
}

func drawIDs(rt *Runtime) []uuid.UUID {
	ids := make([]uuid.UUID, idsPerCommand)
	for i := range ids {
		ids[i] = rt.IDs.New()
	}
	return ids
}
