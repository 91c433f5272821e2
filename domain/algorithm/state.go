// Package algorithm is the feature of algorithms: a name that one person owns,
// with versions that are written, published read-only, and deleted (ALG).
//
// One stream holds an algorithm with all its versions, so that labels are
// unique and a version's life is decided in one place.
package algorithm

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Category is the category of the streams and the kind of an algorithm's Ref;
// VersionKind is the kind of a version's Ref, whose Parent is the algorithm.
const (
	Category    = "algorithm"
	VersionKind = "algorithmVersion"
)

// Status is the state of a version (ALG-04).
type Status string

// States of a version.
const (
	Creating        Status = "CREATING"
	CreateFailed    Status = "CREATE_FAILED"
	Created         Status = "CREATED"
	ApprovalPending Status = "APPROVAL_PENDING"
	Publishing      Status = "PUBLISHING"
	PublishFailed   Status = "PUBLISH_FAILED"
	Published       Status = "PUBLISHED"
	Deleting        Status = "DELETING"
	Deleted         Status = "DELETED"
)

// Transitional tells whether the state is passed through.
func (s Status) Transitional() bool {
	return s == Creating || s == Publishing || s == Deleting
}

// State is an algorithm as its stream folds.
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

// Version is one version of an algorithm.
type Version struct {
	ID       uuid.UUID `json:"id"`
	Label    string    `json:"label"`
	Settings Settings  `json:"settings"`
	Status   Status    `json:"status"`
	// Problem says why the last attempt failed; empty when it did not.
	Problem    string            `json:"problem,omitempty"`
	Visibility access.Visibility `json:"visibility,omitempty"` // set once published
	// BasedOn is the published version that this one was made from.
	BasedOn *Origin `json:"basedOn,omitempty"`
	// Operation is the last one that moved the version's files.
	Operation uuid.UUID `json:"operation,omitzero"`
	// Before is the state that a cancelled or failed deletion goes back to.
	Before Status `json:"before,omitempty"`
	// Wanted is the visibility of a publication that is under way or failed.
	Wanted access.Visibility `json:"wanted,omitempty"`
	// Approval is the last request for one, of the publication that is wanted or was done.
	Approval    *Approval `json:"approval,omitempty"`
	Files       *Files    `json:"files,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	// Artefact tells that something may lie in the read-only place.
	Artefact    bool       `json:"artefact,omitempty"`
	PublishedAt *time.Time `json:"publishedAt,omitempty"`
	PublishedBy uuid.UUID  `json:"publishedBy,omitzero"`
	Created     time.Time  `json:"created"`
	Updated     time.Time  `json:"updated"`
	Changes     int        `json:"changes"`
	Uses        []Use      `json:"uses,omitempty"`
}

// Origin is the published version that another one was made from.
type Origin struct {
	Algorithm   uuid.UUID `json:"algorithm"`
	Version     uuid.UUID `json:"version"`
	Fingerprint string    `json:"fingerprint"`
}

// Files describes the read-only copy of a published version.
type Files struct {
	Fingerprint string `json:"fingerprint"`
	Count       int64  `json:"count"`
	Bytes       int64  `json:"bytes"`
}

// Use is something that needs a published version, such as a workflow.
type Use struct {
	By   es.Ref `json:"by"`
	Name string `json:"name"`
}

// Version finds a living version.
func (s State) Version(id uuid.UUID) (Version, bool) {
	for _, v := range s.Versions {
		if v.ID == id {
			return v, true
		}
	}
	return Version{}, false
}

// Thing is the version for the rules of access: until it is published it is
// its owner's alone.
func (s State) Thing(v Version) access.Thing {
	t := access.Thing{Tenant: s.Tenant, Project: s.Project, Owner: s.Owner, Visibility: access.Private}
	if v.Visibility != "" {
		t.Visibility = v.Visibility
	}
	return t
}

// Whole is the algorithm for the rules of access: it is seen by whoever sees
// one of its versions.
func (s State) Whole() access.Thing {
	t := access.Thing{Tenant: s.Tenant, Project: s.Project, Owner: s.Owner, Visibility: access.Private}
	for _, v := range s.Versions {
		if v.Visibility == access.Global || (v.Visibility == access.Group && t.Visibility != access.Global) {
			t.Visibility = v.Visibility
		}
	}
	return t
}

// Cut is the algorithm with only the versions that a user may see, and false
// when there is nothing for them to see.
func (s State) Cut(g access.Grants) (State, bool) {
	if s.Deleted || !g.Sees(s.Whole()) {
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

// Aggregate folds an algorithm's stream.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 2, Evolve: evolve}

// evolve applies one event.
func evolve(s State, e es.Envelope) State {
	s.Updated = e.Meta.Time
	if e.Meta.Actor.Person() && e.Meta.Index == 0 {
		s.Changes++
	}
	switch ev := e.Event.(type) {
	case AlgorithmCreated:
		s.ID, _ = e.Stream.UUID()
		s.Tenant, s.Project, s.Owner, s.Name = e.Meta.Tenant, ev.Project, ev.Owner, ev.Name
		s.Created = e.Meta.Time
	case VersionAdded:
		s.Versions = append(slices.Clip(s.Versions), added(ev, e))
	case VersionDeleted:
		s.Versions = slices.DeleteFunc(slices.Clone(s.Versions), func(v Version) bool { return v.ID == ev.Version })
	case OwnershipTransferred:
		s.Owner = ev.To
	case AlgorithmDeleted:
		s.Deleted = true
	default:
		s.Versions = evolveVersion(s.Versions, e)
	}
	return s
}

func added(ev VersionAdded, e es.Envelope) Version {
	v := Version{
		ID: ev.Version, Label: ev.Label, Settings: ev.Settings, Status: Created, BasedOn: ev.BasedOn,
		Created: e.Meta.Time, Updated: e.Meta.Time, Changes: 1,
	}
	if ev.Copy != nil {
		v.Status, v.Operation = Creating, ev.Copy.Operation
	}
	return v
}

// evolveVersion applies an event about one version to a copy of the list.
func evolveVersion(list []Version, e es.Envelope) []Version {
	about, ok := e.Event.(versionEvent)
	if !ok {
		return list
	}
	i := slices.IndexFunc(list, func(v Version) bool { return v.ID == about.version() })
	if i < 0 {
		return list
	}
	list = slices.Clone(list)
	v := list[i]
	v.Updated = e.Meta.Time
	if e.Meta.Actor.Person() {
		v.Changes++
	}
	list[i] = about.apply(v, e)
	return list
}
