package model

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/es"
)

// OwnershipTransferred gives a model with all its versions to somebody else. Its
// files stay where they are.
type OwnershipTransferred struct {
	From uuid.UUID `json:"from"`
	To   uuid.UUID `json:"to"`
}

// Changes implements es.Event.
func (e OwnershipTransferred) Changes() []es.Change {
	return []es.Change{es.Moved("owner", e.From, e.To)}
}

// Transfer gives a model to another owner. Who may do that is for the command to
// say that moves all that somebody owns.
func (h *Handler) Transfer(ctx context.Context, cmd es.Command, id, from, to uuid.UUID) (bool, error) {
	out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, func(s State) ([]es.Event, error) {
		if !s.Exists() || s.Owner != from {
			return nil, nil
		}
		return []es.Event{OwnershipTransferred{From: from, To: to}}, nil
	})
	return out.Changed, err
}
