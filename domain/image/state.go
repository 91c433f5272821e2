// Package image holds the images that runs can start from (STO-06): presets by
// framework and version, references to other registries, and private ones.
package image

import (
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/workload"
)

// Category is the category of the streams and the kind of an image's Ref.
const Category = "image"

// Kind tells where an image comes from.
type Kind string

// Kinds of images.
const (
	// Preset is offered to everybody of the tenant, by framework and version.
	Preset Kind = "PRESET"
	// External is in a registry of somebody else's.
	External Kind = "EXTERNAL"
	// Private was made here, from an environment.
	Private Kind = "PRIVATE"
)

// Scenario is what an image is made to do.
type Scenario string

// Scenarios.
const (
	Development Scenario = "DEVELOPMENT"
	Training    Scenario = "TRAINING"
	Inference   Scenario = "INFERENCE"
)

// Settings are what an image is registered with.
type Settings struct {
	Kind             Kind               `json:"kind"`
	Name             string             `json:"name"`
	Framework        workload.Framework `json:"framework"`
	FrameworkVersion string             `json:"frameworkVersion,omitempty"`
	Reference        string             `json:"reference"`
	Scenario         Scenario           `json:"scenario,omitempty"`
	// Accelerators are the types that it is suitable for; none: any.
	Accelerators []string          `json:"accelerators,omitempty"`
	Scope        access.Visibility `json:"scope"`
	Description  string            `json:"description,omitempty"`
}

// State is one image.
type State struct {
	Tenant  uuid.UUID `json:"tenant"`
	ID      uuid.UUID `json:"id"`
	Project uuid.UUID `json:"project,omitzero"`
	Owner   uuid.UUID `json:"owner"`
	Settings
	Version int       `json:"version"` // 0: there is none
	Created time.Time `json:"created"`
}

// Exists tells whether there is such an image; false again after its removal.
func (s State) Exists() bool { return s.Version > 0 }

// Ref points at the image.
func (s State) Ref() es.Ref { return es.Ref{Kind: Category, ID: s.ID} }

// Thing is the image for the rules of access.
func (s State) Thing() access.Thing {
	return access.Thing{Tenant: s.Tenant, Project: s.Project, Owner: s.Owner, Visibility: s.Scope}
}

// Aggregate folds the events of an image.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 1, Evolve: evolve}

func evolve(s State, env es.Envelope) State {
	switch e := env.Event.(type) {
	case Registered:
		return State{
			Tenant: env.Stream.Tenant, ID: env.Root().ID, Project: e.Project, Owner: e.Owner, Settings: e.Settings,
			Version: 1, Created: env.Meta.Time,
		}
	case OwnershipTransferred:
		s.Owner = e.To
	case Removed:
		return State{Tenant: s.Tenant, ID: s.ID}
	}
	return s
}
