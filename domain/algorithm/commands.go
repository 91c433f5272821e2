package algorithm

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

// newVersion are the facts of a version that is added.
type newVersion struct {
	id        uuid.UUID
	operation uuid.UUID
	label     string
	settings  Settings
	basedOn   *Origin
	copyFrom  uuid.UUID // artefact to copy first; nil: nothing to copy
}

func (n newVersion) event() VersionAdded {
	ev := VersionAdded{OfVersion: OfVersion{n.id}, Label: n.label, Settings: n.settings, BasedOn: n.basedOn}
	if n.copyFrom != uuid.Nil {
		ev.Copy = &Copy{Operation: n.operation, Artefact: n.copyFrom}
	}
	return ev
}

func decideCreate(name string, owner, project uuid.UUID, n newVersion) es.Decide[State] {
	return func(State) ([]es.Event, error) {
		return []es.Event{AlgorithmCreated{Name: name, Owner: owner, Project: project}, n.event()}, nil
	}
}

func decideAddVersion(g access.Grants, n newVersion) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if err := mayChangeWhole(g, s); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(s.Versions, func(v Version) bool { return v.Label == n.label }) {
			return nil, fault.New(fault.Conflict, fault.CodeVersionTaken, "The algorithm has a version with this label; choose another one.").At("label")
		}
		return []es.Event{n.event()}, nil
	}
}

// edit are the facts of an edit.
type edit struct {
	ref       VersionRef
	fields    Fields // with the source resolved
	origin    *Origin
	copyFrom  uuid.UUID
	operation uuid.UUID
	expected  *int
}

func decideEdit(g access.Grants, e edit) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, err := mayChange(g, s, e.ref.Version)
		if err != nil {
			return nil, err
		}
		if err := expect(e.expected, v); err != nil {
			return nil, err
		}
		after := e.fields.Apply(v.Settings)
		if e.fields.Deployment.Cleared() {
			after.Deployment = ""
		}
		if faults := checkSettings(&after); len(faults) > 0 {
			return nil, faults
		}
		set, was := between(v.Settings, after)
		if err := mayEdit(v, set, e.origin != nil); err != nil {
			return nil, err
		}
		if set.Empty() && e.copyFrom == uuid.Nil {
			return nil, nil
		}
		ev := VersionEdited{OfVersion: OfVersion{v.ID}, From: v.Status, Set: set, Was: was, BasedOn: e.origin}
		if e.copyFrom != uuid.Nil {
			ev.Copy = &Copy{Operation: e.operation, Artefact: e.copyFrom}
		}
		return []es.Event{ev}, nil
	}
}

// mayEdit holds ALG-12: what can be edited depends on the state.
func mayEdit(v Version, set Fields, based bool) error {
	switch v.Status {
	case Created, CreateFailed, PublishFailed:
		return nil
	case Published:
		set.Description = Fields{}.Description
		if set.Empty() && !based {
			return nil
		}
		return fault.New(fault.State, fault.CodeInvalidState, "Of a published version only the description can be edited; make a new version for the rest.").With("state", string(v.Status))
	default:
		return wrongState(v, "edited")
	}
}

// publishing are the facts of a publication: what waits for an approval first,
// and the id of the operation, or of the request.
type publishing struct {
	id       uuid.UUID
	approval bool
}

func decidePublish(g access.Grants, in PublishInput, f publishing) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, err := mayChange(g, s, in.Version)
		if err != nil {
			return nil, err
		}
		if err := expect(in.Expected, v); err != nil {
			return nil, err
		}
		if v.Status != Created && v.Status != PublishFailed {
			return nil, wrongState(v, "published")
		}
		if f.approval {
			return []es.Event{ApprovalRequested{
				OfVersion: OfVersion{v.ID}, Visibility: in.Visibility, Request: f.id, Digest: v.Digest(), From: v.Status,
			}}, nil
		}
		return beginPublication(v, in.Visibility, f.id, g.User), nil
	}
}

