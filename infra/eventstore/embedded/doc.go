// Package embedded is a durable event store that speaks the EventStoreDB gRPC
// protocol over a unix socket, so that one machine is enough to run the whole
// product. The product reaches it with the same public client that it uses for
// a real node, and knows of no difference. Other programs can be let in over
// TLS, with users and access control lists.
//
// The package has three layers, each of which could be replaced alone:
//
//   - the store (store.go, commit.go, read.go …) keeps the log in Pebble. One
//     goroutine commits, in groups that share one disk sync; readers pull pages
//     from the log and wait on a broadcast, so a slow reader costs nobody memory.
//   - the append rules (append_rules.go) decide what an append does to a stream.
//     They are pure: they see the stream's head and answer.
//   - the services (streams_*.go, features.go, member.go) translate between the
//     protocol and the store, behind the ways in (front.go, guard.go), which
//     know who makes a call, and the lists that say who may (acl.go, authorize.go).
//
// Opening looks at the end of the log alone (tail.go, logend.go). Verify, on a
// running server, and VerifyDir, on a stopped one, compare everything with
// everything (verify_*.go).
//
// Persistent subscriptions (persistent_*.go) stand beside the services: each group
// has a goroutine that reads and writes for it, and its logic apart in the
// package persistent. What groups know is in streams of the store itself.
package embedded
