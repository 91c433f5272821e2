// Package transfer copies the whole history of one event store into another,
// over the public client on both sides, so that either may be the embedded
// store or a real EventStoreDB.
//
// What arrives is what was there: every event in the order of the whole log,
// with its id, type, data, metadata and content type, and the metadata of
// streams ($maxCount, $maxAge, $tb, $acl, …). What differs:
//
//   - Positions, and the time at which a server took an event. The map file
//     says which position became which. $maxAge counts anew.
//   - What belongs to the server itself, streams whose names begin with "$"
//     (users, settings, statistics, projections, persistent subscriptions), is
//     left out. Metadata of other streams, "$$stream", goes along.
//   - A stream of which the beginning was scavenged begins at revision 0, for a
//     server counts without gaps. Its $tb is moved by as much.
//   - A stream that was deleted softly and written to again: the target's
//     server writes metadata of its own when that happens, before the copied
//     one. Such events are the only ones that the source does not have.
//   - A tombstone is written by the target's server, which gives it an id.
//
// The target is its own record of how far a copy is. A copy that was cut off
// compares what is there with the source, event by event, and goes on behind
// it; every append names the revision that it must meet. So nothing is written
// twice, whenever it is killed, and a target with other events is refused.
package transfer
