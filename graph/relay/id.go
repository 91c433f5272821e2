// Package relay holds what Relay's conventions need: opaque ids, sealed
// cursors and positions, and the pages of connections.
package relay

import (
	"encoding/base64"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Kind is the type of a thing in its opaque id. Numbers are stable for ever.
type Kind byte

// Kinds of things that have ids.
const (
	Tenant           Kind = 1
	Project          Kind = 2
	User             Kind = 3
	Algorithm        Kind = 4
	AlgorithmVersion Kind = 5
	Operation        Kind = 6
	StorageSpace     Kind = 7
	AuditEntry       Kind = 8
	Token            Kind = 9
	Command          Kind = 10
	Request          Kind = 11
	Model            Kind = 12
	DataSet          Kind = 20
	Image            Kind = 21
	Settings         Kind = 13
	ModelVersion     Kind = 14
	Approval         Kind = 15
)

// kinds maps the kinds of domain references to those of ids.
var kinds = map[string]Kind{
	"tenant": Tenant, "project": Project, "user": User, "algorithm": Algorithm, "algorithmVersion": AlgorithmVersion,
	"operation": Operation, "space": StorageSpace, "dataset": DataSet, "image": Image, "setting": Settings,
	"model": Model, "modelVersion": ModelVersion, "approval": Approval,
}

// ID is what an opaque id carries. Parent is the aggregate that a thing lives
// in, for kinds that do not stand alone.
type ID struct {
	Kind   Kind
	UUID   uuid.UUID
	Parent uuid.UUID
}

// format is the version of the layout: format, kind, uuid, and the parent's
// uuid where the kind has one.
const format = 1

// String is the opaque form.
func (id ID) String() string {
	b := append([]byte{format, byte(id.Kind)}, id.UUID[:]...)
	if id.Kind.nested() {
		b = append(b, id.Parent[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// nested tells whether things of the kind live in another aggregate.
func (k Kind) nested() bool { return k == AlgorithmVersion || k == ModelVersion }

// Of is the opaque id of a thing that stands alone.
func Of(k Kind, id uuid.UUID) string { return ID{Kind: k, UUID: id}.String() }

// Maybe is Of, or nil for the nil id.
func Maybe(k Kind, id uuid.UUID) *string {
	if id == uuid.Nil {
		return nil
	}
	s := Of(k, id)
	return &s
}

// OfRef is the opaque id of what a reference points to; nil for what has none.
func OfRef(r es.Ref) *string {
	k, ok := kinds[r.Kind]
	if !ok || r.ID == uuid.Nil || (k.nested() && r.Parent == uuid.Nil) {
		return nil
	}
	s := ID{Kind: k, UUID: r.ID, Parent: r.Parent}.String()
	return &s
}

// Parse reads an opaque id; false for anything that is none.
func Parse(text string) (ID, bool) {
	if len(text) > 64 {
		return ID{}, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 18 || b[0] != format {
		return ID{}, false
	}
	id := ID{Kind: Kind(b[1]), UUID: uuid.UUID(b[2:18])}
	switch {
	case id.Kind.nested() && len(b) == 34:
		id.Parent = uuid.UUID(b[18:34])
		return id, true
	default:
		return id, !id.Kind.nested() && len(b) == 18
	}
}

// Optional reads an id that may be absent, uuid.Nil then; kind 0 stands for any.
// One that can't be read is added to the faults as missing: to whoever asks it
// is like one that nothing has.
func Optional(kind Kind, text *string, faults *fault.List, field ...string) uuid.UUID {
	return OptionalID(kind, text, faults, field...).UUID
}

// OptionalID is [Optional] with the kind that was found.
func OptionalID(kind Kind, text *string, faults *fault.List, field ...string) ID {
	if text == nil {
		return ID{}
	}
	id, ok := Parse(*text)
	if !ok || kind != 0 && id.Kind != kind {
		faults.Add(access.Missing().At(field...))
		return ID{}
	}
	return id
}

// Expect reads an id of one kind. An id of another kind is answered like one
// that does not exist.
func Expect(k Kind, text string, field ...string) (ID, *fault.Fault) {
	id, ok := Parse(text)
	if !ok || id.Kind != k {
		return ID{}, access.Missing().At(field...)
	}
	return id, nil
}
