// Package setting holds what can be set for the platform, for a tenant and for
// a project (TEN-09): one stream for each of them, one event for each change.
package setting

import "tallyard/domain/es"

// Category is the category of the streams; each bears the id of what its
// settings are of.
const Category = "setting"

// Types are the feature's events under their stored names.
var Types = []es.TypeDef{
	es.Type[Changed]("setting.changed.v1"),
}

// Change is one setting before and after; nil stands for not set here.
type Change struct {
	Key  Key    `json:"key"`
	From *Value `json:"from,omitempty"`
	To   *Value `json:"to,omitempty"`
}

// Changed sets some settings of one scope, or unsets them.
type Changed struct {
	Scope    Scope    `json:"scope"`
	Settings []Change `json:"settings"`
}

// Changes implements es.Event.
func (e Changed) Changes() []es.Change {
	list := make([]es.Change, len(e.Settings))
	for i, c := range e.Settings {
		list[i] = es.Moved(string(c.Key), c.From, c.To)
	}
	return list
}
