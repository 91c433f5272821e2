package image

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/es"
)

// OwnershipTransferred gives an image to somebody else.
type OwnershipTransferred struct {
	From uuid.UUID `json:"from"`
	To   uuid.UUID `json:"to"`
}

// Changes implements es.Event.
func (e OwnershipTransferred) Changes() []es.Change {
	return []es.Change{es.Moved("owner", e.From, e.To)}
}

// Transfer gives an image to another owner (TEN-05). Who may do that is for the
// command to say that moves all that somebody owns.
func (h *Handler) Transfer(ctx context.Context, cmd es.Command, id, from, to uuid.UUID) (bool, error) {
	out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, transfer(from, to))
	return out.Changed, err
}

func transfer(from, to uuid.UUID) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if !s.Exists() || s.Owner != from {
			return nil, nil
		}
		return []es.Event{OwnershipTransferred{From: from, To: to}}, nil
	}
}
