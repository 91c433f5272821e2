package people

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/project"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

func options(key, reason graphql.Omittable[*string]) command.Options {
	return command.Options{Key: key.Value(), Reason: reason.Value()}
}

// reasoned are the options of a command that wants a reason.
func reasoned(key graphql.Omittable[*string], reason string) command.Options {
	return command.Options{Key: key.Value(), Reason: &reason, RequireReason: true}
}

// CreateProject is createProject.
func (a *API) CreateProject(ctx context.Context, in gqlmodel.CreateProjectInput) (*gqlmodel.CreateProjectPayload, error) {
	r, err := a.onProject(ctx, options(in.IdempotencyKey, in.Reason), nil, func(ctx context.Context, cmd es.Command) (es.Result[project.Refs], error) {
		return a.Projects.Create(ctx, cmd, project.Create{Name: in.Name, Description: gqlmodel.Deref(in.Description.Value())})
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.CreateProjectPayload{Project: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// onUser carries out a command on a person.
func (a *API) onUser(ctx context.Context, o command.Options, faults fault.List, do func(context.Context, es.Command) (es.Result[user.Refs], error)) (command.Answered[*gqlmodel.User], error) {
	return command.Carry(ctx, a.Commands, a.Runtime, o, faults, do,
		func(ctx context.Context, res es.Result[user.Refs]) (*gqlmodel.User, error) {
			v, err := authn.Must(ctx)
			if err != nil {
				return nil, err
			}
			return a.userAt(ctx, v.Tenant, res.Refs.User, res.Position)
		})
}

// CreateUser is createUser.
func (a *API) CreateUser(ctx context.Context, in gqlmodel.CreateUserInput) (*gqlmodel.CreateUserPayload, error) {
	r, err := a.onUser(ctx, options(in.IdempotencyKey, in.Reason), nil, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.Create(ctx, cmd, user.Person{LoginName: in.LoginName, DisplayName: in.DisplayName, Email: gqlmodel.Deref(in.Email.Value())})
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.CreateUserPayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// GrantRole is grantRole.
func (a *API) GrantRole(ctx context.Context, in gqlmodel.GrantRoleInput) (*gqlmodel.GrantRolePayload, error) {
	var faults fault.List
	id := relay.Optional(relay.User, &in.UserID, &faults, "userId")
	g := user.Grant{Role: access.Role(in.Role), Project: relay.Optional(relay.Project, in.ProjectID.Value(), &faults, "projectId")}
	r, err := a.onUser(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.GrantRole(ctx, cmd, id, g)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.GrantRolePayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// RevokeRole is revokeRole.
func (a *API) RevokeRole(ctx context.Context, in gqlmodel.RevokeRoleInput) (*gqlmodel.RevokeRolePayload, error) {
	var faults fault.List
	id := relay.Optional(relay.User, &in.UserID, &faults, "userId")
	g := user.Grant{Role: access.Role(in.Role), Project: relay.Optional(relay.Project, in.ProjectID.Value(), &faults, "projectId")}
	r, err := a.onUser(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.RevokeRole(ctx, cmd, id, g)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.RevokeRolePayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// SuspendUser is suspendUser.
func (a *API) SuspendUser(ctx context.Context, in gqlmodel.SuspendUserInput) (*gqlmodel.SuspendUserPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.User, &in.UserID, &faults, "userId")
	r, err := a.onUser(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.Suspend(ctx, cmd, id)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.SuspendUserPayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// ReinstateUser is reinstateUser.
func (a *API) ReinstateUser(ctx context.Context, in gqlmodel.ReinstateUserInput) (*gqlmodel.ReinstateUserPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.User, &in.UserID, &faults, "userId")
	r, err := a.onUser(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.Reinstate(ctx, cmd, id)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.ReinstateUserPayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// CreateToken is createApiToken. When the secret can't be shown again the id
// still is, so that the token can be revoked.
func (a *API) CreateToken(ctx context.Context, in gqlmodel.CreateAPITokenInput) (*gqlmodel.CreateAPITokenPayload, error) {
	var issued user.Issued
	r, err := command.Carry(ctx, a.Commands, a.Runtime, options(in.IdempotencyKey, in.Reason), nil,
		func(ctx context.Context, cmd es.Command) (es.Result[user.Issued], error) {
			res, err := a.Users.IssueToken(ctx, cmd, user.NewToken{ExpiresAt: in.ExpiresAt})
			issued = res.Refs
			return res, err
		},
		func(_ context.Context, res es.Result[user.Issued]) (*string, error) {
			return gqlmodel.NotEmpty(res.Refs.Token), nil
		})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.CreateAPITokenPayload{Token: r.Entity, TokenID: relay.Maybe(relay.Token, issued.ID), UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// RevokeToken is revokeApiToken.
func (a *API) RevokeToken(ctx context.Context, in gqlmodel.RevokeAPITokenInput) (*gqlmodel.RevokeAPITokenPayload, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	var faults fault.List
	token, owner := relay.Optional(relay.Token, &in.TokenID, &faults, "tokenId"), v.User()
	if id := in.UserID.Value(); id != nil {
		owner = relay.Optional(relay.User, id, &faults, "userId")
	}
	r, err := a.onUser(ctx, options(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.RevokeToken(ctx, cmd, owner, token)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.RevokeAPITokenPayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}
