// Package transporttest has a small generated schema and people to ask as, for tests
// of the transports and of what runs on top of them.
package transporttest

//go:generate go tool -modfile=../../../tools/go.mod gqlgen generate --config gqlgen.yml
