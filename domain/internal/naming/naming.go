// Package naming moves things from one reserved name to another.
package naming

import (
	"context"

	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Mover moves the reservations of one kind of things.
type Mover struct {
	Runtime *es.Runtime
	// Name makes the reservation of a value.
	Name func(value string) es.Name
	// Current reads the name that the thing of a stream bears in the log now;
	// empty when there is no such thing.
	Current func(context.Context, es.StreamID) (string, error)
	// Left gives the name that an event took from its thing, if it did.
	Left func(es.Event) (string, bool)
}

// To reserves a new name, lets execute append the change, and frees the name
// that the thing does not bear then: after a refusal the new one, otherwise the
// old one. What was left is read from the log, so a command that is finished
// after a crash frees it too. Where a crash is never followed by a repetition,
// or the end of execute is not known, processes/repair frees it by [Mover.Bearer].
func (m Mover) To(ctx context.Context, cmd es.Command, stream es.StreamID, name string, execute func() error) error {
	if err := m.Runtime.Reserve(ctx, cmd, m.Name(name), stream); err != nil {
		return err
	}
	if err := execute(); err != nil {
		if _, refused := fault.All(err); !refused {
			return err
		}
		if freed := m.free(ctx, cmd, stream, name); freed != nil {
			return freed
		}
		return err
	}
	for env, err := range es.Events(ctx, m.Runtime, stream, 0) {
		if err != nil {
			return err
		}
		left, ok := m.Left(env.Event)
		if !ok || env.Meta.Command != cmd.ID {
			continue
		}
		if err := m.Runtime.ReleaseLeft(ctx, cmd, m.Name(left), stream, env.Position); err != nil {
			return err
		}
	}
	return nil
}

// free gives up what a refused command reserved, unless the thing bears it.
func (m Mover) free(ctx context.Context, cmd es.Command, stream es.StreamID, name string) error {
	current, err := m.Current(ctx, stream)
	if err != nil || current == name {
		return err
	}
	return m.Runtime.ReleaseOwn(ctx, cmd, m.Name(name), stream)
}

// Bearer tells the repair of names what things bear and what the events with
// these stored names took from them.
func (m Mover) Bearer(events ...string) es.Bearer {
	b := es.Bearer{
		Bears: func(ctx context.Context, holder es.StreamID) (es.Name, bool, error) {
			name, err := m.Current(ctx, holder)
			return m.Name(name), name != "", err
		},
		Left: map[string]func(es.Envelope) (es.Name, bool){},
	}
	for _, name := range events {
		b.Left[name] = func(env es.Envelope) (es.Name, bool) {
			left, ok := m.Left(env.Event)
			return m.Name(left), ok
		}
	}
	return b
}
