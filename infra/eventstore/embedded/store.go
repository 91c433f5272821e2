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
	"github.com/cockroachdb/pebble/v2/bloom"
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
	errDiskFull      = errors.New("the disk is almost full")
)

// storeOptions are what a store needs to know of its surroundings.
type storeOptions struct {
	dir    string
	fs     vfs.FS // nil is the disk
	logger *slog.Logger
	clock  func() time.Time
	cache  int64
	// reserve is the free disk space below which appends are refused.
	reserve uint64
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
	quit     chan struct{}
	quitOnce sync.Once
	done     chan struct{} // closed when the commit goroutine has ended

	// committed is the position of the last event that is safe on disk.
	// Readers never look behind it.
	committed atomic.Uint64
	news      *broadcast

	// What follows belongs to the commit goroutine.
	next        uint64 // position of the next event
	lastCreated int64
	recent      *recentIDs
	space       diskSpace
}

// openStore opens or creates the store in a directory, checks its tail and
// starts its commit goroutine.
func openStore(ctx context.Context, opt storeOptions) (*store, error) {
	s := &store{
		opt:    opt,
		logger: opt.logger,
		trap:   newFatalTrap(opt.logger),
		queue:  make(chan *appendRequest, maxGroup),
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
		news:   newBroadcast(),
		recent: newRecentIDs(),
	}
	if s.opt.fs == nil {
		s.opt.fs = vfs.Default
	}
	s.space = diskSpace{fs: s.opt.fs, dir: opt.dir, reserve: opt.reserve}
	var err error
	// Pebble would lock the directory itself, but would leave a goroutine
	// behind where it can't.
	if s.lock, err = pebble.LockDirectory(opt.dir, s.opt.fs); err != nil {
		return nil, fmt.Errorf("lock the event store, which another process may have open: %w", err)
	}
	if s.db, err = pebble.Open(opt.dir, s.pebbleOptions()); err != nil {
		return nil, errors.Join(fmt.Errorf("open the event store: %w", err), s.lock.Close())
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.db.Close(), s.lock.Close())
	}
	go s.commitLoop()
	return s, nil
}

func (s *store) pebbleOptions() *pebble.Options {
	cache := s.opt.cache
	if cache <= 0 {
		cache = 32 << 20
	}
	o := &pebble.Options{
		FS:                 s.opt.fs,
		Lock:               s.lock,
		CacheSize:          cache,
		FormatMajorVersion: pebble.FormatValueSeparation,
		Logger:             s.trap,
		MemTableSize:       16 << 20,
		MaxOpenFiles:       512,
		EventListener: &pebble.EventListener{
			// Left alone, Pebble would call Fatalf in the goroutine of the
			// reader that came upon it. The store fails, but the reader gets an error.
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				s.trap.spring(fmt.Errorf("a file of the event store is damaged: %s", info))
			},
		},
	}
	// New streams are looked up as often as old ones; the filters answer for
	// them without reading a block.
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].BlockSize = blockSize
	}
	return o
}

// prepare reads or writes the store's description and checks the end of the log.
func (s *store) prepare(ctx context.Context) error {
	raw, closer, err := s.db.Get(storeKey())
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return s.initialise()
	case err != nil:
		return fmt.Errorf("read the event store's description: %w", err)
	}
	ok := len(raw) == 17 && raw[0] == storeFormat
	if ok {
		copy(s.id[:], raw[1:])
	}
	if err := closer.Close(); err != nil {
		return fmt.Errorf("read the event store's description: %w", err)
	}
	if !ok {
		return errors.New("the event store was written by another version of the program, which this one can't read")
	}
	return s.verifyTail(ctx)
}

func (s *store) initialise() error {
	s.id = uuid.New()
	s.next = firstPosition
	if err := s.db.Set(storeKey(), append([]byte{storeFormat}, s.id[:]...), pebble.Sync); err != nil {
		return fmt.Errorf("create the event store: %w", err)
	}
	return nil
}

// failure is why the store takes no more writes, nil while it does.
func (s *store) failure() error { return s.trap.cause() }

// failed is closed when the store can't go on.
func (s *store) failed() <-chan struct{} { return s.trap.sprung }

// close ends the commit goroutine after it has answered what waits, and closes
// the files. A failed store isn't closed: Pebble may hold its locks for ever
// then, and the end of the process releases the directory.
func (s *store) close() error {
	s.quitOnce.Do(func() { close(s.quit) })
	select {
	case <-s.done:
	case <-s.failed():
	}
	if err := s.failure(); err != nil {
		return fmt.Errorf("%w: %w", errFailed, err)
	}
	if err := errors.Join(s.db.Close(), s.lock.Close()); err != nil {
		return fmt.Errorf("close the event store: %w", err)
	}
	return nil
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
		err = errors.New("a stream's index is damaged")
	} else {
		position = binary.BigEndian.Uint64(raw)
	}
	if cerr := closer.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("read a stream's index: %w", cerr)
	}
	return position, err == nil, err
}

// eventAt reads the event at a position.
func (s *store) eventAt(position uint64) (event, error) {
	raw, closer, err := s.db.Get(eventKey(position))
	if err != nil {
		return event{}, fmt.Errorf("read the event at %d: %w", position, err)
	}
	e, err := decodeRecord(position, append([]byte(nil), raw...))
	if err != nil {
		err = fmt.Errorf("read the event at %d: %w", position, err)
	}
	return e, errors.Join(err, closer.Close())
}
