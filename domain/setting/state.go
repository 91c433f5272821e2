package setting

import (
	"maps"

	"tallyard/domain/es"
)

// State is what is set in one scope. States are shared between requests: the
// map is never changed in place.
type State struct {
	Values  map[Key]Value `json:"values,omitempty"`
	Version int           `json:"version"` // counts changes; 0: nothing was ever set
}

// Aggregate folds settings. It is cached: they are asked for by other commands.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 1, Cached: true, Evolve: evolve}

func evolve(s State, env es.Envelope) State {
	ev, ok := env.Event.(Changed)
	if !ok {
		return s
	}
	values := maps.Clone(s.Values)
	if values == nil {
		values = map[Key]Value{}
	}
	for _, c := range ev.Settings {
		if c.To == nil {
			delete(values, c.Key)
		} else {
			values[c.Key] = *c.To
		}
	}
	return State{Values: values, Version: s.Version + 1}
}

// Effective is what holds for a setting, and where it was set.
type Effective struct {
	Value Value
	Scope Scope // empty: nowhere, this is the fallback
}

// Levels are the states of the scopes that bear on one thing, from the widest
// to the nearest: those of the platform, of the tenant where the thing is one or
// lies in one, and of the project.
type Levels []Level

// Level is what is set in one scope.
type Level struct {
	Scope Scope
	State State
}

// Own is the state of the nearest scope.
func (l Levels) Own() State { return l[len(l)-1].State }

// Effective is what holds for a setting: the nearest scope that has it counts.
func (l Levels) Effective(k Key) Effective {
	for i := len(l) - 1; i >= 0; i-- {
		if v, ok := l[i].State.Values[k]; ok {
			return Effective{v, l[i].Scope}
		}
	}
	return Effective{Value: Fallback(k)}
}
