// Package runner makes the read models: it follows the event log and lets each
// projection turn events into rows, exactly once, in order, and again from the
// beginning when that is asked for.
//
// All projections' tables lie together in one Postgres schema, a generation.
// One process at a time (the leader) writes it; every process reads the
// generation that a row in tallyard.generations says is live. Building anew
// happens in a second generation beside the live one, so reads never stop.
//
// A reader of the code starts with [Projection] and [Writer] (what a feature
// gives), then flow.go (one generation following the log), batch.go (one
// transaction), leader.go (which generations there are) and reader.go (queries).
package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"tallyard/domain/es"
)

// Projection is one feature's read model: its tables and what each event does
// to them.
type Projection struct {
	// Name is stable: checkpoints and parked streams hang on it.
	Name string
	// Version is raised when a handler changes what it writes; a new generation
	// is built then.
	Version int
	// Schema is the DDL of the projection's own tables, with plain names: it is
	// run with the generation as the only place they can go to.
	Schema string
	// Indexes is the DDL of indexes that only readers use. A new generation gets
	// them when it has caught up, so handlers must not need them: those find rows
	// by the keys that Schema declares.
	Indexes string
	// Categories are the stream categories that are read; empty means all. An
	// event in one of them that this program does not know halts the projection.
	Categories []string
	// On maps stored event names to what they do. Events without an entry are
	// passed over.
	On map[string]Handler
	// Every is called for events that On has no entry for; it may be nil.
	Every Handler

	// raw is the handler of built-in projections: it sees a batch as a whole, also
	// what this program can't decode.
	raw func(w *Writer, items []*item)
}

// Handler queues the rows that an event makes. It is deterministic: it looks
// at nothing but the event, so no clock, no random values and no reads. An error
// says that this event can't be projected; its stream is parked then.
type Handler func(w *Writer, env es.Envelope) error

// reads tells whether the projection follows a category of streams.
func (p *Projection) reads(category string) bool {
	return len(p.Categories) == 0 || slices.Contains(p.Categories, category)
}

// handler finds what an event does, nil when it does nothing.
func (p *Projection) handler(name string) Handler {
	if h, ok := p.On[name]; ok {
		return h
	}
	return p.Every
}

// Set is all the projections of a program; their tables make one generation.
type Set struct {
	list   []*Projection
	byName map[string]*Projection
	digest string
}

var projectionName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// NewSet checks the projections and adds the built-in ones (the time index).
func NewSet(projections ...Projection) (*Set, error) {
	s := &Set{byName: map[string]*Projection{}}
	for _, p := range append([]Projection{timelineProjection()}, projections...) {
		switch {
		case !projectionName.MatchString(p.Name):
			return nil, fmt.Errorf("projection name %q: lower-case letters, digits and _ only, at most 40", p.Name)
		case s.byName[p.Name] != nil:
			return nil, fmt.Errorf("two projections are named %s", p.Name)
		case p.Version < 1:
			return nil, fmt.Errorf("projection %s has no version", p.Name)
		case strings.TrimSpace(p.Schema) == "":
			return nil, fmt.Errorf("projection %s has no schema", p.Name)
		case p.raw == nil && p.Every == nil && len(p.On) == 0:
			return nil, fmt.Errorf("projection %s handles no event", p.Name)
		}
		s.byName[p.Name] = &p
		s.list = append(s.list, &p)
	}
	s.digest = digest(s.list)
	return s, nil
}

// digest tells generations of differently shaped tables apart.
func digest(list []*Projection) string {
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = fmt.Sprintf("%s\x00%d\x00%s\x00%s", p.Name, p.Version, p.Schema, p.Indexes)
	}
	sort.Strings(parts)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x01")))
	return hex.EncodeToString(sum[:])
}

// Digest is the SHA-256 over every projection's name, version, schema and indexes.
func (s *Set) Digest() string { return s.digest }

// Names lists the projections, the built-in ones included, sorted.
func (s *Set) Names() []string {
	names := make([]string, 0, len(s.list))
	for _, p := range s.list {
		names = append(names, p.Name)
	}
	sort.Strings(names)
	return names
}

// ProjectionsFor lists the projections that do something with one of the
// events: the ones a mutation has to wait for. The time index is not among them.
func (s *Set) ProjectionsFor(eventNames ...string) []string {
	var names []string
	for _, p := range s.list {
		if slices.ContainsFunc(eventNames, func(n string) bool { return p.raw == nil && p.handler(n) != nil }) {
			names = append(names, p.Name)
		}
	}
	sort.Strings(names)
	return names
}

// Check tells whether every event name that a projection handles is
// registered, so that a typing error does not pass over events in silence.
func (s *Set) Check(registry *es.Registry) error {
	known := registry.Names()
	var errs []error
	for _, p := range s.list {
		for name := range p.On {
			if !slices.Contains(known, name) {
				errs = append(errs, fmt.Errorf("projection %s handles %s, which is not a registered event", p.Name, name))
			}
		}
	}
	return errors.Join(errs...)
}
