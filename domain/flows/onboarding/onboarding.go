// Package onboarding makes tenants that somebody can govern: a tenant comes with
// its first admin, since nobody else could ever make one.
package onboarding

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
)

// Name is the part of the system that acts for the flow.
const Name = "onboarding"

// Flow makes tenants and their first admins.
type Flow struct {
	Runtime *es.Runtime
	Tenants *tenant.Handler
	Users   *user.Handler
}

// CreateTenant is `createTenant`. What is wrong with the admin is found before
// there is a tenant. Each step has a key of its own that follows from the
// tenant's id: the command repeated with its key finishes what a crash cut off,
// and makes nothing twice.
func (f *Flow) CreateTenant(ctx context.Context, cmd es.Command, name string, admin user.Person) (es.Result[tenant.Refs], error) {
	made, err := f.Tenants.CreateWith(ctx, cmd, name, func() error { return inAdmin(admin.Check()) })
	if err != nil {
		return made, err
	}
	person, err := f.Users.Create(ctx, f.step(cmd, made.Refs.Tenant, "createUser"), admin)
	if err != nil {
		return made, inAdmin(err)
	}
	granted, err := f.Users.GrantRole(ctx, f.step(cmd, made.Refs.Tenant, "grantRole"), person.Refs.User, user.Grant{Role: access.TenantAdmin})
	if err != nil {
		return made, err
	}
	if !made.Replayed {
		made.Position = max(made.Position, person.Position, granted.Position)
		made.Events = append(append(made.Events, person.Events...), granted.Events...)
	}
	return made, nil
}

// step is a part of the command in the new tenant. Who acts there is this flow:
// an operator belongs to another tenant (TEN-01).
func (f *Flow) step(cmd es.Command, in uuid.UUID, action string) es.Command {
	step := es.System(f.Runtime.IDs.New(), Name, action, in)
	step.Key, step.Digest = "createTenant/"+in.String(), []byte(action)
	step.Request, step.Reason, step.Correlation = cmd.Request, "The first admin of the tenant.", cmd.Correlation
	return step
}

// inAdmin puts what is wrong with the admin where the input has it.
func inAdmin(err error) error {
	faults, ok := fault.All(err)
	if !ok {
		return err
	}
	var list fault.List
	for _, bad := range faults {
		list.Add(bad.At(append([]string{"admin"}, bad.Field...)...))
	}
	return list
}
