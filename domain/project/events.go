// Package project holds the projects of a tenant: the unit that isolates
// people, data and queues inside it.
package project

import "tallyard/domain/es"

// Category is the category of the projects' streams.
const Category = "project"

// Types are the feature's events under their stored names.
var Types = []es.TypeDef{
	es.Type[Created]("project.created.v1"),
	es.Type[Updated]("project.updated.v1"),
	es.Type[Closed]("project.closed.v1"),
	es.Type[Reopened]("project.reopened.v1"),
}

// Created opens a project.
type Created struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Changes implements es.Event.
func (e Created) Changes() []es.Change {
	c := []es.Change{es.Set("name", e.Name)}
	if e.Description != "" {
		c = append(c, es.Set("description", e.Description))
	}
	return c
}

// Moved is a text before and after.
type Moved struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Updated changes a project; what is nil stays.
type Updated struct {
	Name        *Moved `json:"name,omitempty"`
	Description *Moved `json:"description,omitempty"`
}

// Changes implements es.Event.
func (e Updated) Changes() []es.Change {
	var c []es.Change
	if e.Name != nil {
		c = append(c, es.Moved("name", e.Name.From, e.Name.To))
	}
	if e.Description != nil {
		c = append(c, es.Moved("description", e.Description.From, e.Description.To))
	}
	return c
}
