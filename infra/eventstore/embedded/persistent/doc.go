// Package persistent is the logic of persistent subscriptions: what one group
// of competing consumers is handed, in which order, how often, and how far the
// group has come. It does no I/O, starts no goroutine and reads no clock; its
// owner gives it the events that it read, the time, and what consumers say, and
// does what the group asks for: read on, write parked messages, write a
// checkpoint.
//
// Every event is delivered at least once. A group loses nothing when consumers,
// the owner or the process fail: its checkpoint never passes an event that is
// not acknowledged, skipped or safely parked.
package persistent
