package people

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

// onTenant carries out a command on a tenant.
func (a *API) onTenant(ctx context.Context, o command.Options, faults fault.List, do func(context.Context, es.Command) (es.Result[tenant.Refs], error)) (command.Answered[*gqlmodel.Tenant], error) {
	return command.Carry(ctx, a.Commands, a.Runtime, o, faults, do,
		func(ctx context.Context, res es.Result[tenant.Refs]) (*gqlmodel.Tenant, error) {
			return a.tenantAt(ctx, res.Refs.Tenant, res.Position)
		})
}

// onProject carries out a command on a project.
func (a *API) onProject(ctx context.Context, o command.Options, faults fault.List, do func(context.Context, es.Command) (es.Result[project.Refs], error)) (command.Answered[*gqlmodel.Project], error) {
	return command.Carry(ctx, a.Commands, a.Runtime, o, faults, do,
		func(ctx context.Context, res es.Result[project.Refs]) (*gqlmodel.Project, error) {
			v, err := authn.Must(ctx)
			if err != nil {
				return nil, err
			}
			return a.projectAt(ctx, v.Tenant, res.Refs.Project, res.Position)
		})
}

// CreateTenant is createTenant.
func (a *API) CreateTenant(ctx context.Context, in gqlmodel.CreateTenantInput) (*gqlmodel.CreateTenantPayload, error) {
	admin := user.Person{LoginName: in.Admin.LoginName, DisplayName: in.Admin.DisplayName, Email: gqlmodel.Deref(in.Admin.Email.Value())}
	r, err := a.onTenant(ctx, options(in.IdempotencyKey, in.Reason), nil, func(ctx context.Context, cmd es.Command) (es.Result[tenant.Refs], error) {
		return a.Onboarding.CreateTenant(ctx, cmd, in.Name, admin)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.CreateTenantPayload{Tenant: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// UpdateTenant is updateTenant.
func (a *API) UpdateTenant(ctx context.Context, in gqlmodel.UpdateTenantInput) (*gqlmodel.UpdateTenantPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.Tenant, &in.ID, &faults, "id")
	name, given := in.Name.ValueOK()
	if given && name == nil {
		faults.Add(fault.New(fault.Invalid, fault.CodeNotClearable, "A tenant keeps a name; leave it out or give another one.").At("name"))
	}
	r, err := a.onTenant(ctx, options(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[tenant.Refs], error) {
		return a.Tenants.Update(ctx, cmd, id, tenant.Update{Name: name, ExpectedVersion: version(in.ExpectedVersion)})
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.UpdateTenantPayload{Tenant: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// UpdateProject is updateProject.
func (a *API) UpdateProject(ctx context.Context, in gqlmodel.UpdateProjectInput) (*gqlmodel.UpdateProjectPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.Project, &in.ID, &faults, "id")
	change := project.Update{Name: field(in.Name), Description: field(in.Description), ExpectedVersion: version(in.ExpectedVersion)}
	r, err := a.onProject(ctx, options(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[project.Refs], error) {
		return a.Projects.Update(ctx, cmd, id, change)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.UpdateProjectPayload{Project: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

func field[T any](in graphql.Omittable[*T]) patch.Field[T] {
	v, given := in.ValueOK()
	switch {
	case !given:
		return patch.Keep[T]()
	case v == nil:
		return patch.Clear[T]()
	}
	return patch.To(*v)
}

func version(in graphql.Omittable[*int32]) *int {
	v := in.Value()
	if v == nil {
		return nil
	}
	n := int(*v)
	return &n
}
