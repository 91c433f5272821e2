package setting

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/setting"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
)

// Update is updateSettings.
func (a *API) Update(ctx context.Context, in gqlmodel.UpdateSettingsInput) (*gqlmodel.UpdateSettingsPayload, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	var faults fault.List
	t, ok, bad := target(v, in.ID.Value(), in.Platform.Value())
	switch {
	case bad != nil:
		faults.Add(bad)
	case !ok:
		faults.Add(access.Missing().At("id"))
	}
	change := setting.Update{Settings: map[setting.Key]patch.Field[setting.Value]{
		setting.ModelPublishingEnabled:          flagOf(in.ModelPublishingEnabled),
		setting.GlobalAlgorithmApprovalRequired: flagOf(in.GlobalAlgorithmApprovalRequired),
		setting.ModelApprovalRequired:           flagOf(in.ModelApprovalRequired),
		setting.ApprovalExpiryDays:              numberOf(in.ApprovalExpiryDays),
		setting.ClientAddressRetentionDays:      numberOf(in.ClientAddressRetentionDays),
	}}
	if n := in.ExpectedVersion.Value(); n != nil {
		expected := int(*n)
		change.ExpectedVersion = &expected
	}
	r, err := command.Carry(ctx, a.Commands, a.Runtime,
		command.Options{Key: in.IdempotencyKey.Value(), Reason: &in.Reason, RequireReason: true}, faults,
		func(ctx context.Context, cmd es.Command) (es.Result[setting.Refs], error) {
			return a.Handler.Update(ctx, cmd, t, change)
		},
		func(ctx context.Context, res es.Result[setting.Refs]) (*gqlmodel.Settings, error) {
			if res.Position == es.StartPosition { // nothing was ever set, and isn't now
				return a.now(ctx, v, setting.Target(res.Refs))
			}
			l, err := a.Handler.LevelsAt(ctx, v.Tenant, setting.Target(res.Refs), res.Position)
			if err != nil {
				return nil, err
			}
			return show(v, setting.Target(res.Refs), l), nil
		})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.UpdateSettingsPayload{Settings: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

func flagOf(in graphql.Omittable[*bool]) patch.Field[setting.Value] {
	return valueOf(in, setting.Flag)
}

func numberOf(in graphql.Omittable[*int32]) patch.Field[setting.Value] {
	return valueOf(in, func(n int32) setting.Value { return setting.Number(int64(n)) })
}

func valueOf[T any](in graphql.Omittable[*T], convert func(T) setting.Value) patch.Field[setting.Value] {
	v, given := in.ValueOK()
	switch {
	case !given:
		return patch.Keep[setting.Value]()
	case v == nil:
		return patch.Clear[setting.Value]()
	}
	return patch.To(convert(*v))
}
