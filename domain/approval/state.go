// Package approval holds requests that somebody else must agree to (APR): who
// asks for which action on which version of which thing, and who decided. It
// knows no other feature; what follows from a decision is a flow's.
package approval

import (
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Category is the category of the streams and the kind of a request's Ref.
const Category = "approval"

// Action is what a request asks to have done.
type Action string

// Actions.
const (
	// Publish shows the subject to the whole tenant.
	Publish Action = "PUBLISH"
)

// Subject is what a request is about.
type Subject struct {
	es.Ref
	Action Action `json:"action"`
	// Digest tells exactly what was to be approved: it differs as soon as the
	// thing was changed (APR-05).
	Digest string `json:"digest"`
}

// Status is where a request stands (APR-01).
type Status string

// Statuses.
const (
	Pending         Status = "PENDING"
	StatusApproved  Status = "APPROVED"
	StatusRejected  Status = "REJECTED"
	StatusWithdrawn Status = "WITHDRAWN"
	StatusExpired   Status = "EXPIRED"
)

// State is one request.
type State struct {
	Tenant    uuid.UUID `json:"tenant"`
	ID        uuid.UUID `json:"id"`
	Subject   Subject   `json:"subject"`
	Project   uuid.UUID `json:"project,omitzero"`
	Requester uuid.UUID `json:"requester"`
	Reason    string    `json:"reason,omitempty"` // why it was asked for
	Status    Status    `json:"status"`
	Requested time.Time `json:"requested"`
	Expires   time.Time `json:"expires"`
	// Ended, By and Answer tell of the end: when, by whom (nobody when it came by
	// itself), and with which words.
	Ended  time.Time `json:"ended,omitzero"`
	By     uuid.UUID `json:"by,omitzero"`
	Answer string    `json:"answer,omitempty"`
}

// Exists tells whether the request was ever made.
func (s State) Exists() bool { return s.Status != "" }

// Thing is the request for the rules of access: its requester sees it, tenant
// admins and auditors see all of the tenant.
func (s State) Thing() access.Thing {
	return access.Thing{Tenant: s.Tenant, Project: s.Project, Owner: s.Requester, Visibility: access.Private}
}

// Awaits tells whether the request waits for a decision that the person may give.
func (s State) Awaits(g access.Grants) bool {
	return s.Status == Pending && g.Tenant == s.Tenant && g.Writes() && g.Admin() && s.Requester != g.User
}

// Aggregate folds the events of a request.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 1, Evolve: evolve}

func evolve(s State, env es.Envelope) State {
	switch e := env.Event.(type) {
	case Requested:
		return State{
			Tenant: env.Stream.Tenant, ID: env.Root().ID, Subject: e.Subject, Project: e.Project, Requester: e.Requester,
			Reason: env.Meta.Reason, Status: Pending, Requested: env.Meta.Time, Expires: e.Expires,
		}
	case Approved:
		return s.end(StatusApproved, env)
	case Rejected:
		return s.end(StatusRejected, env)
	case Withdrawn:
		return s.end(StatusWithdrawn, env)
	case Expired:
		return s.end(StatusExpired, env)
	}
	return s
}

func (s State) end(status Status, env es.Envelope) State {
	s.Status, s.Ended, s.By, s.Answer = status, env.Meta.Time, env.Meta.Actor.User, env.Meta.Reason
	return s
}
