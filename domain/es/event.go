package es

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Event is what a feature's event types implement. Payloads are plain structs
// with JSON tags; the stored name is given at registration.
type Event interface {
	// Changes lists what the event changed, field by field, for the audit and
	// the history. Secrets are never part of it. It may be empty.
	Changes() []Change
}

// Subjected is implemented by events that are about something inside their
// aggregate, such as one version of an algorithm.
type Subjected interface {
	// Subject names the thing, within the aggregate root of the stream.
	Subject(root Ref) Ref
}

// Change is one field before and after, as JSON values; nil stands for absent.
type Change struct {
	Field string          `json:"field"`
	From  json.RawMessage `json:"from,omitempty"`
	To    json.RawMessage `json:"to,omitempty"`
}

// Ref points at a thing of the platform. Parent is the aggregate it lives in,
// when it is not one itself.
type Ref struct {
	Kind   string    `json:"kind,omitempty"` // "algorithm", "algorithmVersion", …
	ID     uuid.UUID `json:"id,omitzero"`
	Parent uuid.UUID `json:"parent,omitzero"`
}

// ActorKind tells what acted.
type ActorKind string

// Kinds of actors.
const (
	ActorUser   ActorKind = "user"
	ActorToken  ActorKind = "token" // a user, through a personal API token
	ActorSystem ActorKind = "system"
)

// Actor is who caused an event: a user, a user through a token, or a part of the system.
type Actor struct {
	Kind ActorKind `json:"kind"`
	User uuid.UUID `json:"user,omitzero"`
	// Token is the id of the API token used, never its secret.
	Token uuid.UUID `json:"token,omitzero"`
	// Part names the part of the system, such as "operations" or "repair".
	Part string `json:"part,omitempty"`
}

// Person tells whether a person acted, directly or through a token.
func (a Actor) Person() bool { return a.Kind == ActorUser || a.Kind == ActorToken }

// Metadata travels with every event. The two "$" names are the event store's
// own convention for tracing causes, so that its tools understand them too.
type Metadata struct {
	Tenant      uuid.UUID `json:"tenant"`
	Project     uuid.UUID `json:"project,omitzero"`
	Actor       Actor     `json:"actor"`
	Command     uuid.UUID `json:"command"`
	Action      string    `json:"action"` // the mutation or the step of a process
	Request     string    `json:"request,omitempty"`
	Correlation uuid.UUID `json:"$correlationId"`
	Causation   uuid.UUID `json:"$causationId,omitzero"`
	Reason      string    `json:"reason,omitempty"`
	// Time comes from the injected clock, in microseconds, UTC; the store's own
	// time is never used.
	Time time.Time `json:"time"`
	// Index is the place of the event among those of one append.
	Index int `json:"index,omitempty"`
}

// Envelope is a decoded event with all that is known about it.
type Envelope struct {
	ID       uuid.UUID
	Name     string // stored name after upcasting
	Stream   StreamID
	Revision Revision
	Position Position
	Meta     Metadata
	Event    Event
}

// Root is the aggregate that the event's stream belongs to.
func (e Envelope) Root() Ref {
	id, _ := e.Stream.UUID() // streams without an id of their own have the zero Ref id
	return Ref{Kind: e.Stream.Category, ID: id}
}

// Subject is the thing that the event is about.
func (e Envelope) Subject() Ref {
	if s, ok := e.Event.(Subjected); ok {
		return s.Subject(e.Root())
	}
	return e.Root()
}

// ValueOf renders a value for a Change. What can't be rendered is a
// programming error and shows as null.
func ValueOf(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil || string(b) == "null" {
		return nil
	}
	return b
}

// Set is a Change to a new value with no old one.
func Set(field string, to any) Change { return Change{Field: field, To: ValueOf(to)} }

// Moved is a Change from one value to another.
func Moved(field string, from, to any) Change {
	return Change{Field: field, From: ValueOf(from), To: ValueOf(to)}
}
