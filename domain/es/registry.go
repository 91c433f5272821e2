package es

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"time"
)

// ErrUnknownEvent says that the log holds an event that this program doesn't
// know: it was written by a newer one. It is never skipped.
var ErrUnknownEvent = errors.New("unknown event type")

// TypeDef registers one event type under its stored name.
type TypeDef struct {
	name string
	typ  reflect.Type
	read func([]byte) (Event, error)
	// upcast turns old JSON into the JSON of the next version, named next.
	upcast func(json.RawMessage) (json.RawMessage, error)
	next   string
}

// Name is the stored name.
func (d TypeDef) Name() string { return d.name }

// Old tells whether the type is only read, through an upcaster.
func (d TypeDef) Old() bool { return d.upcast != nil }

// Type registers E under a stored name, "<feature>.<past verb>.v<n>".
func Type[E Event](name string) TypeDef {
	return TypeDef{
		name: name,
		typ:  reflect.TypeFor[E](),
		read: func(data []byte) (Event, error) {
			var e E
			if err := json.Unmarshal(data, &e); err != nil {
				return nil, err
			}
			return e, nil
		},
	}
}

// Upcast registers an old stored name whose JSON becomes that of a newer one.
// Functions are pure; old JSON loads for ever.
func Upcast(old, newer string, f func(json.RawMessage) (json.RawMessage, error)) TypeDef {
	return TypeDef{name: old, next: newer, upcast: f}
}

// Registry knows every event type. It is built once, from lists that the
// features export, and read-only afterwards.
type Registry struct {
	byName map[string]TypeDef
	byType map[reflect.Type]string
}

// NewRegistry builds a registry; a name or Go type given twice, and an upcaster
// that leads nowhere, is an error.
func NewRegistry(lists ...[]TypeDef) (*Registry, error) {
	r := &Registry{byName: map[string]TypeDef{}, byType: map[reflect.Type]string{}}
	for _, list := range lists {
		for _, d := range list {
			if _, dup := r.byName[d.name]; dup {
				return nil, fmt.Errorf("event name %s is registered twice", d.name)
			}
			r.byName[d.name] = d
			if d.Old() {
				continue
			}
			if other, dup := r.byType[d.typ]; dup {
				return nil, fmt.Errorf("%s and %s are the same Go type", other, d.name)
			}
			r.byType[d.typ] = d.name
		}
	}
	for name := range r.byName {
		if _, err := r.current(name); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Names lists all stored names, sorted.
func (r *Registry) Names() []string {
	names := make([]string, 0, len(r.byName))
	for n := range r.byName {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// current follows upcasters from a name to the definition that is in use.
func (r *Registry) current(name string) (TypeDef, error) {
	for range len(r.byName) + 1 {
		d, ok := r.byName[name]
		if !ok {
			return TypeDef{}, fmt.Errorf("%w: %s", ErrUnknownEvent, name)
		}
		if !d.Old() {
			return d, nil
		}
		name = d.next
	}
	return TypeDef{}, fmt.Errorf("upcasters of %s run in a circle", name)
}

// Encode renders an event with its metadata for the log, without an id.
func (r *Registry) Encode(e Event, meta Metadata) (Raw, error) {
	name, ok := r.byType[reflect.TypeOf(e)]
	if !ok {
		return Raw{}, fmt.Errorf("event %T is not registered", e)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return Raw{}, fmt.Errorf("encode %s: %w", name, err)
	}
	meta.Time = meta.Time.UTC().Truncate(time.Microsecond)
	m, err := json.Marshal(meta)
	if err != nil {
		return Raw{}, fmt.Errorf("encode metadata of %s: %w", name, err)
	}
	return Raw{Type: name, Data: data, Metadata: m}, nil
}

// Decode reads a recorded event, through upcasters where it is old.
func (r *Registry) Decode(rec Recorded) (Envelope, error) {
	d, ok := r.byName[rec.Type]
	if !ok {
		return Envelope{}, fmt.Errorf("%w: %s at position %d; it was written by a newer program", ErrUnknownEvent, rec.Type, rec.Position)
	}
	data := json.RawMessage(rec.Data)
	for d.Old() {
		var err error
		if data, err = d.upcast(data); err != nil {
			return Envelope{}, fmt.Errorf("upcast %s at position %d: %w", d.name, rec.Position, err)
		}
		if d, ok = r.byName[d.next]; !ok {
			return Envelope{}, fmt.Errorf("%w: %s", ErrUnknownEvent, d.next)
		}
	}
	env := Envelope{ID: rec.ID, Name: d.name, Revision: rec.Revision, Position: rec.Position}
	var err error
	if env.Stream, err = ParseStream(rec.Stream); err != nil {
		return Envelope{}, err
	}
	if env.Event, err = d.read(data); err != nil {
		return Envelope{}, fmt.Errorf("decode %s at position %d: %w", d.name, rec.Position, err)
	}
	if err := json.Unmarshal(rec.Metadata, &env.Meta); err != nil {
		return Envelope{}, fmt.Errorf("decode metadata of %s at position %d: %w", d.name, rec.Position, err)
	}
	return env, nil
}
