package approval

import (
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
)

// Types are the feature's events under their stored names.
var Types = []es.TypeDef{
	es.Type[Requested]("approval.requested.v1"),
	es.Type[Approved]("approval.approved.v1"),
	es.Type[Rejected]("approval.rejected.v1"),
	es.Type[Withdrawn]("approval.withdrawn.v1"),
	es.Type[Expired]("approval.expired.v1"),
}

// Requested opens a request. Why it was made is the reason of the event.
type Requested struct {
	Subject   Subject   `json:"subject"`
	Requester uuid.UUID `json:"requester"`
	Project   uuid.UUID `json:"project,omitzero"`
	// Expires is when the request ends by itself; a setting that changes later
	// does not move it.
	Expires time.Time `json:"expires"`
}

// Changes implements es.Event.
func (e Requested) Changes() []es.Change {
	return []es.Change{
		es.Set("state", Pending), es.Set("action", e.Subject.Action), es.Set("subject", e.Subject.ID),
		es.Set("requester", e.Requester), es.Set("expiresAt", e.Expires),
	}
}

// Approved is the yes of a tenant admin.
type Approved struct{}

// Changes implements es.Event.
func (Approved) Changes() []es.Change { return []es.Change{es.Moved("state", Pending, StatusApproved)} }

// Rejected is the no of a tenant admin; why is the reason of the event.
type Rejected struct{}

// Changes implements es.Event.
func (Rejected) Changes() []es.Change { return []es.Change{es.Moved("state", Pending, StatusRejected)} }

// Withdrawn takes a request back: its requester did, or what it was for is gone.
type Withdrawn struct{}

// Changes implements es.Event.
func (Withdrawn) Changes() []es.Change {
	return []es.Change{es.Moved("state", Pending, StatusWithdrawn)}
}

// Expired ends a request that nobody decided in time.
type Expired struct{}

// Changes implements es.Event.
func (Expired) Changes() []es.Change { return []es.Change{es.Moved("state", Pending, StatusExpired)} }
