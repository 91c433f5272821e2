// Package people serves the schema of its feature.
package people

// API serves the schema.
type API struct{}
