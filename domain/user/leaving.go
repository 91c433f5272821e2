package user

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Removed takes a user out of the tenant for good. What they are called stays in
// the history until it is erased (AUD-06).
type Removed struct {
	From Status `json:"from"`
}

// Changes implements es.Event.
func (e Removed) Changes() []es.Change { return []es.Change{es.Moved("state", e.From, RemovedState)} }

// Belonging is something that keeps a user from being removed.
type Belonging struct {
	Ref     es.Ref
	Project uuid.UUID
	Name    string // shown to people; ids where there is none
	// Running: it ends, or is ended; everything else is transferred.
	Running bool
}

// Belongings tells what users have, of every feature.
type Belongings interface {
	// Of gives what a user has by all that the log had when it was asked.
	Of(ctx context.Context, tenant, user uuid.UUID) ([]Belonging, error)
}

// maxTold is how many things a refusal names.
const maxTold = 50

// Remove is `removeUser` (TEN-05). Who owns anything, or has anything running,
// is not removed: the answer names it. The user is suspended before the last
// look, so that nothing comes while it is taken; who turns out to have something
// after all is reinstated.
func (h *Handler) Remove(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Result[Refs], error) {
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
		return Refs{User: id}, h.remove(ctx, cmd, id)
	})
}

func (h *Handler) remove(ctx context.Context, cmd es.Command, id uuid.UUID) error {
	s, err := h.Load(ctx, cmd.Tenant, id)
	if err != nil {
		return err
	}
	if _, err := remove(s); err != nil || s.Status == RemovedState {
		return err
	}
	if err := h.hasNothing(ctx, cmd.Tenant, id); err != nil {
		return err
	}
	if err := h.change(ctx, step(cmd, "suspend", 1), id, suspend); err != nil {
		return err
	}
	if err := h.hasNothing(ctx, cmd.Tenant, id); err != nil {
		if s.Status != Active {
			return err
		}
		if back := h.change(ctx, step(cmd, "reinstate", 1), id, reinstate); back != nil {
			return back
		}
		return err
	}
	return h.change(ctx, cmd, id, remove)
}

// remove is decided on whatever state the steps before left.
func remove(s State) ([]es.Event, error) {
	if s.Status == RemovedState {
		return nil, nil
	}
	return onKnown(func(s State) ([]es.Event, error) {
		return []es.Event{Removed{From: s.Status}}, nil
	})(s)
}

// hasNothing refuses while a user has anything, naming it.
func (h *Handler) hasNothing(ctx context.Context, tenant, id uuid.UUID) error {
	list, err := h.Belongings.Of(ctx, tenant, id)
	if err != nil {
		return err
	}
	var faults fault.List
	for i, b := range list {
		if i == maxTold {
			faults.Add(fault.New(fault.State, fault.CodeInUse,
				fmt.Sprintf("This person has %d more things; transfer what they own and end what runs.", len(list)-maxTold)).At("userId"))
			break
		}
		says := "This person still owns “" + b.Name + "”; transfer what they own first."
		if b.Running {
			says = "This person still has something running; let it end or cancel it first."
		}
		faults.Add(fault.New(fault.State, fault.CodeInUse, says).At("userId").
			With("kind", b.Ref.Kind).With("id", b.Ref.ID.String()).With("name", b.Name).With("running", strconv.FormatBool(b.Running)))
	}
	return faults.Err()
}
