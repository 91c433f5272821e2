// Package tenant holds the companies that share an installation. Tenants are
// things of the platform: their streams and their names belong to no tenant.
package tenant

import "tallyard/domain/es"

// Category is the category of the tenants' streams, all of the platform tenant.
const Category = "tenant"

// Types are the feature's events under their stored names.
var Types = []es.TypeDef{
	es.Type[Created]("tenant.created.v1"),
	es.Type[Renamed]("tenant.renamed.v1"),
}

// Created opens a tenant.
type Created struct {
	Name string `json:"name"`
}

// Changes implements es.Event.
func (e Created) Changes() []es.Change { return []es.Change{es.Set("name", e.Name)} }

// Renamed gives a tenant another name.
type Renamed struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Changes implements es.Event.
func (e Renamed) Changes() []es.Change { return []es.Change{es.Moved("name", e.From, e.To)} }
