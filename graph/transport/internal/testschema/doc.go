// Package testschema is a small generated schema for the tests of the transports.
package testschema

//go:generate go run github.com/99designs/gqlgen generate --config gqlgen.yml
