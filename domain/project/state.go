package project

import "tallyard/domain/es"

// State is a project as its events leave it.
type State struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Closed      bool   `json:"closed,omitempty"`
	Version     int    `json:"version"` // counts changes made by users; 0: there is no such project
}

// Exists tells whether the project was ever created.
func (s State) Exists() bool { return s.Version > 0 }

// Open tells whether things can be made in the project.
func (s State) Open() bool { return s.Exists() && !s.Closed }

// Aggregate folds projects. It is cached: whatever is made in one asks for it.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 2, Cached: true, Evolve: evolve}

func evolve(s State, env es.Envelope) State {
	switch ev := env.Event.(type) {
	case Created:
		s.Name, s.Description = ev.Name, ev.Description
	case Updated:
		if ev.Name != nil {
			s.Name = ev.Name.To
		}
		if ev.Description != nil {
			s.Description = ev.Description.To
		}
	case Closed:
		s.Closed = true
	case Reopened:
		s.Closed = false
	default:
		return s
	}
	s.Version++
	return s
}
