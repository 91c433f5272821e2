package approval

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/approval"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

// Approve is approveRequest.
func (a *API) Approve(ctx context.Context, in gqlmodel.ApproveRequestInput) (*gqlmodel.ApproveRequestPayload, error) {
	r, err := a.carry(ctx, in.ID, command.Options{Key: in.IdempotencyKey.Value(), Reason: in.Reason.Value()}, a.Handler.Approve)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.ApproveRequestPayload{Approval: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// Reject is rejectRequest.
func (a *API) Reject(ctx context.Context, in gqlmodel.RejectRequestInput) (*gqlmodel.RejectRequestPayload, error) {
	r, err := a.carry(ctx, in.ID, command.Options{Key: in.IdempotencyKey.Value(), Reason: &in.Reason, RequireReason: true}, a.Handler.Reject)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.RejectRequestPayload{Approval: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// Withdraw is withdrawRequest.
func (a *API) Withdraw(ctx context.Context, in gqlmodel.WithdrawRequestInput) (*gqlmodel.WithdrawRequestPayload, error) {
	r, err := a.carry(ctx, in.ID, command.Options{Key: in.IdempotencyKey.Value(), Reason: in.Reason.Value()}, a.Handler.Withdraw)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.WithdrawRequestPayload{Approval: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// carry carries out a command on one request and gives it as the command left
// it, so that a repeated key gives an equal answer.
func (a *API) carry(ctx context.Context, text string, o command.Options,
	do func(context.Context, es.Command, uuid.UUID) (es.Result[approval.Refs], error),
) (command.Answered[*gqlmodel.Approval], error) {
	var faults fault.List
	id, bad := relay.Expect(relay.Approval, text, "id")
	faults.Add(bad)
	return command.Carry(ctx, a.Commands, a.Runtime, o, faults,
		func(ctx context.Context, cmd es.Command) (es.Result[approval.Refs], error) {
			return do(ctx, cmd, id.UUID)
		},
		func(ctx context.Context, res es.Result[approval.Refs]) (*gqlmodel.Approval, error) {
			v, err := authn.Must(ctx)
			if err != nil {
				return nil, err
			}
			s, err := a.at(ctx, v.Tenant, res.Refs.Approval, res.Position)
			if err != nil || !s.Exists() || !v.Grants.Sees(s.Thing()) {
				return nil, err
			}
			return Show(s), nil
		})
}
