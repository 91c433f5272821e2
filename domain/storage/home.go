package storage

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Home finds a user's personal space, or makes it. The caller has made sure
// that the command is the user's own or the system's.
//
// The name comes first, so that two requests at once make one space. When the
// one that took the name died before it made the space, the next one makes it
// under the id that the name holds.
func (h *Handler) Home(ctx context.Context, cmd es.Command, user uuid.UUID) (uuid.UUID, error) {
	cmd = part(cmd, "home")
	name := homeName(user)
	id, err := h.namedHome(ctx, cmd, name)
	if err != nil {
		return uuid.Nil, err
	}
	s, err := h.Load(ctx, cmd.Tenant, id)
	if err != nil {
		return uuid.Nil, err
	}
	if s.Exists() {
		return id, nil
	}
	made := SpaceCreated{Kind: Personal, Owner: user, Zone: DefaultZone}
	if _, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, create(made)); err != nil {
		return uuid.Nil, err
	}
	// A reservation that had lain about for long may have been taken back by
	// the repair in between; whoever has the name now has the home.
	return h.reserveHome(ctx, cmd, name, id)
}

// FindHome gives a user's personal space, and false when there is none yet.
func (h *Handler) FindHome(ctx context.Context, tenant, user uuid.UUID) (uuid.UUID, bool, error) {
	holder, taken, err := h.Runtime.Holder(ctx, tenant, homeName(user))
	if err != nil || !taken {
		return uuid.Nil, false, err
	}
	id, err := holder.UUID()
	if err != nil {
		return uuid.Nil, false, err
	}
	s, err := h.Load(ctx, tenant, id)
	return id, s.Exists(), err
}

func homeName(user uuid.UUID) es.Name {
	return es.Name{Kind: "home", Value: user.String() + "/" + DefaultZone}
}

// namedHome gives the id that the name holds, or takes the name for a new one.
func (h *Handler) namedHome(ctx context.Context, cmd es.Command, name es.Name) (uuid.UUID, error) {
	holder, taken, err := h.Runtime.Holder(ctx, cmd.Tenant, name)
	if err != nil {
		return uuid.Nil, err
	}
	if taken {
		return holder.UUID()
	}
	return h.reserveHome(ctx, cmd, name, h.Runtime.IDs.New())
}

// reserveHome takes the name for an id and gives the id that has it in the end.
func (h *Handler) reserveHome(ctx context.Context, cmd es.Command, name es.Name, id uuid.UUID) (uuid.UUID, error) {
	err := h.Runtime.Reserve(ctx, cmd, name, Aggregate.Stream(cmd.Tenant, id))
	if !fault.Is(err, fault.CodeNameTaken) {
		return id, err
	}
	holder, taken, err := h.Runtime.Holder(ctx, cmd.Tenant, name)
	switch {
	case err != nil:
		return uuid.Nil, err
	case !taken:
		return uuid.Nil, fault.New(fault.Conflict, fault.CodeConflict, "Others are making this space at the same moment; try again.")
	}
	return holder.UUID()
}
