// Package operation serves the schema of its feature.
package operation

// API serves the schema.
type API struct{}
