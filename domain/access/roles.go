// Package access holds who may do what: roles, grants, visibility, and the
// rules that combine them. It decides on facts that are handed to it; the
// facts come from the log (domain/user), never from a read model.
package access

import (
	"context"
	"slices"

	"github.com/google/uuid"
)

// Role is a named set of rights (TEN-02).
type Role string

// Roles. Operator, TenantAdmin and Auditor hold in a whole tenant, the others
// in one project.
const (
	Operator     Role = "OPERATOR"
	TenantAdmin  Role = "TENANT_ADMIN"
	Auditor      Role = "AUDITOR"
	ProjectAdmin Role = "PROJECT_ADMIN"
	Member       Role = "MEMBER"
)

// OfProject tells whether the role is granted in a project; the others are
// granted in the tenant.
func (r Role) OfProject() bool { return r == ProjectAdmin || r == Member }

// Valid tells whether the role exists.
func (r Role) Valid() bool {
	return slices.Contains([]Role{Operator, TenantAdmin, Auditor, ProjectAdmin, Member}, r)
}

// Visibility tells who, beside the owner, sees a thing.
type Visibility string

// Visibilities: the owner alone, the members of the project, the whole tenant.
const (
	Private Visibility = "PRIVATE"
	Group   Visibility = "GROUP"
	Global  Visibility = "GLOBAL"
)

// Valid tells whether the visibility exists.
func (v Visibility) Valid() bool { return v == Private || v == Group || v == Global }

// Grants are the rights of one user as they stand in the log.
type Grants struct {
	Tenant   uuid.UUID
	User     uuid.UUID
	Active   bool // false: unknown, suspended or removed; nothing is allowed
	Roles    []Role
	Projects map[uuid.UUID]Role
	// Permissions are the named ones that were granted; ask May.
	Permissions []Permission
	// Scope is the business scope, empty where it was never set; ask Trains.
	Scope BusinessScope
	// Version counts the changes of the user; it tells which of two is newer.
	Version int
}

// Source answers what a user may do now, from the log. A user that the tenant
// does not have gets inactive Grants, not an error.
type Source interface {
	Grants(ctx context.Context, tenant, user uuid.UUID) (Grants, error)
}

// Has tells whether the user holds a role of the tenant.
func (g Grants) Has(r Role) bool { return g.Active && slices.Contains(g.Roles, r) }

// Admin tells whether the user is an admin of the tenant.
func (g Grants) Admin() bool { return g.Has(TenantAdmin) }

// ReadsAll tells whether the user reads everything of the tenant.
func (g Grants) ReadsAll() bool { return g.Has(TenantAdmin) || g.Has(Auditor) }

// ReadsAudit tells whether the user reads the whole tenant's audit (AUD-02).
func (g Grants) ReadsAudit() bool { return g.ReadsAll() }

// ReadsPlatform tells whether the user reads the audit of what belongs to no
// tenant: tenants and the platform's settings are the operators' (TEN-02).
func (g Grants) ReadsPlatform() bool { return g.Has(Operator) }

// Writes is false for who changes nothing at all: a person with the auditor
// role, whatever else they hold (TEN-02).
func (g Grants) Writes() bool { return g.Active && !slices.Contains(g.Roles, Auditor) }

// In tells whether the user belongs to a project, by any role.
func (g Grants) In(project uuid.UUID) bool {
	_, ok := g.Projects[project]
	return g.Active && ok
}

// Administers tells whether the user is an admin of the project or its tenant.
func (g Grants) Administers(project uuid.UUID) bool {
	return g.Admin() || (g.Active && g.Projects[project] == ProjectAdmin)
}

// ProjectIDs are the projects that the user belongs to.
func (g Grants) ProjectIDs() []uuid.UUID {
	if !g.Active {
		return nil
	}
	ids := make([]uuid.UUID, 0, len(g.Projects))
	for id := range g.Projects {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return ids
}
