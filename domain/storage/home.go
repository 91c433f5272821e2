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
	return h.ensure(ctx, part(cmd, "home"), homeName(user), SpaceCreated{Kind: Personal, Owner: user, Zone: DefaultZone})
}

// Shared finds the space that the members of a project share, or with the nil
// project everybody of the tenant, or makes it. It is the system's to ask for.
func (h *Handler) Shared(ctx context.Context, cmd es.Command, project uuid.UUID) (uuid.UUID, error) {
	made := SpaceCreated{Kind: OfTenant, Zone: DefaultZone}
	if project != uuid.Nil {
		made = SpaceCreated{Kind: OfProject, Project: project, Zone: DefaultZone}
		cmd.Project = project
	}
	return h.ensure(ctx, part(cmd, "shared"), sharedName(project), made)
}

func (h *Handler) ensure(ctx context.Context, cmd es.Command, name es.Name, made SpaceCreated) (uuid.UUID, error) {
	id, err := h.named(ctx, cmd, name)
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
	if _, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, create(made)); err != nil {
		return uuid.Nil, err
	}
	// A reservation that had lain about for long may have been taken back by
	// the repair in between; whoever has the name now has the space.
	return h.reserve(ctx, cmd, name, id)
}

// FindHome gives a user's personal space, and false when there is none yet.
func (h *Handler) FindHome(ctx context.Context, tenant, user uuid.UUID) (uuid.UUID, bool, error) {
	return h.find(ctx, tenant, homeName(user))
}

// FindShared gives the space of a project, or with the nil project that of the
// tenant, and false when there is none yet.
func (h *Handler) FindShared(ctx context.Context, tenant, project uuid.UUID) (uuid.UUID, bool, error) {
	return h.find(ctx, tenant, sharedName(project))
}

func (h *Handler) find(ctx context.Context, tenant uuid.UUID, name es.Name) (uuid.UUID, bool, error) {
	holder, taken, err := h.Runtime.Holder(ctx, tenant, name)
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

func sharedName(project uuid.UUID) es.Name {
	return es.Name{Kind: "sharedSpace", Project: project, Value: DefaultZone}
}

// named gives the id that the name holds, or takes the name for a new one.
func (h *Handler) named(ctx context.Context, cmd es.Command, name es.Name) (uuid.UUID, error) {
	holder, taken, err := h.Runtime.Holder(ctx, cmd.Tenant, name)
	if err != nil {
		return uuid.Nil, err
	}
	if taken {
		return holder.UUID()
	}
	return h.reserve(ctx, cmd, name, h.Runtime.IDs.New())
}

// reserve takes the name for an id and gives the id that has it in the end.
func (h *Handler) reserve(ctx context.Context, cmd es.Command, name es.Name, id uuid.UUID) (uuid.UUID, error) {
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
