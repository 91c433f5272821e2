package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
)

// newStore makes a store that has nothing open yet.
func newStore(opt storeOptions) *store {
	if opt.fs == nil {
		opt.fs = vfs.Default
	}
	s := &store{
		opt:    opt,
		logger: opt.logger,
		trap:   newFatalTrap(opt.logger),
		queue:  make(chan *appendRequest, maxGroup),
		tasks:  make(chan func()),
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
		kept:   make(chan struct{}),
		upkeep: make(chan struct{}, 1),
		news:   newBroadcast(),
		recent: newRecentIDs(),
		space:  &space{fs: opt.fs, dir: opt.dir, reserve: opt.reserve, limit: opt.limit},
	}
	s.background = &background{trap: s.trap, first: firstBackoff}
	if opt.backoff > 0 {
		s.background.first = opt.backoff
	}
	s.files = &storeFiles{FS: opt.fs, dir: opt.dir, trap: s.trap, background: s.background, quit: s.quit}
	s.upkeep <- struct{}{}
	return s
}

// openStore opens or creates the store in a directory, checks its tail and
// starts its commit goroutine.
func openStore(ctx context.Context, opt storeOptions) (*store, error) {
	s := newStore(opt)
	if err := s.openFiles(false); err != nil {
		return nil, err
	}
	// Not to be cut off half way: it would go on using the files.
	ctx = context.WithoutCancel(ctx)
	if err := s.trap.guard(ctx, func() error { return s.prepare(ctx) }); err != nil {
		return nil, errors.Join(err, s.closeFiles(ctx))
	}
	s.measureSpace()
	s.files.phase.Store(phaseOpen)
	go s.commitLoop()
	go s.keep()
	return s, nil
}

// openFiles locks the directory and opens the files in it.
func (s *store) openFiles(readOnly bool) (err error) {
	// Pebble would lock the directory itself, but would leave a goroutine
	// behind where it can't.
	if s.lock, err = pebble.LockDirectory(s.opt.dir, s.opt.fs); err != nil {
		return fmt.Errorf("lock the event store, which another process may have open: %w", err)
	}
	options := s.pebbleOptions()
	options.ReadOnly = readOnly
	err = s.trap.guard(context.Background(), func() (err error) {
		s.db, err = pebble.Open(s.opt.dir, options)
		return err
	})
	if err == nil && s.failure() == nil {
		return nil
	}
	switch {
	case s.trap.holds(): // the end of the process releases the directory
	case err == nil:
		err = errors.Join(s.failure(), s.db.Close(), s.lock.Close())
	default:
		err = errors.Join(err, s.lock.Close())
	}
	return fmt.Errorf("open the event store: %w", err)
}

func (s *store) pebbleOptions() *pebble.Options {
	cache := s.opt.cache
	if cache <= 0 {
		cache = 32 << 20
	}
	memtable := s.opt.memtable
	if memtable == 0 {
		memtable = 16 << 20
	}
	o := &pebble.Options{
		FS:                 s.files,
		Lock:               s.lock,
		CacheSize:          cache,
		FormatMajorVersion: pebble.FormatValueSeparation,
		Logger:             s.trap,
		MemTableSize:       memtable,
		MaxOpenFiles:       512,
		EventListener: &pebble.EventListener{
			// Left alone, Pebble would call Fatalf in the goroutine of the
			// reader that came upon it. The store fails, but the reader gets an error.
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				s.trap.spring(fmt.Errorf("a file of the event store is damaged: %s", info))
			},
		},
	}
	s.background.listen(o.EventListener)
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
	noted, err := readLogEnd(s.opt.fs, s.opt.dir)
	if err != nil {
		return err
	}
	id, found, err := readDescription(s.db)
	switch {
	case err != nil:
		return err
	case !found && noted > 0:
		return errEndMissing(noted, 0)
	case !found:
		if err := s.initialise(); err != nil {
			return err
		}
	default:
		s.id = id
		if s.removed, err = readLedger(s.db); err != nil {
			return err
		}
		if err := s.verifyTail(ctx, noted); err != nil {
			return err
		}
	}
	s.end, err = openLogEnd(s.opt.fs, s.opt.dir)
	return err
}

// readDescription reads which store this is.
func readDescription(db pebble.Reader) (id uuid.UUID, found bool, err error) {
	found, err = lookUp(db, storeKey(), func(raw []byte) error {
		if len(raw) != 17 || raw[0] != storeFormat {
			return errors.New("the event store was written by another version of the program, which this one can't read")
		}
		copy(id[:], raw[1:])
		return nil
	})
	return id, found, err
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
// the files.
func (s *store) close() error { return s.closeWithin(context.Background()) }

// closeWithin is close for a limited time. What hangs is left to the end of
// the process, and said.
func (s *store) closeWithin(ctx context.Context) error {
	s.quitOnce.Do(func() { close(s.quit) })
	select {
	case <-s.done:
	case <-s.trap.held:
	case <-ctx.Done():
		return fmt.Errorf("close the event store: %w", ctx.Err())
	}
	select {
	case <-s.upkeep: // taken for good
	case <-s.trap.held:
	case <-ctx.Done():
		return fmt.Errorf("close the event store: %w", ctx.Err())
	}
	select {
	case <-s.kept:
	case <-s.trap.held:
	case <-ctx.Done():
		return fmt.Errorf("close the event store: %w", ctx.Err())
	}
	return s.closeFiles(ctx)
}

// closeFiles closes the files. Where Pebble holds a goroutine, and perhaps its
// locks, they stay open, and the end of the process releases the directory.
func (s *store) closeFiles(ctx context.Context) error {
	failed := s.failure()
	if failed != nil {
		failed = fmt.Errorf("%w: %w", errFailed, failed)
	}
	if s.trap.holds() {
		return failed
	}
	s.files.phase.Store(phaseClosing)
	err := s.trap.guard(ctx, func() error {
		err := s.db.Close()
		if s.end != nil {
			err = errors.Join(err, s.end.close())
		}
		return errors.Join(err, s.lock.Close())
	})
	if err != nil {
		err = fmt.Errorf("close the event store: %w", err)
	}
	return errors.Join(failed, err)
}

// beginUpkeep waits for the turn of work on the whole store. The context that
// it gives ends when the store closes or fails.
func (s *store) beginUpkeep(ctx context.Context) (context.Context, func(), error) {
	select {
	case <-s.upkeep:
	case <-s.quit:
		return nil, nil, errStopping
	case <-s.failed():
		return nil, nil, fmt.Errorf("%w: %w", errFailed, s.failure())
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		select {
		case <-s.quit:
			cancel(errStopping)
		case <-s.failed():
			cancel(errFailed)
		case <-ended:
		}
	}()
	return ctx, func() {
		close(ended)
		cancel(nil)
		s.upkeep <- struct{}{}
	}, nil
}

// onCommitGoroutine runs f between two groups of appends and waits for its end.
func (s *store) onCommitGoroutine(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	select {
	case s.tasks <- func() { f(); close(ran) }:
	case <-s.quit:
		return errStopping
	case <-s.failed():
		return fmt.Errorf("%w: %w", errFailed, s.failure())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-ran:
		return nil
	case <-s.failed():
		return fmt.Errorf("%w: %w", errFailed, s.failure())
	}
}
