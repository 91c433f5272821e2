package setting

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/domain/setting"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

// When is the moment that a query asks for: now, when neither AsOf nor
// AsOfPosition is given.
type When struct {
	AtLeast      *string
	AsOf         *time.Time
	AsOfPosition *string
}

// Get is the query settings.
func (a *API) Get(ctx context.Context, id *string, platform *bool, w When) (*gqlmodel.Settings, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, w.AtLeast); err != nil {
		return nil, err
	}
	at, past, err := a.History.Moment(ctx, w.AsOf, w.AsOfPosition)
	if err != nil {
		return nil, err
	}
	t, ok, bad := target(v, id, platform)
	if bad != nil {
		return nil, fault.New(fault.Limit, fault.CodeBadRequest, bad.Message).At("platform")
	}
	if ok {
		ok, err = a.mayRead(ctx, v, t)
	}
	if err != nil || !ok {
		return nil, err
	}
	if !past {
		return a.now(ctx, v, t)
	}
	l, err := a.Handler.LevelsAt(ctx, v.Tenant, t, at)
	if err != nil {
		return nil, err
	}
	s := show(v, t, l)
	s.ViewerCanUpdate = false
	return s, nil
}

// ByID is the settings with an id, as far as the viewer may read them.
func (a *API) ByID(ctx context.Context, id uuid.UUID) (*gqlmodel.Settings, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	t := targetOf(v, id)
	if ok, err := a.mayRead(ctx, v, t); err != nil || !ok {
		return nil, err
	}
	return a.now(ctx, v, t)
}

func (a *API) now(ctx context.Context, v authn.Viewer, t setting.Target) (*gqlmodel.Settings, error) {
	l, err := a.Handler.Levels(ctx, v.Tenant, t)
	if err != nil {
		return nil, err
	}
	return show(v, t, l), nil
}

func (a *API) mayRead(ctx context.Context, v authn.Viewer, t setting.Target) (bool, error) {
	if !setting.MayRead(v.Grants, t) {
		return false, nil
	}
	if t.Scope != setting.Project {
		return true, nil
	}
	return a.Handler.Projects.Exists(ctx, v.Tenant, t.ID)
}

// target reads what settings are asked for; false for an id of something that
// has none.
func target(v authn.Viewer, id *string, platform *bool) (setting.Target, bool, *fault.Fault) {
	switch {
	case platform != nil && *platform && id != nil:
		return setting.Target{}, false, fault.New(fault.Invalid, fault.CodeNotAllowed, "Give id or platform, not both.").At("platform")
	case platform != nil && *platform:
		return setting.OfPlatform(), true, nil
	case id == nil:
		return setting.OfTenant(v.Tenant), true, nil
	}
	parsed, ok := relay.Parse(*id)
	if !ok {
		return setting.Target{}, false, nil
	}
	switch parsed.Kind {
	case relay.Settings:
		return targetOf(v, parsed.UUID), true, nil
	case relay.Tenant:
		return setting.OfTenant(parsed.UUID), true, nil
	case relay.Project:
		return setting.OfProject(parsed.UUID), true, nil
	}
	return setting.Target{}, false, nil
}

// targetOf tells what the settings with an id are of.
func targetOf(v authn.Viewer, id uuid.UUID) setting.Target {
	switch id {
	case setting.PlatformID:
		return setting.OfPlatform()
	case v.Tenant:
		return setting.OfTenant(id)
	}
	return setting.OfProject(id)
}
