// Package devseed makes the tenants and people of the development mode.
package devseed

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
)

// Tenants are the seeded tenants, in the order in which the development
// sign-in looks for a name.
var Tenants = []string{"acme", "globex"}

// Handlers carry the seed out.
type Handlers struct {
	Runtime  *es.Runtime
	Tenants  *tenant.Handler
	Projects *project.Handler
	Users    *user.Handler
}

type person struct {
	login, display string
	roles          []access.Role // those of a project are held in the tenant's one project
}

type company struct {
	name, project, about string
	people               []person
}

// The admins come first: a tenant is never without one.
var companies = []company{
	{"acme", "vision", "Image models", []person{
		{"admin", "Ada Example", []access.Role{access.TenantAdmin}},
		{"carol", "Carol Example", []access.Role{access.ProjectAdmin}},
		{"alice", "Alice Example", []access.Role{access.Member}},
		{"bob", "Bob Example", []access.Role{access.Member}},
		{"audra", "Audra Example", []access.Role{access.Auditor}},
		{"oscar", "Oscar Example", []access.Role{access.Operator}},
	}},
	{"globex", "research", "Another company, which sees nothing of the first", []person{
		{"mallory", "Mallory Example", []access.Role{access.TenantAdmin, access.Member}},
	}},
}

// Run makes what is missing. Each part is a command with an idempotency key of
// its own: run again, also after a crash half way, it makes nothing twice, and
// what somebody changed since stays changed.
func (h Handlers) Run(ctx context.Context) error {
	for _, c := range companies {
		if err := h.company(ctx, c); err != nil {
			return fmt.Errorf("seed of tenant %s: %w", c.name, err)
		}
	}
	return nil
}

func (h Handlers) company(ctx context.Context, c company) error {
	made, err := h.Tenants.Create(ctx, h.command(es.PlatformTenant, "createTenant", c.name), c.name)
	if err != nil {
		return err
	}
	id := made.Refs.Tenant
	home, err := h.Projects.Create(ctx, h.command(id, "createProject", c.project), project.Create{Name: c.project, Description: c.about})
	if err != nil {
		return err
	}
	for _, p := range c.people {
		if err := h.person(ctx, id, home.Refs.Project, c.name, p); err != nil {
			return fmt.Errorf("%s: %w", p.login, err)
		}
	}
	return nil
}

func (h Handlers) person(ctx context.Context, tenant, home uuid.UUID, company string, p person) error {
	made, err := h.Users.Create(ctx, h.command(tenant, "createUser", p.login), user.Person{
		LoginName: p.login, DisplayName: p.display, Email: p.login + "@" + company + ".example",
	})
	if err != nil {
		return err
	}
	for _, role := range p.roles {
		g := user.Grant{Role: role}
		if role.OfProject() {
			g.Project = home
		}
		cmd := h.command(tenant, "grantRole", p.login+"/"+string(role))
		if _, err := h.Users.GrantRole(ctx, cmd, made.Refs.User, g); err != nil {
			return fmt.Errorf("role %s: %w", role, err)
		}
	}
	return nil
}

// command is one part of the seed. Its key is what makes it happen once.
func (h Handlers) command(tenant uuid.UUID, action, key string) es.Command {
	cmd := es.System(h.Runtime.IDs.New(), "devseed", action, tenant)
	cmd.Key = "devseed/" + key
	cmd.Reason = "Set up for development."
	return cmd
}
