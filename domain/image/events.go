package image

import (
	"github.com/google/uuid"

	"tallyard/domain/es"
)

// Types are the feature's events under their stored names.
var Types = []es.TypeDef{
	es.Type[Registered]("image.registered.v1"),
	es.Type[Removed]("image.removed.v1"),
	es.Type[OwnershipTransferred]("image.ownership_transferred.v1"),
}

// Registered makes an image known. What it is never changes: another one is
// another image.
type Registered struct {
	Project  uuid.UUID `json:"project,omitzero"`
	Owner    uuid.UUID `json:"owner"`
	Settings Settings  `json:"settings"`
}

// Changes implements es.Event.
func (e Registered) Changes() []es.Change {
	s := e.Settings
	c := []es.Change{
		es.Set("kind", s.Kind), es.Set("name", s.Name), es.Set("framework", s.Framework), es.Set("reference", s.Reference), es.Set("scope", s.Scope),
	}
	for _, f := range []struct{ name, value string }{
		{"frameworkVersion", s.FrameworkVersion}, {"scenario", string(s.Scenario)}, {"description", s.Description},
	} {
		if f.value != "" {
			c = append(c, es.Set(f.name, f.value))
		}
	}
	if len(s.Accelerators) > 0 {
		c = append(c, es.Set("acceleratorTypes", s.Accelerators))
	}
	return c
}

// Removed takes an image off the list.
type Removed struct {
	Name string `json:"name"`
}

// Changes implements es.Event.
func (e Removed) Changes() []es.Change { return []es.Change{{Field: "name", From: es.ValueOf(e.Name)}} }
