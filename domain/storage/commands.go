package storage

import (
	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// create makes the space; making the same again changes nothing.
func create(e SpaceCreated) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if s.Exists() {
			return nil, nil
		}
		return []es.Event{e}, nil
	}
}

// permitted notes something about files, for who may write in the space. It is
// on record in the space's project, where it has one, also when it is refused.
func permitted(cmd es.Command, g access.Grants, e es.Event) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		cmd.In(s.Project)
		if err := MustWrite(g, s); err != nil {
			return nil, err
		}
		return []es.Event{e}, nil
	}
}

// record notes what was really done.
func record(e es.Event) es.Decide[State] {
	return func(State) ([]es.Event, error) { return []es.Event{e}, nil }
}

// MustRead refuses who may not read in a space, as if it did not exist.
// A personal space is its owner's alone: what a person keeps there is not yet
// the company's business, so not even admins and auditors look into it. They
// read its history, which tells who did what to which path.
func MustRead(g access.Grants, s State) error {
	if !s.Exists() || !g.Active || g.Tenant != s.Tenant {
		return access.Missing()
	}
	readable := false
	switch s.Kind {
	case Personal:
		readable = g.User == s.Owner
	case OfProject:
		readable = g.In(s.Project) || g.ReadsAll()
	case OfTenant:
		readable = true
	}
	if !readable {
		return access.Missing()
	}
	return nil
}

// MustWrite refuses who may not change what a space holds.
func MustWrite(g access.Grants, s State) error {
	if err := MustRead(g, s); err != nil {
		return err
	}
	if !g.Writes() {
		return access.ReadOnly()
	}
	if s.Kind == OfProject && !g.In(s.Project) && !g.Admin() {
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Only members of the project may do this; ask a project admin to be added.")
	}
	return nil
}
