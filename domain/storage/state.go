package storage

import (
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
)

// Category is the category of the streams and the kind of a space's Ref.
const Category = "space"

// DefaultZone is the zone of spaces until there are others (RES).
const DefaultZone = "default"

// Kind tells who shares a space (STO-01).
type Kind string

// Kinds of spaces.
const (
	// Personal belongs to one user, one in each zone.
	Personal Kind = "PERSONAL"
	// OfProject is shared by the members of a project.
	OfProject Kind = "PROJECT"
	// OfTenant is shared by everybody of a tenant.
	OfTenant Kind = "TENANT"
)

// State is one space. What files it holds is the disk's to say, so it stays small.
type State struct {
	Tenant  uuid.UUID `json:"tenant"`
	ID      uuid.UUID `json:"id"`
	Kind    Kind      `json:"kind"`
	Owner   uuid.UUID `json:"owner,omitzero"`   // of a personal space
	Project uuid.UUID `json:"project,omitzero"` // of a project's space
	Zone    string    `json:"zone"`
	Created time.Time `json:"created"`
	Quota   *int64    `json:"quota,omitempty"` // bytes; nil: what the installation gives
	Version int       `json:"version"`         // counts changes that people made to the space itself
}

// Exists tells whether the space was ever made.
func (s State) Exists() bool { return s.Kind != "" }

// Ref points at the space.
func (s State) Ref() es.Ref { return es.Ref{Kind: Category, ID: s.ID} }

// Aggregate folds the events of a space.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 2, Evolve: evolve}

func evolve(s State, env es.Envelope) State {
	switch e := env.Event.(type) {
	case SpaceCreated:
		return State{
			Tenant: env.Stream.Tenant, ID: env.Root().ID, Kind: e.Kind,
			Owner: e.Owner, Project: e.Project, Zone: e.Zone, Created: env.Meta.Time,
		}
	case QuotaSet:
		s.Quota = e.To
		s.Version++
	}
	return s // what happens to files is history, not state
}
