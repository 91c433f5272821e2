package tenant

import "tallyard/domain/es"

// State is a tenant as its events leave it.
type State struct {
	Name    string `json:"name"`
	Version int    `json:"version"` // counts changes made by users; 0: there is no such tenant
}

// Exists tells whether the tenant was ever created.
func (s State) Exists() bool { return s.Version > 0 }

// Aggregate folds tenants.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 1, Evolve: evolve}

func evolve(s State, env es.Envelope) State {
	switch ev := env.Event.(type) {
	case Created:
		s.Name = ev.Name
	case Renamed:
		s.Name = ev.To
	default:
		return s
	}
	s.Version++
	return s
}
