// Package transport serves a gqlgen schema over HTTP and WebSocket.
//
// It stands between the network and gqlgen's executor and knows nothing of the
// schema it serves. What it adds to the executor, and why, is in the package's
// files: [guard] refuses documents that cost too much, request.go and accept.go
// read HTTP strictly, status.go is the one table of statuses, wsconn.go keeps
// the graphql-transport-ws protocol with its close codes.
//
// A query or a subscription ends with its client. A mutation does not: once it
// is accepted it runs to its end, under a deadline of its own.
package transport
