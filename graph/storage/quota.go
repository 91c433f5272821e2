package storage

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/storage"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

// SetQuota is setStorageQuota.
func (a *API) SetQuota(ctx context.Context, in gqlmodel.SetStorageQuotaInput) (*gqlmodel.SetStorageQuotaPayload, error) {
	var faults fault.List
	space := spaceOf(in.SpaceID.Value(), &faults)
	var person uuid.UUID
	if id := in.UserID.Value(); id != nil {
		parsed, bad := relay.Expect(relay.User, *id, "userId")
		faults.Add(bad)
		person = parsed.UUID
	}
	if (in.SpaceID.Value() == nil) == (in.UserID.Value() == nil) {
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "Name a space, or the person whose home it is; one of the two.").At("spaceId"))
	}
	quota, given := in.QuotaBytes.ValueOK()
	if !given {
		faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "Give the most bytes, or null for what the installation gives.").At("quotaBytes"))
	}
	input := storage.QuotaInput{Bytes: quota}
	if n := in.ExpectedVersion.Value(); n != nil {
		version := int(*n)
		input.ExpectedVersion = &version
	}
	options := command.Options{Key: in.IdempotencyKey.Value(), Reason: &in.Reason, RequireReason: true}
	r, err := command.Carry(ctx, a.Commands, a.Runtime, options, faults,
		func(ctx context.Context, cmd es.Command) (es.Result[storage.Refs], error) {
			if person != uuid.Nil {
				home, found, err := a.Handler.FindHome(ctx, cmd.Tenant, person)
				if err == nil && !found {
					err = access.Missing().At("userId")
				}
				if err != nil {
					return command.Refuse[storage.Refs](ctx, a.Runtime, cmd, err)
				}
				space = home
			}
			return a.Handler.SetQuota(ctx, cmd, space, input)
		}, a.after)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.SetStorageQuotaPayload{StorageSpace: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// after is a space as a command left it; nil when the viewer does not look into it.
func (a *API) after(ctx context.Context, res es.Result[storage.Refs]) (*gqlmodel.StorageSpace, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	l, err := es.LoadUntil(ctx, a.Runtime, storage.Aggregate, v.Tenant, res.Refs.Space, res.Position)
	if err != nil || storage.MustRead(v.Grants, l.State) != nil {
		return nil, err
	}
	return a.Show(l.State), nil
}
