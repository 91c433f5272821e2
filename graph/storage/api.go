// Package storage serves the schema of its feature.
package storage

// API serves the schema.
type API struct{}
