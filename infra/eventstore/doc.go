// Package eventstore connects the product to its event log. It implements
// [tallyard/domain/es.Log] over the public EventStoreDB client, and is the only
// package that links it.
//
// The client has habits that a program which runs for months can't live with,
// and the package keeps them inside:
//
//   - A client that once failed to find its server is dead for good and lets
//     concurrent callers hang. Here one goroutine owns the connection, tries out
//     each new client alone before anybody may use it, and replaces it at the
//     first sign that its server is gone (session.go).
//   - A call can outlive its context. Here each is raced against it (call.go).
//   - A subscription that was dropped stays dropped, and one whose server went
//     silent waits for ever. Here it reconnects behind the last position that it
//     delivered, and a watchdog asks the server when nothing comes
//     (subscription.go, watchdog.go).
//   - A mistyped setting in a connection string changes behaviour silently. Here
//     the string is checked first (address.go).
package eventstore
