package people

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

// member is a command on a person in a project.
type member struct {
	key               graphql.Omittable[*string]
	reason            string
	projectID, userID string
	do                func(ctx context.Context, cmd es.Command, id, project uuid.UUID) (es.Result[user.Refs], error)
}

// membership is what it left behind.
type membership struct {
	command.Answered[*gqlmodel.User]
	project *gqlmodel.Project
}

func (a *API) onMember(ctx context.Context, m member) (out membership, err error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return out, err
	}
	var faults fault.List
	project := relay.Optional(relay.Project, &m.projectID, &faults, "projectId")
	id := relay.Optional(relay.User, &m.userID, &faults, "userId")
	out.Answered, err = command.Carry(ctx, a.Commands, a.Runtime, reasoned(m.key, m.reason), faults,
		func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
			return m.do(ctx, cmd, id, project)
		},
		func(ctx context.Context, res es.Result[user.Refs]) (u *gqlmodel.User, err error) {
			if out.project, err = a.projectAt(ctx, v.Tenant, project, res.Position); err != nil {
				return nil, err
			}
			return a.userAt(ctx, v.Tenant, res.Refs.User, res.Position)
		})
	return out, err
}

// AddProjectMember is addProjectMember.
func (a *API) AddProjectMember(ctx context.Context, in gqlmodel.AddProjectMemberInput) (*gqlmodel.AddProjectMemberPayload, error) {
	m, err := a.onMember(ctx, member{
		in.IdempotencyKey, in.Reason, in.ProjectID, in.UserID,
		func(ctx context.Context, cmd es.Command, id, project uuid.UUID) (es.Result[user.Refs], error) {
			return a.Users.AddMember(ctx, cmd, id, user.Grant{Role: access.Role(in.Role), Project: project})
		},
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.AddProjectMemberPayload{Project: m.project, User: m.Entity, UserErrors: m.UserErrors, Receipt: m.Receipt}, nil
}

// ChangeProjectRole is changeProjectRole.
func (a *API) ChangeProjectRole(ctx context.Context, in gqlmodel.ChangeProjectRoleInput) (*gqlmodel.ChangeProjectRolePayload, error) {
	m, err := a.onMember(ctx, member{
		in.IdempotencyKey, in.Reason, in.ProjectID, in.UserID,
		func(ctx context.Context, cmd es.Command, id, project uuid.UUID) (es.Result[user.Refs], error) {
			return a.Users.ChangeMember(ctx, cmd, id, user.Grant{Role: access.Role(in.Role), Project: project})
		},
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.ChangeProjectRolePayload{Project: m.project, User: m.Entity, UserErrors: m.UserErrors, Receipt: m.Receipt}, nil
}

// RemoveProjectMember is removeProjectMember.
func (a *API) RemoveProjectMember(ctx context.Context, in gqlmodel.RemoveProjectMemberInput) (*gqlmodel.RemoveProjectMemberPayload, error) {
	m, err := a.onMember(ctx, member{in.IdempotencyKey, in.Reason, in.ProjectID, in.UserID, a.Users.RemoveMember})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.RemoveProjectMemberPayload{Project: m.project, User: m.Entity, UserErrors: m.UserErrors, Receipt: m.Receipt}, nil
}
