package people

import (
	"context"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
)

// Permissions are the named permissions of a person, for themselves and for who
// reads everything of the tenant; none for others.
func (a *API) Permissions(ctx context.Context, obj *gqlmodel.User) ([]gqlmodel.Permission, error) {
	v, err := authn.Must(ctx)
	if err != nil || !Reads(v, obj.UserID) {
		return []gqlmodel.Permission{}, err
	}
	if obj.Permissions != nil {
		return obj.Permissions, nil // as a command left them, or as they were
	}
	p, err := loader.From(ctx).Powers.Load(ctx, obj.UserID)
	return showPermissions(p.Permissions), err
}

// BusinessScope is which part of the platform a person works with, for
// themselves and for who reads everything of the tenant.
func (a *API) BusinessScope(ctx context.Context, obj *gqlmodel.User) (*gqlmodel.BusinessScope, error) {
	v, err := authn.Must(ctx)
	if err != nil || !Reads(v, obj.UserID) {
		return nil, err
	}
	if obj.BusinessScope != nil {
		return obj.BusinessScope, nil
	}
	p, err := loader.From(ctx).Powers.Load(ctx, obj.UserID)
	if err != nil {
		return nil, err
	}
	scope := scopeOf(p.Scope)
	return &scope, nil
}

// OnlyAdmin tells the viewer that nobody else can approve anything (TEN-02).
func (a *API) OnlyAdmin(ctx context.Context) (bool, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return false, err
	}
	return a.Users.OnlyAdmin(ctx, v.Tenant, v.User())
}

func showPermissions(list []access.Permission) []gqlmodel.Permission {
	out := make([]gqlmodel.Permission, len(list))
	for i, p := range list {
		out[i] = gqlmodel.Permission(p)
	}
	return out
}

// usable are the permissions that the viewer can use: who changes nothing has none.
func usable(g access.Grants) []gqlmodel.Permission {
	list := []gqlmodel.Permission{}
	for _, p := range g.Permissions {
		if g.May(p) {
			list = append(list, gqlmodel.Permission(p))
		}
	}
	return list
}

func scopeOf(s access.BusinessScope) gqlmodel.BusinessScope {
	return gqlmodel.BusinessScope(user.State{Scope: s}.BusinessScope())
}

// GrantPermission is grantPermission.
func (a *API) GrantPermission(ctx context.Context, in gqlmodel.GrantPermissionInput) (*gqlmodel.GrantPermissionPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.User, &in.UserID, &faults, "userId")
	r, err := a.onUser(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.GrantPermission(ctx, cmd, id, access.Permission(in.Permission))
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.GrantPermissionPayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// RevokePermission is revokePermission.
func (a *API) RevokePermission(ctx context.Context, in gqlmodel.RevokePermissionInput) (*gqlmodel.RevokePermissionPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.User, &in.UserID, &faults, "userId")
	r, err := a.onUser(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.RevokePermission(ctx, cmd, id, access.Permission(in.Permission))
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.RevokePermissionPayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// SetBusinessScope is setBusinessScope.
func (a *API) SetBusinessScope(ctx context.Context, in gqlmodel.SetBusinessScopeInput) (*gqlmodel.SetBusinessScopePayload, error) {
	var faults fault.List
	id := relay.Optional(relay.User, &in.UserID, &faults, "userId")
	r, err := a.onUser(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.SetBusinessScope(ctx, cmd, id, access.BusinessScope(in.BusinessScope))
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.SetBusinessScopePayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// ErasePersonalData is erasePersonalData.
func (a *API) ErasePersonalData(ctx context.Context, in gqlmodel.ErasePersonalDataInput) (*gqlmodel.ErasePersonalDataPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.User, &in.UserID, &faults, "userId")
	if !in.Confirm {
		faults.Add(fault.New(fault.Invalid, fault.CodeRequired, "Nobody can bring the data back; say so with confirm: true.").At("confirm"))
	}
	r, err := a.onUser(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.ErasePersonalData(ctx, cmd, id)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.ErasePersonalDataPayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}
