// Package conformance holds the embedded event store against the clients that
// are published for its protocol.
package conformance
