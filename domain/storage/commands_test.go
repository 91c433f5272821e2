package storage

import (
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/fault"
)

var (
	acme   = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	vision = uuid.MustParse("0198a000-0000-7000-8000-000000000002")
	alice  = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	bob    = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
)

func grants(user uuid.UUID, member bool, roles ...access.Role) access.Grants {
	g := access.Grants{Tenant: acme, User: user, Active: true, Roles: roles}
	if member {
		g.Projects = map[uuid.UUID]access.Role{vision: access.Member}
	}
	return g
}

// TestWhoMay is the table of who reads and writes in which kind of space.
func TestWhoMay(t *testing.T) {
	const hidden, refused = fault.CodeNotFound, fault.CodeForbidden
	personal := State{Tenant: acme, Kind: Personal, Owner: alice}
	project := State{Tenant: acme, Kind: OfProject, Project: vision}
	shared := State{Tenant: acme, Kind: OfTenant}
	elsewhere := grants(alice, true)
	elsewhere.Tenant = uuid.MustParse("0198a000-0000-7000-8000-000000000009")
	suspended := grants(alice, true)
	suspended.Active = false
	for _, x := range []struct {
		name        string
		who         access.Grants
		space       State
		read, write fault.Code
	}{
		{"STO-01_owner_of_a_personal_space", grants(alice, true), personal, "", ""},
		{"STO-01_another_member", grants(bob, true), personal, hidden, hidden},
		{"STO-01_not_even_a_tenant_admin", grants(bob, true, access.TenantAdmin), personal, hidden, hidden},
		{"STO-01_not_even_an_auditor", grants(bob, false, access.Auditor), personal, hidden, hidden},
		{"STO-01_owner_who_is_an_auditor", grants(alice, true, access.Auditor), personal, "", refused},
		{"STO-01_member_of_the_project", grants(bob, true), project, "", ""},
		{"STO-01_no_member_of_the_project", grants(bob, false), project, hidden, hidden},
		{"STO-01_admin_outside_the_project", grants(bob, false, access.TenantAdmin), project, "", ""},
		{"STO-01_auditor_outside_the_project", grants(bob, false, access.Auditor), project, "", refused},
		{"STO-01_tenant_space", grants(bob, false), shared, "", ""},
		{"STO-01_tenant_space_auditor", grants(bob, false, access.Auditor), shared, "", refused},
		{"TEN-01_another_tenant", elsewhere, shared, hidden, hidden},
		{"TEN-07_suspended_owner", suspended, personal, hidden, hidden},
		{"TEN-01_missing_space", grants(alice, true), State{}, hidden, hidden},
	} {
		t.Run(x.name, func(t *testing.T) {
			if got := code(MustRead(x.who, x.space)); got != x.read {
				t.Errorf("read: %q, want %q", got, x.read)
			}
			if got := code(MustWrite(x.who, x.space)); got != x.write {
				t.Errorf("write: %q, want %q", got, x.write)
			}
		})
	}
}

func code(err error) fault.Code {
	faults, _ := fault.All(err)
	if len(faults) == 0 {
		return ""
	}
	return faults[0].Code
}
