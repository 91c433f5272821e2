package es

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// Clock gives the time; the only source of time in the domain.
type Clock interface{ Now() time.Time }

// IDs makes new identifiers (UUIDv7), the only source of them in the domain.
type IDs interface{ New() uuid.UUID }

// Command is who wants what, and how it is told apart from every other command.
type Command struct {
	ID          uuid.UUID
	Action      string // the mutation's name, "publishAlgorithmVersion"
	Tenant      uuid.UUID
	Project     uuid.UUID
	Actor       Actor
	Request     string
	Correlation uuid.UUID
	Causation   uuid.UUID
	Reason      string
	// NeedsReason: the rules want a reason for the command. Its refusals are
	// recorded singly, however many others there are.
	NeedsReason bool
	// Subject is the thing that the command is about, when it exists already;
	// it is what a refusal is recorded on.
	Subject Ref
	// Key is the client's idempotency key, empty when it gave none; Digest is
	// the digest of the input it was given with.
	Key    string
	Digest []byte

	// item is the place of the command in a batch, from 1 on; 0: it is no item.
	item int
	// resumed: the command may have been carried out already, in part or whole.
	resumed bool
	// run tells apart what one command may append more than once; nil otherwise.
	run   uuid.UUID
	track *track
	ids   []uuid.UUID
}

// track gathers what a command did, across everything it appended to, and what
// it was found to be about.
type track struct {
	position Position
	names    []string
	project  uuid.UUID
}

// In tells the project that the command is about, once its subject was looked
// at: its events carry it from then on, and so does a refusal.
func (c *Command) In(project uuid.UUID) {
	c.Project = project
	if c.track != nil {
		c.track.project = project
	}
}

// project is the one that the command was found to be about, or was given.
func (c Command) project() uuid.UUID {
	if c.track != nil && c.track.project != uuid.Nil {
		return c.track.project
	}
	return c.Project
}

// Item is the command of one item of a batch: a command of its own, whose id and
// idempotency key follow from the batch's and its place.
func (c Command) Item(i int) Command {
	c.ID = uuid.NewSHA1(c.ID, []byte(strconv.Itoa(i)))
	c.item = i + 1
	return c
}

// idsPerCommand are drawn before a command is accepted, so that a command that
// is finished after a crash makes the same things.
const idsPerCommand = 4

// NewIDs are the ids for the things that the command makes: the same ones
// however often it is run. At most idsPerCommand.
func (c Command) NewIDs(n int) []uuid.UUID { return c.ids[:n] }

// eventID is the id of the i-th event that the command appends to a stream.
func (c Command) eventID(stream StreamID, name string, i int) uuid.UUID {
	b := binary.BigEndian.AppendUint32([]byte(stream.String()+"/"+name), uint32(i)) //nolint:gosec // an index of one append
	if c.run != uuid.Nil {
		b = append(b, c.run[:]...)
	}
	return uuid.NewSHA1(c.ID, b)
}

// metadata is what the command's events carry.
func (c Command) metadata(at time.Time, index int) Metadata {
	return Metadata{
		Tenant: c.Tenant, Project: c.project(), Actor: c.Actor, Command: c.ID, Action: c.Action,
		Request: c.Request, Correlation: c.Correlation, Causation: c.Causation, Reason: c.Reason,
		Time: at, Index: index,
	}
}

// processSpace is the name space of the ids of commands that processes give.
var processSpace = uuid.MustParse("6f1c5f0e-5a52-5d4e-9f0f-2b8a1f6f7a11")

// again is the command as one that may have been carried out already.
func (c Command) again() Command {
	c.resumed = true
	return c
}

// Caused is the command that a process gives because of an event. Its id comes
// from both, so giving it again changes nothing.
func Caused(process, action string, by Envelope) Command {
	return Command{
		ID:          uuid.NewSHA1(processSpace, []byte(process+"/"+action+"/"+by.ID.String())),
		Action:      action,
		Tenant:      by.Meta.Tenant,
		Project:     by.Meta.Project,
		Actor:       Actor{Kind: ActorSystem, Part: process},
		Request:     by.Meta.Request,
		Correlation: by.Meta.Correlation,
		Causation:   by.ID,
		resumed:     true,
	}
}

// System is a command that a part of the system gives by itself.
func System(id uuid.UUID, part, action string, tenant uuid.UUID) Command {
	return Command{ID: id, Action: action, Tenant: tenant, Correlation: id, Actor: Actor{Kind: ActorSystem, Part: part}, resumed: true}
}
