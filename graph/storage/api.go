// Package storage is between the schema of files and what serves it: the
// domain's handler for mutations and for who may read where, the read model for
// spaces, the disk for what they hold.
package storage

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/storage"
	"tallyard/graph/command"
	"tallyard/graph/history"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	proj "tallyard/projections/storage"
)

// API serves the schema of files.
type API struct {
	Runtime  *es.Runtime
	Handler  *storage.Handler
	Queries  proj.Queries
	Disk     Disk
	Usage    loader.UsageSource
	Sources  Sources
	Commands *command.Gateway
	Sealer   *relay.Sealer
	History  *history.Reader
}

// Disk looks into spaces. Faults of its calls are meant for people.
type Disk interface {
	// List gives entries of a directory in bytewise order of their keys, those
	// after a key, at most limit; more tells whether there are others behind.
	List(ctx context.Context, tenant, space uuid.UUID, folder storage.Path, after string, limit int) (entries []Entry, more bool, err error)
	// Stat gives one entry.
	Stat(ctx context.Context, tenant, space uuid.UUID, path storage.Path) (Entry, error)
}

// EntryKind is what an entry is, by the names of the schema.
type EntryKind string

// Kinds of entries.
const (
	File      EntryKind = "FILE"
	Directory EntryKind = "DIRECTORY"
	Other     EntryKind = "OTHER"
)

// Entry is an entry of a directory.
type Entry struct {
	Name       string       // to be shown
	Key        string       // its place in the order; any bytes
	Path       storage.Path // the root when it has none that can be asked for
	Kind       EntryKind
	SizeBytes  int64
	ModifiedAt time.Time
}

// Sources tells which directories of a space things were taken from (STO-02).
type Sources interface {
	SourcesIn(ctx context.Context, tenant, space uuid.UUID) ([]string, error)
}
