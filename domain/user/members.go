package user

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// AddMember is `addProjectMember`: somebody who is in a project by no role yet.
func (h *Handler) AddMember(ctx context.Context, cmd es.Command, id uuid.UUID, as Grant) (es.Result[Refs], error) {
	return h.changeRole(ctx, cmd, id, inProject(as.Project), ofProject(as, func(s State) ([]es.Event, error) {
		held := s.rolesIn(as.Project)
		switch {
		case s.Holds(as):
			return nil, nil
		case len(held) > 0:
			return nil, fault.New(fault.State, fault.CodeInvalidState,
				"This person is in the project already, by another role; change the role instead.").At("userId")
		}
		return []es.Event{RoleGranted(as)}, nil
	}))
}

// ChangeMember is `changeProjectRole`: the one role that a member has from then on.
func (h *Handler) ChangeMember(ctx context.Context, cmd es.Command, id uuid.UUID, to Grant) (es.Result[Refs], error) {
	return h.changeRole(ctx, cmd, id, inProject(to.Project), ofProject(to, func(s State) ([]es.Event, error) {
		held := s.rolesIn(to.Project)
		if len(held) == 0 {
			return nil, fault.New(fault.State, fault.CodeInvalidState, "This person is not in the project; add them first.").At("userId")
		}
		var events []es.Event
		if !s.Holds(to) {
			events = append(events, RoleGranted(to))
		}
		for _, g := range held {
			if g != to {
				events = append(events, RoleRevoked(g))
			}
		}
		return events, nil
	}))
}

// RemoveMember is `removeProjectMember`: every role in the project goes.
func (h *Handler) RemoveMember(ctx context.Context, cmd es.Command, id, project uuid.UUID) (es.Result[Refs], error) {
	return h.changeRole(ctx, cmd, id, inProject(project), onKnown(func(s State) ([]es.Event, error) {
		var events []es.Event
		for _, g := range s.rolesIn(project) {
			events = append(events, RoleRevoked(g))
		}
		return events, nil
	}))
}

// inProject is what the rights to change members go by: they are the same for
// both roles.
func inProject(project uuid.UUID) Grant { return Grant{Role: access.Member, Project: project} }

// ofProject refuses roles that are held in no project.
func ofProject(g Grant, decide es.Decide[State]) es.Decide[State] {
	return onKnown(func(s State) ([]es.Event, error) {
		if !g.Role.OfProject() {
			return nil, notOfProject()
		}
		return decide(s)
	})
}

func notOfProject() *fault.Fault {
	return fault.New(fault.Invalid, fault.CodeInvalidValue, "Members of a project are MEMBER or PROJECT_ADMIN; choose one of them.").At("role")
}

// rolesIn are the roles that the user holds in a project.
func (s State) rolesIn(project uuid.UUID) (held []Grant) {
	for _, g := range s.Roles {
		if g.Role.OfProject() && g.Project == project {
			held = append(held, g)
		}
	}
	return held
}
