package model

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// The functions of this file decide: from the state as it stands and facts
// that were gathered before, to the events that follow or the fault that
// refuses. They are pure.

// imported are the facts of a version that is imported.
type imported struct {
	id        uuid.UUID
	name      string
	project   uuid.UUID
	number    int
	details   Details
	directory Directory
}

// decideImport makes the model with its first version, or adds a version to it:
// a name has one owner, and a number is given once (MDL-01).
func decideImport(g access.Grants, n imported) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		version := VersionImported{OfVersion: OfVersion{n.id}, Number: n.number, Details: n.details, Directory: n.directory}
		switch {
		case s.ID == uuid.Nil:
			return []es.Event{ModelCreated{Name: n.name, Owner: g.User, Project: n.project}, version}, nil
		case s.Deleted:
			return nil, fault.New(fault.Conflict, fault.CodeConflict, "The model of this name was deleted at this moment; try again.").At("name")
		case s.Owner != g.User:
			return nil, nameTaken()
		case slices.ContainsFunc(s.Versions, func(v Version) bool { return v.Number == n.number }):
			return nil, fault.New(fault.Conflict, fault.CodeVersionTaken, "The model has this version already; choose another number.").At("version")
		}
		return []es.Event{version}, nil
	}
}

func decideEdit(g access.Grants, in UpdateInput) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, err := mayChange(g, s, in.Version)
		if err != nil {
			return nil, err
		}
		if err := expect(in.Expected, v); err != nil {
			return nil, err
		}
		after := in.Fields.Apply(v.Details)
		if after.Origin == "" {
			after.Origin = Local
		}
		set, was := between(v.Details, after)
		if set.Empty() {
			return nil, nil
		}
		return []es.Event{VersionEdited{OfVersion: OfVersion{v.ID}, Set: set, Was: was}}, nil
	}
}

// decideShare holds MDL-03: the owner alone says who sees a version.
func decideShare(g access.Grants, version uuid.UUID, to access.Visibility) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, err := mustOwn(g, s, version)
		if err != nil || v.Visibility == to {
			return nil, err
		}
		return []es.Event{VisibilityChanged{OfVersion: OfVersion{v.ID}, From: v.Visibility, To: to}}, nil
	}
}

// decideDelete holds MDL-04. What uses a model uses one of its versions, so that
// the last of them stays as long as there is a use.
func decideDelete(g access.Grants, version uuid.UUID, uses []Use) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, err := mustOwn(g, s, version)
		if err != nil {
			return nil, err
		}
		last := len(s.Versions) == 1
		if last && len(uses) > 0 {
			return nil, inUse(uses)
		}
		events := []es.Event{VersionDeleted{OfVersion: OfVersion{v.ID}, Number: v.Number, From: v.Status}}
		if last {
			events = append(events, ModelDeleted{Name: s.Name, Project: s.Project})
		}
		return events, nil
	}
}

// mayChange finds a version for its owner or a tenant admin; for who may not
// see it, it does not exist.
func mayChange(g access.Grants, s State, id uuid.UUID) (Version, error) {
	v, ok := s.Version(id)
	if !ok || !s.Exists() {
		return Version{}, access.Missing()
	}
	return v, access.MustChange(g, s.Thing(v))
}

// mustOwn finds a version for its owner alone.
func mustOwn(g access.Grants, s State, id uuid.UUID) (Version, error) {
	v, ok := s.Version(id)
	switch {
	case !ok || !s.Exists() || !g.Sees(s.Thing(v)):
		return Version{}, access.Missing()
	case !g.Writes():
		return Version{}, access.ReadOnly()
	case s.Owner != g.User:
		return Version{}, fault.New(fault.Forbidden, fault.CodeForbidden, "Only the owner of the model may do this; ask them.")
	}
	return v, nil
}

// expect holds GEN-04: who names the version they saw is told of other edits.
func expect(expected *int, v Version) error {
	if expected == nil || *expected == v.Changes {
		return nil
	}
	return fault.New(fault.Conflict, fault.CodeVersionConflict,
		fmt.Sprintf("Somebody changed this since you read it: it is at version %d, you expected %d. Read it again and repeat your change.", v.Changes, *expected)).
		At("expectedVersion").With("currentVersion", strconv.Itoa(v.Changes))
}

func nameTaken() error {
	return fault.New(fault.Conflict, fault.CodeNameTaken, "This name is taken by another person's model; choose another one.").At("name")
}

func inUse(uses []Use) error {
	names := make([]string, len(uses))
	for i, u := range uses {
		names[i] = u.Kind + " " + u.Name
	}
	msg := "This model is used by " + names[0]
	if len(names) > 1 {
		msg += fmt.Sprintf(" and %d more", len(names)-1)
	}
	return fault.New(fault.State, fault.CodeInUse, msg+"; remove it there first.").With("usedBy", fmt.Sprint(names))
}
