package setting

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/setting"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

// show is what holds for a target, to somebody who may read it.
func show(v authn.Viewer, t setting.Target, l setting.Levels) *gqlmodel.Settings {
	return &gqlmodel.Settings{
		ID: relay.Of(relay.Settings, t.ID), Scope: gqlmodel.SettingScope(t.Scope),
		Version:                         int32(l.Own().Version), //nolint:gosec // far below 2^31
		ModelPublishingEnabled:          flag(l.Effective(setting.ModelPublishingEnabled)),
		GlobalAlgorithmApprovalRequired: flag(l.Effective(setting.GlobalAlgorithmApprovalRequired)),
		ModelApprovalRequired:           flag(l.Effective(setting.ModelApprovalRequired)),
		ApprovalExpiryDays:              number(l.Effective(setting.ApprovalExpiryDays)),
		ClientAddressRetentionDays:      number(l.Effective(setting.ClientAddressRetentionDays)),
		ViewerCanUpdate:                 setting.MayChange(v.Grants, t),
		Target:                          t,
	}
}

func flag(e setting.Effective) *gqlmodel.BooleanSetting {
	return &gqlmodel.BooleanSetting{Value: e.Value.On(), SetIn: scope(e.Scope)}
}

func number(e setting.Effective) *gqlmodel.IntSetting {
	return &gqlmodel.IntSetting{Value: int32(e.Value.Int()), SetIn: scope(e.Scope)} //nolint:gosec // the catalogue bounds it
}

func scope(s setting.Scope) *gqlmodel.SettingScope {
	if s == "" {
		return nil
	}
	out := gqlmodel.SettingScope(s)
	return &out
}

// ProjectOf is the project that settings are of; nil for others.
func ProjectOf(s *gqlmodel.Settings) uuid.UUID {
	if s.Target.Scope != setting.Project {
		return uuid.Nil
	}
	return s.Target.ID
}

// HistoryOf is what was changed.
func (a *API) HistoryOf(ctx context.Context, obj *gqlmodel.Settings, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	return a.History.Of(ctx, setting.Stream(v.Tenant, obj.Target), first, after, nil)
}
