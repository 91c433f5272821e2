// Package access holds who could see and do what, over time, and the filter
// that every list goes through.
package access

import (
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/access"
)

// How far a thing reaches, as lists filter by it: its owner alone, the members
// of its project, the whole tenant.
const (
	ReachOwner  = 0
	ReachGroup  = 1
	ReachGlobal = 2
)

// Reach is the number of a visibility.
func Reach(v access.Visibility) int {
	switch v {
	case access.Global:
		return ReachGlobal
	case access.Group:
		return ReachGroup
	default:
		return ReachOwner
	}
}

// Visibility is the visibility of a number.
func Visibility(reach int) access.Visibility {
	switch reach {
	case ReachGlobal:
		return access.Global
	case ReachGroup:
		return access.Group
	default:
		return access.Private
	}
}

// Filter cuts rows to what a viewer may see. It is made from the grants as they
// stand in the log, so that a right taken away a moment ago counts.
type Filter struct {
	Tenant   uuid.UUID
	User     uuid.UUID
	All      bool
	Projects []uuid.UUID
}

// FilterOf makes the filter of a viewer. Who is not active sees nothing: no row
// has the nil user as owner, and no project is theirs.
func FilterOf(g access.Grants) Filter {
	f := Filter{Tenant: g.Tenant, User: g.User, All: g.ReadsAll(), Projects: g.ProjectIDs()}
	if !g.Active {
		f.Tenant, f.User = uuid.Max, uuid.Nil
	}
	if f.Projects == nil {
		f.Projects = []uuid.UUID{}
	}
	return f
}

// TrainingFilterOf is FilterOf for lists of what belongs to training: who has no
// training in their business scope sees empty ones (TEN-08).
func TrainingFilterOf(g access.Grants) Filter {
	if g.Trains() {
		return FilterOf(g)
	}
	g.Active = false
	return FilterOf(g)
}

// Visible is the condition that lets the viewer's rows through. The table has
// the columns tenant, project, owner and reach; the arguments are appended.
func (f Filter) Visible(alias string, args []any) (string, []any) {
	n := len(args)
	args = append(args, f.Tenant)
	if f.All {
		return fmt.Sprintf("%s.tenant = $%d", alias, n+1), args
	}
	args = append(args, f.User, f.Projects)
	return fmt.Sprintf("%[1]s.tenant = $%[2]d AND (%[1]s.owner = $%[3]d OR %[1]s.reach = 2 OR (%[1]s.reach = 1 AND %[1]s.project = ANY($%[4]d)))",
		alias, n+1, n+2, n+3), args
}

// Way is a part of the rows that a viewer sees. One index walks it in any order
// that lists have; where Each is set, once for each of its values.
type Way struct {
	Cond string
	// Each is an item of FROM that gives the parameter of the condition; empty
	// when there is none.
	Each string
}

// Ways splits what Visible lets through into parts without a common row. A
// query over one of them reads as many rows as it gives, where one over the
// whole condition may pass over everything that others keep to themselves.
func (f Filter) Ways(alias string, args []any) ([]Way, []any) {
	n := len(args)
	args = append(args, f.Tenant)
	if f.All {
		return []Way{{Cond: fmt.Sprintf("%s.tenant = $%d", alias, n+1)}}, args
	}
	args = append(args, f.User, f.Projects)
	return []Way{
		{Cond: fmt.Sprintf("%[1]s.tenant = $%[2]d AND %[1]s.owner = $%[3]d", alias, n+1, n+2)},
		{Cond: fmt.Sprintf("%[1]s.tenant = $%[2]d AND %[1]s.reach = 2 AND %[1]s.owner <> $%[3]d", alias, n+1, n+2)},
		group(alias, n+1, n+3, fmt.Sprintf(" AND %s.owner <> $%d", alias, n+2)),
	}, args
}

// Global is the way to what the whole tenant sees.
func (f Filter) Global(alias string, args []any) ([]Way, []any) {
	return []Way{{Cond: fmt.Sprintf("%[1]s.tenant = $%[2]d AND %[1]s.reach = 2", alias, len(args)+1)}}, append(args, f.Tenant)
}

// Group is the way to what the viewer's projects see and the tenant does not.
func (f Filter) Group(alias string, args []any) ([]Way, []any) {
	return []Way{group(alias, len(args)+1, len(args)+2, "")}, append(args, f.Tenant, f.Projects)
}

// Personal is the way to the viewer's own.
func (f Filter) Personal(alias string, args []any) ([]Way, []any) {
	return []Way{{Cond: fmt.Sprintf("%[1]s.tenant = $%[2]d AND %[1]s.owner = $%[3]d", alias, len(args)+1, len(args)+2)}}, append(args, f.Tenant, f.User)
}

func group(alias string, tenant, projects int, more string) Way {
	return Way{
		Cond: fmt.Sprintf("%[1]s.tenant = $%[2]d AND %[1]s.reach = 1 AND %[1]s.project = way.project%[3]s", alias, tenant, more),
		Each: fmt.Sprintf("unnest($%d::uuid[]) AS way(project)", projects),
	}
}

// Owned is the condition for things that are their owner's alone.
func (f Filter) Owned(alias string, args []any) (string, []any) {
	n := len(args)
	args = append(args, f.Tenant)
	if f.All {
		return fmt.Sprintf("%s.tenant = $%d", alias, n+1), args
	}
	args = append(args, f.User)
	return fmt.Sprintf("%[1]s.tenant = $%[2]d AND %[1]s.owner = $%[3]d", alias, n+1, n+2), args
}
