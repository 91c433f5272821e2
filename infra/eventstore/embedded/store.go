package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
)

const (
	// storeFormat is the layout of keys and records; a store of another is refused.
	storeFormat = 1
	// firstPosition is where the log begins. Positions count encoded bytes, so
	// they are sparse, and 0 stays free to mean "before everything".
	firstPosition = 64
	// blockSize is how many bytes of a file are read at once. Who reads the log
	// takes all of a block; smaller ones cost it a third more processor time.
	blockSize = 32 << 10
	// maxAppend is the most bytes of events that one append may carry.
	maxAppend = 1 << 20
)

// Errors between the store and the services, which give each its gRPC status.
var (
	errStreamDeleted = errors.New("stream deleted")
	errStopping      = errors.New("the event store is stopping")
	errFailed        = errors.New("the event store has failed and takes no more writes")
	errNoRoom        = errors.New("there is no room for more events") // clients look for these words
)

// storeOptions are what a store needs to know of its surroundings.
type storeOptions struct {
	dir    string
	fs     vfs.FS // nil is the disk
	logger *slog.Logger
	clock  func() time.Time
	cache  int64
	// memtable is how many bytes are collected in memory before they are
	// written to a table; 0 is the default.
	memtable uint64
	// backoff is the wait after Pebble has failed to write a table; 0 is the default.
	backoff time.Duration
	// reserve is the free disk space below which appends are refused, and limit
	// the size of the store from which on they are; 0 is none.
	reserve, limit uint64
	// scavengeEvery is the time between two scavenges; 0 is never.
	scavengeEvery time.Duration
}

// store is the log on disk.
type store struct {
	db     *pebble.DB
	lock   *pebble.Lock
	id     uuid.UUID
	opt    storeOptions
	logger *slog.Logger
	trap   *fatalTrap

	queue    chan *appendRequest
	tasks    chan func() // run by the commit goroutine between groups
	quit     chan struct{}
	quitOnce sync.Once
	done     chan struct{} // closed when the commit goroutine has ended
	kept     chan struct{} // closed when the store does nothing by itself any more

	// upkeep holds a token while nobody works on the whole store: verifying and
	// scavenging take turns.
	upkeep chan struct{}

	files      *storeFiles
	background *background
	space      *space
	end        *logEnd

	// committed is the position of the last event that is safe on disk.
	// Readers never look behind it.
	committed atomic.Uint64
	news      *broadcast

	// What follows belongs to the commit goroutine.
	next        uint64 // position of the next event
	lastCreated int64
	recent      *recentIDs
	removed     ledger
}

// readHead reads a stream's head; a stream never heard of has an empty one.
func (s *store) readHead(stream string) (head, error) {
	raw, closer, err := s.db.Get(headKey(stream))
	if errors.Is(err, pebble.ErrNotFound) {
		return head{last: noRevision}, nil
	}
	if err != nil {
		return head{}, fmt.Errorf("read a stream's head: %w", err)
	}
	h, err := decodeHead(raw)
	if cerr := closer.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("read a stream's head: %w", cerr)
	}
	return h, err
}

// durableHead is readHead for readers: it waits until everything that the head
// speaks of is safe on disk, so that nobody sees what a crash could take back.
func (s *store) durableHead(ctx context.Context, stream string) (head, error) {
	h, err := s.readHead(stream)
	if err != nil {
		return head{}, err
	}
	return h, s.waitFor(ctx, h.changed)
}

// waitFor waits until the log is safe on disk up to a position.
func (s *store) waitFor(ctx context.Context, position uint64) error {
	for {
		news := s.news.next()
		if s.committed.Load() >= position {
			return nil
		}
		select {
		case <-news:
		case <-s.failed():
			return fmt.Errorf("%w: %w", errFailed, s.failure())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// positionAt finds the position of a stream's revision; ok is false if there is none.
func (s *store) positionAt(stream string, revision int64) (position uint64, ok bool, err error) {
	raw, closer, err := s.db.Get(indexKey(stream, revision))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read a stream's index: %w", err)
	}
	if len(raw) != 8 {
		err = errBadIndex
	} else {
		position = binary.BigEndian.Uint64(raw)
	}
	if cerr := closer.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("read a stream's index: %w", cerr)
	}
	return position, err == nil, err
}

// eventAt reads an event of a stream, whose index says that it lies at
// position. ok is false if scavenging has removed it since the index was read.
func (s *store) eventAt(stream string, revision int64, position uint64) (e event, ok bool, err error) {
	e, err = recordedAt(s.db, position)
	if !errors.Is(err, pebble.ErrNotFound) {
		return e, err == nil, err
	}
	m, merr := readMark(s.db, stream)
	if merr == nil && revision < m.before {
		return event{}, false, nil
	}
	return event{}, false, errors.Join(err, merr)
}

// recordedAt reads the event at a position; where there is none, the error is
// pebble.ErrNotFound.
func recordedAt(db pebble.Reader, position uint64) (event, error) {
	raw, closer, err := db.Get(eventKey(position))
	if err != nil {
		return event{}, fmt.Errorf("read the event at %d: %w", position, err)
	}
	e, err := decodeRecord(position, append([]byte(nil), raw...))
	if err != nil {
		err = fmt.Errorf("read the event at %d: %w", position, err)
	}
	return e, errors.Join(err, closer.Close())
}
