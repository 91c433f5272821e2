package algorithm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Approvals tells what has to be approved by somebody else (ALG-05).
type Approvals interface {
	GlobalAlgorithmApprovalRequired(ctx context.Context, tenant, project uuid.UUID) (bool, error)
}

// Approval is the request that a publication waits for, or was agreed to by.
type Approval struct {
	Request uuid.UUID `json:"request"`
	By      uuid.UUID `json:"by"` // who asked
	// Digest is what was asked for; see [Version.Digest].
	Digest string `json:"digest"`
}

// from keeps the approval of a publication that was waiting for it or is under
// way with it; one that needed none has none.
func (a *Approval) from(s Status) *Approval {
	if s == ApprovalPending || s == Publishing {
		return a
	}
	return nil
}

// Digest tells versions apart by all that an approver reads of them. The files
// have no digest before they are copied; where they lie has.
func (v Version) Digest() string {
	sum := sha256.Sum256(es.ValueOf(v.Settings))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ApprovalRequested says that a publication waits for somebody else's yes.
type ApprovalRequested struct {
	OfVersion
	Visibility access.Visibility `json:"visibility"`
	Request    uuid.UUID         `json:"request"`
	Digest     string            `json:"digest"`
	From       Status            `json:"from"`
}

// Changes implements es.Event.
func (e ApprovalRequested) Changes() []es.Change {
	return append(moved(e.From, ApprovalPending), es.Set("wantedVisibility", e.Visibility), es.Set("approval", e.Request))
}

func (e ApprovalRequested) apply(v Version, env es.Envelope) Version {
	v.Status, v.Problem, v.Wanted = ApprovalPending, "", e.Visibility
	v.Approval = &Approval{Request: e.Request, By: env.Meta.Actor.User, Digest: e.Digest}
	return v
}

// ApprovalEnded brings a version back from waiting: the request was rejected,
// withdrawn or expired, or the version is to be deleted.
type ApprovalEnded struct {
	OfVersion
	Request uuid.UUID `json:"request"`
	Problem string    `json:"problem,omitempty"`
}

// Changes implements es.Event.
func (e ApprovalEnded) Changes() []es.Change {
	c := moved(ApprovalPending, Created)
	if e.Problem != "" {
		c = append(c, es.Set("problem", e.Problem))
	}
	return c
}

func (e ApprovalEnded) apply(v Version, _ es.Envelope) Version {
	v.Status, v.Problem, v.Wanted = Created, e.Problem, ""
	return v
}

// waits finds the version when it waits for the request.
func waits(s State, id, request uuid.UUID) (Version, bool) {
	v, ok := s.Version(id)
	return v, ok && v.Status == ApprovalPending && v.Approval.Request == request
}

// Awaited is the digest of a version as it stands, while it waits for the
// request; empty when it is gone or moved on.
func (s State) Awaited(id, request uuid.UUID) string {
	if v, ok := waits(s, id, request); ok {
		return v.Digest()
	}
	return ""
}

func decideApproved(id, request, operation uuid.UUID) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		v, ok := waits(s, id, request)
		if !ok {
			return nil, nil
		}
		return beginPublication(v, v.Wanted, operation, v.Approval.By), nil
	}
}

func decideNotApproved(id, request uuid.UUID, problem string) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if _, ok := waits(s, id, request); !ok {
			return nil, nil
		}
		return []es.Event{ApprovalEnded{OfVersion: OfVersion{id}, Request: request, Problem: problem}}, nil
	}
}

// Approved starts the publication that a request was made for, by an operation
// of that id where files are copied (APR-04).
func (h *Handler) Approved(ctx context.Context, cmd es.Command, ref VersionRef, request, operation uuid.UUID) error {
	return h.step(ctx, cmd, Step{VersionRef: ref}, decideApproved(ref.Version, request, operation))
}

// NotApproved brings a version back from waiting for a request.
func (h *Handler) NotApproved(ctx context.Context, cmd es.Command, ref VersionRef, request uuid.UUID, problem string) error {
	return h.step(ctx, cmd, Step{VersionRef: ref}, decideNotApproved(ref.Version, request, problem))
}
