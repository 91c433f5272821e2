// Package serve runs an installation of several processes, as on a cluster: an
// API, projectors and workers that share an event store, a database, files and
// a master key.
package serve
