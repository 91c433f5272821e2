// Package events measures the embedded event store through the public client:
// durable appends (P1) and catching up with the log (P2), beside what the client
// can do at all, what the disk can do and what Postgres does; how that changes
// as the log grows; and many subscriptions at once.
//
// Everything runs on this machine in one go, in rounds that take turns, and what
// counts are the ratios: make bench BENCH=P1 PKG=./test/bench/events. How long
// the log gets for BENCH=Growth says EVENTS, one or more numbers with commas;
// EVENTS_PER_STREAM how many of them a stream has.
package events
