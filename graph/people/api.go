// Package people is between the schema of people, projects and tenants and what
// serves it: the domain's handlers for mutations, the read model for queries.
package people

import (
	"context"

	"tallyard/domain/es"
	"tallyard/domain/flows/ownership"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/graph/command"
	"tallyard/graph/history"
	"tallyard/graph/relay"
	proj "tallyard/projections/people"
)

// Onboarding makes a tenant together with its first admin.
type Onboarding interface {
	CreateTenant(ctx context.Context, cmd es.Command, name string, admin user.Person) (es.Result[tenant.Refs], error)
}

// API serves the schema of people, projects and tenants.
type API struct {
	Runtime  *es.Runtime
	Users    *user.Handler
	Projects *project.Handler
	Tenants  *tenant.Handler
	// Onboarding makes tenants with their first admins.
	Onboarding Onboarding
	// Ownership moves what people own.
	Ownership *ownership.Flow
	Queries   proj.Queries
	Commands  *command.Gateway
	Sealer    *relay.Sealer
	History   *history.Reader
}
