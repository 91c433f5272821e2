// Package dataset holds data sets: a directory of a space under a name, which
// workloads use as it is or by a copy near them, the node cache (STO-03, STO-08).
package dataset

import (
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Category is the category of the streams and the kind of a data set's Ref.
const Category = "dataset"

// Content is where the files of a data set are and what they came to when it
// was registered, or filled into the cache last.
type Content struct {
	Space     uuid.UUID `json:"space"`
	Directory string    `json:"directory"`
	Files     int64     `json:"files"`
	Bytes     int64     `json:"bytes"`
}

// Step is what is done with the cache.
type Step string

// Steps; a cache that waits for nothing is in none.
const (
	Fill    Step = "FILL"
	Refresh Step = "REFRESH"
	Unzip   Step = "UNZIP"
)

// Cache is the copy near the workloads.
type Cache struct {
	// Ready: all of the data set is there.
	Ready bool `json:"ready,omitempty"`
	// Step is under way by the operation; without one it was the last one.
	Step      Step      `json:"step,omitempty"`
	Operation uuid.UUID `json:"operation,omitzero"`
	Last      Step      `json:"last,omitempty"`
	Files     int64     `json:"files,omitempty"`
	Bytes     int64     `json:"bytes,omitempty"`
	Filled    time.Time `json:"filled,omitzero"`
	// Problem says why the last step did not come to its end.
	Problem string `json:"problem,omitempty"`
}

// State is one data set.
type State struct {
	Tenant      uuid.UUID         `json:"tenant"`
	ID          uuid.UUID         `json:"id"`
	Project     uuid.UUID         `json:"project"`
	Owner       uuid.UUID         `json:"owner"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Visibility  access.Visibility `json:"visibility"`
	Content     Content           `json:"content"`
	Cache       Cache             `json:"cache"`
	Version     int               `json:"version"` // counts people's changes; 0: there is none
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}

// Exists tells whether there is such a data set; false again after its removal.
func (s State) Exists() bool { return s.Version > 0 }

// Ref points at the data set.
func (s State) Ref() es.Ref { return es.Ref{Kind: Category, ID: s.ID} }

// Thing is the data set for the rules of access.
func (s State) Thing() access.Thing {
	return access.Thing{Tenant: s.Tenant, Project: s.Project, Owner: s.Owner, Visibility: s.Visibility}
}

// Aggregate folds the events of a data set.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 1, Evolve: evolve}

func evolve(s State, env es.Envelope) State {
	switch e := env.Event.(type) {
	case Registered:
		s = State{
			Tenant: env.Stream.Tenant, ID: env.Root().ID, Project: e.Project, Owner: e.Owner, Name: e.Name,
			Description: e.Description, Visibility: e.Visibility, Content: e.Content, Version: 1, Created: env.Meta.Time, Updated: env.Meta.Time,
		}
	case Updated:
		s = e.apply(s)
		s.Version++
		s.Updated = env.Meta.Time
	case OwnershipTransferred:
		s.Owner = e.To
	case Removed:
		s = State{Tenant: s.Tenant, ID: s.ID}
	case CacheBegun:
		s.Cache.Step, s.Cache.Operation, s.Cache.Problem = e.Step, e.Operation, ""
	case CacheEnded:
		s.Cache = e.apply(s.Cache, env.Meta.Time)
	}
	return s
}

func (e Updated) apply(s State) State {
	if e.Name != nil {
		s.Name = e.Name.To
	}
	if e.Description != nil {
		s.Description = e.Description.To
	}
	if e.Visibility != nil {
		s.Visibility = access.Visibility(e.Visibility.To)
	}
	if e.Content != nil {
		s.Content = e.Content.To
	}
	return s
}

// apply is the cache after the end of a step. A fill or refresh that did not
// succeed leaves nothing of the cache; an unzip that did not, leaves it as it was.
func (e CacheEnded) apply(c Cache, at time.Time) Cache {
	c.Step, c.Last, c.Problem = "", e.Step, e.Problem
	switch {
	case e.Outcome == Succeeded && e.Step == Unzip:
		c.Files, c.Bytes = c.Files+e.Files, c.Bytes+e.Bytes
	case e.Outcome == Succeeded:
		c.Ready, c.Files, c.Bytes, c.Filled = true, e.Files, e.Bytes, at
	case e.Step != Unzip:
		c = Cache{Operation: c.Operation, Last: e.Step, Problem: e.Problem}
	}
	return c
}
