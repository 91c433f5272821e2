package project

import "tallyard/domain/es"

// State is a project as its events leave it.
type State struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Version     int    `json:"version"` // counts changes made by users; 0: there is no such project
}

// Exists tells whether the project was ever created.
func (s State) Exists() bool { return s.Version > 0 }

// Aggregate folds projects.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 1, Evolve: evolve}

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
	default:
		return s
	}
	s.Version++
	return s
}
