package algorithm

import (
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// The functions of this file decide what follows when an operation on a
// version's files ends. A step that comes late or twice changes nothing.

// underWay finds the version when it is in the state and by the operation that
// the step belongs to.
func underWay(s State, id, operation uuid.UUID, status Status) (Version, bool) {
	v, ok := s.Version(id)
	return v, ok && v.Status == status && v.Operation == operation
}

func decidePrepared(id, operation uuid.UUID) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if _, ok := underWay(s, id, operation, Creating); !ok {
			return nil, nil
		}
		return []es.Event{VersionPrepared{OfVersion{id}}}, nil
	}
}

func decidePreparationFailed(id, operation uuid.UUID, problem string) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if _, ok := underWay(s, id, operation, Creating); !ok {
			return nil, nil
		}
		return []es.Event{PreparationFailed{OfVersion{id}, problem}}, nil
	}
}

func decidePublished(id, operation, by uuid.UUID, files Files) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, ok := underWay(s, id, operation, Publishing)
		if !ok {
			return nil, nil
		}
		return []es.Event{VersionPublished{
			OfVersion: OfVersion{id}, Visibility: v.Wanted, From: v.Status, By: by, Files: &files,
			Fingerprint: FingerprintOf(v.Settings, files.Fingerprint),
		}}, nil
	}
}

func decidePublicationFailed(id, operation uuid.UUID, problem string) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if _, ok := underWay(s, id, operation, Publishing); !ok {
			return nil, nil
		}
		return []es.Event{PublicationFailed{OfVersion{id}, problem}}, nil
	}
}

func decidePublicationCancelled(id, operation uuid.UUID) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if _, ok := underWay(s, id, operation, Publishing); !ok {
			return nil, nil
		}
		return []es.Event{PublicationCancelled{OfVersion{id}}}, nil
	}
}

func decideRemoved(id, operation uuid.UUID) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, ok := underWay(s, id, operation, Deleting)
		if !ok {
			return nil, nil
		}
		return deleted(s, v, v.Status), nil
	}
}

func decideDeletionFailed(id, operation uuid.UUID, problem string) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, ok := underWay(s, id, operation, Deleting)
		if !ok {
			return nil, nil
		}
		return []es.Event{DeletionFailed{OfVersion: OfVersion{id}, Problem: problem, Back: v.Before}}, nil
	}
}

// decideRetry holds ALG-11: what failed is started once more, by the same
// operation, which goes on where it was.
//
// It is a person's: whoever began may have lost the right to change the version
// since then.
func decideRetry(g access.Grants, id, operation uuid.UUID, after int, purpose Purpose) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, ok := s.Version(id)
		if !ok || operation == uuid.Nil || v.Operation != operation {
			return nil, superseded()
		}
		if err := access.MustChange(g, s.Thing(v)); err != nil {
			return nil, err
		}
		switch {
		case purpose == Prepare && v.Status == CreateFailed:
			return []es.Event{PreparationRetried{OfVersion{id}, after}}, nil
		case purpose == Publish && v.Status == PublishFailed && v.Approval != nil && v.Approval.Digest != v.Digest():
			return nil, fault.New(fault.State, fault.CodeInvalidState, "It was changed since its publication was approved; publish it anew.")
		case purpose == Publish && v.Status == PublishFailed:
			return []es.Event{PublicationRetried{OfVersion{id}, after}}, nil
		case purpose == Remove && len(v.Uses) > 0:
			return nil, inUse(v) // it was put to use after the deletion failed
		case purpose == Remove && !v.Status.Transitional() && v.Status != ApprovalPending:
			return []es.Event{DeletionRetried{OfVersion{id}, v.Status, after}}, nil
		case purpose.during() == v.Status:
			return nil, nil // begun already
		}
		return nil, superseded()
	}
}

func superseded() error {
	return fault.New(fault.Conflict, fault.CodeInvalidState, "This operation was overtaken by a later one or its version moved on; there is nothing left to retry.")
}

// Purpose is what an operation on a version's files is for.
type Purpose string

// Purposes.
const (
	Prepare Purpose = "PREPARE" // copy published files into the owner's space
	Publish Purpose = "PUBLISH" // copy the owner's files to the read-only place
	Remove  Purpose = "REMOVE"  // remove the read-only copy
)

// during is the state that a version has while the operation runs.
func (p Purpose) during() Status {
	switch p {
	case Prepare:
		return Creating
	case Publish:
		return Publishing
	default:
		return Deleting
	}
}
