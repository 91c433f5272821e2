// Package naming moves a thing from one reserved name to another.
package naming

import (
	"context"

	"tallyard/domain/es"
)

// Mover moves the reservations of one thing.
type Mover struct {
	Runtime *es.Runtime
	Stream  es.StreamID
	// Name makes the reservation of a value.
	Name func(value string) es.Name
	// Current reads the name that the thing bears in the log now.
	Current func(context.Context) (string, error)
	// Left gives the name that an event took from the thing, if it did.
	Left func(es.Event) (string, bool)
}

// To reserves a new name, lets execute append the change, and frees whichever
// name the thing does not bear then: after a refusal the new one, otherwise
// the old one. What was left is read from the log, so a command that is
// finished after a crash frees it too. A crash that is never followed by a
// repetition leaves a name taken; it never leaves a thing without its name.
func (m Mover) To(ctx context.Context, cmd es.Command, name string, execute func() error) error {
	if err := m.Runtime.Reserve(ctx, cmd, m.Name(name), m.Stream); err != nil {
		return err
	}
	err := execute()
	current, loadErr := m.Current(ctx)
	if loadErr != nil {
		return loadErr
	}
	unused := []string{name}
	for env, readErr := range es.Events(ctx, m.Runtime, m.Stream, 0) {
		if readErr != nil {
			return readErr
		}
		if left, ok := m.Left(env.Event); ok && env.Meta.Command == cmd.ID {
			unused = append(unused, left)
		}
	}
	for _, n := range unused {
		if n == current {
			continue
		}
		if err := m.Runtime.Release(ctx, cmd, m.Name(n), m.Stream); err != nil {
			return err
		}
	}
	return err
}
