package people

import (
	"context"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/flows/ownership"
	"tallyard/domain/project"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

// TransferOwnership is transferOwnership.
func (a *API) TransferOwnership(ctx context.Context, in gqlmodel.TransferOwnershipInput) (*gqlmodel.TransferOwnershipPayload, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	var faults fault.List
	from, to := relay.Optional(relay.User, &in.FromUserID, &faults, "fromUserId"), relay.Optional(relay.User, &in.ToUserID, &faults, "toUserId")
	out := &gqlmodel.TransferOwnershipPayload{}
	r, err := command.Carry(ctx, a.Commands, a.Runtime, reasoned(in.IdempotencyKey, in.Reason), faults,
		func(ctx context.Context, cmd es.Command) (es.Result[ownership.Refs], error) {
			return a.Ownership.Transfer(ctx, cmd, from, to)
		},
		func(ctx context.Context, res es.Result[ownership.Refs]) (*int32, error) {
			if out.FromUser, err = a.userAt(ctx, v.Tenant, res.Refs.From, newest); err != nil {
				return nil, err
			}
			if out.ToUser, err = a.userAt(ctx, v.Tenant, res.Refs.To, newest); err != nil {
				return nil, err
			}
			n := int32(res.Refs.Moved) //nolint:gosec // far below 2^31
			return &n, nil
		})
	if err != nil {
		return nil, err
	}
	out.Moved, out.UserErrors, out.Receipt = r.Entity, r.UserErrors, r.Receipt
	return out, nil
}

// RemoveUser is removeUser.
func (a *API) RemoveUser(ctx context.Context, in gqlmodel.RemoveUserInput) (*gqlmodel.RemoveUserPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.User, &in.UserID, &faults, "userId")
	r, err := a.onUser(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.Remove(ctx, cmd, id)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.RemoveUserPayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// CloseProject is closeProject.
func (a *API) CloseProject(ctx context.Context, in gqlmodel.CloseProjectInput) (*gqlmodel.CloseProjectPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.Project, &in.ID, &faults, "id")
	r, err := a.onProject(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[project.Refs], error) {
		return a.Projects.Close(ctx, cmd, id, version(in.ExpectedVersion))
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.CloseProjectPayload{Project: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}