// beginPublication starts a publication; without files to copy it is done at once.
func beginPublication(v Version, visibility access.Visibility, operation, by uuid.UUID) []es.Event {
	if v.Settings.Source.Script == nil {
		return []es.Event{VersionPublished{
			OfVersion: OfVersion{v.ID}, Visibility: visibility, From: v.Status, By: by, Fingerprint: FingerprintOf(v.Settings, ""),
		}}
	}
	return []es.Event{PublicationStarted{OfVersion: OfVersion{v.ID}, Visibility: visibility, Operation: operation, From: v.Status}}
}

// decideDelete holds ALG-08: in a batch only what is not published.
func decideDelete(g access.Grants, version, operation uuid.UUID, expected *int, batch bool) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, err := mayChange(g, s, version)
		if err != nil {
			return nil, err
		}
		if err := expect(expected, v); err != nil {
			return nil, err
		}
		if v.Status.Transitional() {
			return nil, wrongState(v, "deleted")
		}
		if batch && v.Status == Published {
			return nil, fault.New(fault.State, fault.CodeNotAllowed, "Published versions are deleted one at a time, never in a batch; use deleteAlgorithmVersion.").At("ids")
		}
		if len(v.Uses) > 0 {
			return nil, inUse(v)
		}
		var events []es.Event
		from := v.Status
		if v.Status == ApprovalPending {
			// What is gone needs no approval, nor does what is back after a failed deletion.
			events, from = append(events, ApprovalEnded{OfVersion: OfVersion{v.ID}, Request: v.Approval.Request}), Created
		}
		if v.Artefact {
			return append(events, DeletionStarted{OfVersion: OfVersion{v.ID}, Operation: operation, From: from}), nil
		}
		return append(events, deleted(s, v, from)...), nil
	}
}

// deleted is the end of a version, and of the algorithm with its last one.
func deleted(s State, v Version, from Status) []es.Event {
	events := []es.Event{VersionDeleted{OfVersion: OfVersion{v.ID}, Label: v.Label, From: from}}
	if len(s.Versions) == 1 {
		events = append(events, AlgorithmDeleted{Name: s.Name, Project: s.Project})
	}
	return events
}

func decideUse(g access.Grants, ref VersionRef, use Use) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, ok := s.Version(ref.Version)
		if !ok || !g.Sees(s.Thing(v)) {
			return nil, access.Missing()
		}
		if v.Status != Published {
			return nil, wrongState(v, "used")
		}
		if slices.Contains(v.Uses, use) {
			return nil, nil
		}
		return []es.Event{UseRegistered{OfVersion: OfVersion{v.ID}, Use: use}}, nil
	}
}

func decideRelease(ref VersionRef, by es.Ref) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, ok := s.Version(ref.Version)
		if !ok || !slices.ContainsFunc(v.Uses, func(u Use) bool { return u.By == by }) {
			return nil, nil
		}
		return []es.Event{UseReleased{OfVersion: OfVersion{v.ID}, By: by}}, nil
	}
}

// mayChange finds a version for its owner or a tenant admin; for who may not
// see it, it does not exist.
func mayChange(g access.Grants, s State, id uuid.UUID) (Version, error) {
	v, ok := s.Version(id)
	if !ok || s.Deleted {
		return Version{}, access.Missing()
	}
	return v, access.MustChange(g, s.Thing(v))
}

func mayChangeWhole(g access.Grants, s State) error {
	if s.ID == uuid.Nil || s.Deleted {
		return access.Missing()
	}
	return access.MustChange(g, s.Whole())
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

func wrongState(v Version, done string) error {
	msg := fmt.Sprintf("A version in state %s can't be %s.", v.Status, done)
	switch v.Status {
	case Creating, Publishing, Deleting:
		msg += " Something else is under way with it; wait until that ends and look again."
	case Published:
		msg += " Make a new version instead."
	case ApprovalPending:
		msg += " Withdraw its approval request first."
	}
	return fault.New(fault.Conflict, fault.CodeInvalidState, msg).With("state", string(v.Status))
}

func inUse(v Version) error {
	names := make([]string, len(v.Uses))
	for i, u := range v.Uses {
		names[i] = u.By.Kind + " " + u.Name
	}
	msg := "This version is used by " + names[0]
	if len(names) > 1 {
		msg += fmt.Sprintf(" and %d more", len(names)-1)
	}
	return fault.New(fault.State, fault.CodeInUse, msg+"; remove it there first.").With("usedBy", fmt.Sprint(names))
}
