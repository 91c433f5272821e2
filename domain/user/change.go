package user

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// maxChanges bounds how often a change is begun anew because the user changed
// between the count of the admins and the change itself.
const maxChanges = 5

// errMoved says that the user changed between the count and the change.
var errMoved = errors.New("the user changed in between")

// change carries out a decision on a user and keeps the count of admins: who
// stops being one is discounted first, which refuses the last one; who becomes
// one is counted afterwards.
func (h *Handler) change(ctx context.Context, cmd es.Command, id uuid.UUID, decide es.Decide[State]) error {
	for n := range maxChanges {
		err := h.changeOnce(ctx, cmd, n, id, decide)
		if !errors.Is(err, errMoved) {
			return err
		}
	}
	return fault.New(fault.Conflict, fault.CodeConflict,
		"Others are changing this user at the same moment; nothing was done, try again.")
}

func (h *Handler) changeOnce(ctx context.Context, cmd es.Command, n int, id uuid.UUID, decide es.Decide[State]) error {
	before, err := h.Load(ctx, cmd.Tenant, id)
	if err != nil {
		return err
	}
	events, err := decide(before)
	if err != nil {
		return err
	}
	discounted := false
	if before.governs() && !before.apply(events).governs() {
		out, err := es.Execute(ctx, h.Runtime, step(cmd, "discount", n), admins, cmd.Tenant, discount(id, before.Version))
		if err != nil {
			return err
		}
		// Finished after a crash, the earlier attempt may rest on an older user.
		if out.State[id] != (counted{In: false, Seen: before.Version}) {
			return errMoved
		}
		discounted = true
	}
	out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, func(s State) ([]es.Event, error) {
		events, err := decide(s)
		if err != nil {
			return nil, err
		}
		if s.governs() && !s.apply(events).governs() && !(discounted && s.Version == before.Version) {
			return nil, errMoved
		}
		return events, nil
	})
	if err != nil {
		return err
	}
	if out.State.governs() {
		// Also when nothing changed: an earlier command may have died before its count.
		_, err = es.Execute(ctx, h.Runtime, cmd, admins, cmd.Tenant, count(id, out.State.Version))
	}
	return err
}
