package access

import (
	"github.com/google/uuid"

	"tallyard/domain/fault"
)

// Thing is what the rules need to know of something that is owned.
type Thing struct {
	Tenant     uuid.UUID
	Project    uuid.UUID
	Owner      uuid.UUID
	Visibility Visibility
}

// Sees tells whether the user may see the thing.
func (g Grants) Sees(t Thing) bool {
	if !g.Active || g.Tenant != t.Tenant {
		return false
	}
	switch {
	case t.Owner == g.User, g.ReadsAll(), t.Visibility == Global:
		return true
	case t.Visibility == Group:
		return g.In(t.Project)
	}
	return false
}

// Changes tells whether the user may change the thing: its owner or a tenant admin.
func (g Grants) Changes(t Thing) bool {
	return g.Writes() && g.Tenant == t.Tenant && (t.Owner == g.User || g.Admin())
}

// MustSee refuses who may not see the thing, as if it did not exist.
func MustSee(g Grants, t Thing) error {
	if !g.Sees(t) {
		return Missing()
	}
	return nil
}

// MustChange refuses who may not change the thing: as missing when they may not
// even see it, as forbidden when they may.
func MustChange(g Grants, t Thing) error {
	if err := MustSee(g, t); err != nil {
		return err
	}
	if !g.Writes() {
		return ReadOnly()
	}
	if !g.Changes(t) {
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Only the owner or a tenant admin may do this; ask one of them.")
	}
	return nil
}

// MustWorkIn refuses who may not make things in a project.
func MustWorkIn(g Grants, project uuid.UUID) error {
	if !g.Active || (!g.In(project) && !g.ReadsAll()) {
		return Missing().At("projectId")
	}
	if !g.Writes() {
		return ReadOnly()
	}
	if !g.In(project) && !g.Admin() {
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Only members of the project may do this; ask a project admin to be added.").At("projectId")
	}
	return nil
}

// Missing is the answer for what does not exist and for what may not be seen.
func Missing() *fault.Fault {
	return fault.New(fault.NotFound, fault.CodeNotFound, "There is no such thing, or you may not see it; check the id.")
}

// ReadOnly is the answer for auditors, who change nothing.
func ReadOnly() *fault.Fault {
	return fault.New(fault.Forbidden, fault.CodeForbidden, "Auditors read everything and change nothing; ask somebody without the auditor role.")
}
