// Package events runs what operators do with the event store, by the built
// program: back up and restore, verify, look at figures, and move a history.
package events
