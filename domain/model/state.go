// Package model is the feature of models: a name that one person owns, with
// versions that are imported from directories of their home, described, shared
// and deleted (MDL).
//
// One stream holds a model with all its versions, so that numbers are unique
// and a version's life is decided in one place.
package model

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Category is the category of the streams and the kind of a model's Ref;
// VersionKind is the kind of a version's Ref, whose Parent is the model.
const (
	Category    = "model"
	VersionKind = "modelVersion"
)

// Status is the state of a version (MDL-11).
type Status string

// States of a version.
const (
	Valid   Status = "VALID"
	Deleted Status = "DELETED"
)

// State is a model as its stream folds.
type State struct {
	ID       uuid.UUID `json:"id"`
	Tenant   uuid.UUID `json:"tenant"`
	Project  uuid.UUID `json:"project"`
	Owner    uuid.UUID `json:"owner"`
	Name     string    `json:"name"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Changes  int       `json:"changes"`  // user-made changes, the entity's version
	Versions []Version `json:"versions"` // living ones, oldest first
	Deleted  bool      `json:"deleted,omitempty"`
}

// Version is one version of a model.
type Version struct {
	ID         uuid.UUID         `json:"id"`
	Number     int               `json:"number"`
	Details    Details           `json:"details"`
	Directory  Directory         `json:"directory"`
	Status     Status            `json:"status"`
	Visibility access.Visibility `json:"visibility"`
	Created    time.Time         `json:"created"`
	Updated    time.Time         `json:"updated"`
	Changes    int               `json:"changes"`
}

// Directory is where a version's files lie: inside a space, never a path of the host.
type Directory struct {
	Space uuid.UUID `json:"space"`
	Path  string    `json:"path"`
}

// Use is something that needs a model, such as a version of an algorithm.
type Use struct {
	Kind string
	Name string
}

// Exists tells whether the model was made and has versions still.
func (s State) Exists() bool { return s.ID != uuid.Nil && !s.Deleted }

// Version finds a living version.
func (s State) Version(id uuid.UUID) (Version, bool) {
	for _, v := range s.Versions {
		if v.ID == id {
			return v, true
		}
	}
	return Version{}, false
}

// Thing is a version for the rules of access.
func (s State) Thing(v Version) access.Thing {
	return access.Thing{Tenant: s.Tenant, Project: s.Project, Owner: s.Owner, Visibility: v.Visibility}
}

// Whole is the model for the rules of access: it is seen by whoever sees one of
// its versions.
func (s State) Whole() access.Thing {
	t := access.Thing{Tenant: s.Tenant, Project: s.Project, Owner: s.Owner, Visibility: access.Private}
	for _, v := range s.Versions {
		if v.Visibility == access.Global || (v.Visibility == access.Group && t.Visibility != access.Global) {
			t.Visibility = v.Visibility
		}
	}
	return t
}

// Cut is the model with only the versions that a user may see, and false when
// there is nothing for them to see.
func (s State) Cut(g access.Grants) (State, bool) {
	if !s.Exists() || !g.Sees(s.Whole()) {
		return State{}, false
	}
	seen := make([]Version, 0, len(s.Versions))
	for _, v := range s.Versions {
		if g.Sees(s.Thing(v)) {
			seen = append(seen, v)
		}
	}
	s.Versions = seen
	return s, len(seen) > 0
}

// Aggregate folds a model's stream.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 1, Evolve: evolve}

// evolve applies one event.
func evolve(s State, e es.Envelope) State {
	s.Updated = e.Meta.Time
	if e.Meta.Actor.Person() && e.Meta.Index == 0 {
		s.Changes++
	}
	switch ev := e.Event.(type) {
	case ModelCreated:
		s.ID, _ = e.Stream.UUID()
		s.Tenant, s.Project, s.Owner, s.Name = e.Meta.Tenant, ev.Project, ev.Owner, ev.Name
		s.Created = e.Meta.Time
	case VersionImported:
		s.Versions = append(slices.Clip(s.Versions), Version{
			ID: ev.Version, Number: ev.Number, Details: ev.Details, Directory: ev.Directory,
			Status: Valid, Visibility: access.Private, Created: e.Meta.Time, Updated: e.Meta.Time, Changes: 1,
		})
	case VersionEdited:
		s.Versions = change(s.Versions, e, ev.Version, func(v *Version) { v.Details = ev.Set.Apply(v.Details) })
	case VisibilityChanged:
		s.Versions = change(s.Versions, e, ev.Version, func(v *Version) { v.Visibility = ev.To })
	case VersionDeleted:
		s.Versions = slices.DeleteFunc(slices.Clone(s.Versions), func(v Version) bool { return v.ID == ev.Version })
	case OwnershipTransferred:
		s.Owner = ev.To
	case ModelDeleted:
		s.Deleted = true
	}
	return s
}

// change applies an event about one version to a copy of the list.
func change(list []Version, e es.Envelope, id uuid.UUID, apply func(*Version)) []Version {
	list = slices.Clone(list)
	for i := range list {
		if list[i].ID != id {
			continue
		}
		list[i].Updated = e.Meta.Time
		if e.Meta.Actor.Person() {
			list[i].Changes++
		}
		apply(&list[i])
	}
	return list
}
