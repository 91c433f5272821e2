package user

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// ErasePersonalData is `erasePersonalData` (AUD-06). The user is suspended, the
// login name freed, the person's key destroyed, the person's stream deleted,
// and that this was done is told last. Each step can be repeated: whoever asks
// again finishes what a crash cut off.
func (h *Handler) ErasePersonalData(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		if err := h.may(ctx, cmd, mustGovern); err != nil {
			return Refs{}, err
		}
		reason, err := cleanReason(cmd.Reason)
		if err != nil {
			return Refs{}, err
		}
		cmd.Reason = reason
		return Refs{User: id}, h.erase(ctx, cmd, id)
	})
}

func (h *Handler) erase(ctx context.Context, cmd es.Command, id uuid.UUID) error {
	s, err := h.Load(ctx, cmd.Tenant, id)
	if err != nil {
		return err
	}
	if !s.Exists() {
		return access.Missing()
	}
	if s.Status == Active || s.Status == SuspendedState {
		if err := h.change(ctx, step(cmd, "suspend", 1), id, suspend); err != nil {
			return err
		}
	}
	// From here on even when the user's stream says that it was done: a backup
	// of the keys may have brought the key back.
	if err := h.freeLogin(ctx, cmd, id, s.Person); err != nil {
		return err
	}
	if err := h.Keys.Destroy(ctx, cmd.Tenant, s.Person); err != nil {
		return err
	}
	err = h.Runtime.Log.Delete(ctx, persons.Stream(cmd.Tenant, s.Person).String(), es.Any())
	if err != nil && !errors.Is(err, es.ErrStreamNotFound) {
		return err
	}
	_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, erased)
	return err
}

// freeLogin gives the login name back while it can still be read. The user is
// suspended by now: whoever takes the name meanwhile is somebody else.
func (h *Handler) freeLogin(ctx context.Context, cmd es.Command, id, person uuid.UUID) error {
	p, err := h.Person(ctx, cmd.Tenant, person)
	if err != nil || p.Erased {
		return err
	}
	holder := Aggregate.Stream(cmd.Tenant, id)
	if p.Outside != (Outside{}) {
		if err := h.Runtime.Release(ctx, cmd, p.Outside.name(), holder); err != nil {
			return err
		}
	}
	return h.Runtime.Release(ctx, cmd, LoginName(p.LoginName), holder)
}
