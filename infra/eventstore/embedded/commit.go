package embedded

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"
)

const (
	// maxGroup is how many waiting appends one disk sync may serve.
	maxGroup = 512
	// maxGroupBytes ends a group early, so that its batch stays well below a memtable.
	maxGroupBytes = 4 << 20
	// gatherTime is how long a group that isn't alone waits at most for those that
	// are on their way; gatherTurns is how often it lets the others run in vain
	// before it takes that nobody is.
	gatherTime  = 2 * time.Millisecond
	gatherTurns = 4
)

// requestKind tells what an appendRequest does to its stream.
type requestKind int

const (
	requestAppend requestKind = iota
	requestDelete
	requestTombstone
)

// proposed is an event that a client wants to append.
type proposed struct {
	id          uuid.UUID
	kind        string
	contentType string
	metadata    []byte
	data        []byte
}

// appendRequest waits for the commit goroutine.
type appendRequest struct {
	ctx      context.Context
	kind     requestKind
	stream   string
	expected expectation
	events   []proposed
	size     int
	done     chan appendResult // takes one result without blocking
}

// appendResult is the answer to an appendRequest.
type appendResult struct {
	err      error
	wrong    bool   // the expectation did not hold; current tells what was there
	current  int64  // last revision of the stream, noRevision if it has no events
	position uint64 // of the last event, 0 if there is none
}

// append hands a request to the commit goroutine and waits for its answer.
// When the context ends first, the outcome is unknown.
func (s *store) append(ctx context.Context, r *appendRequest) (appendResult, error) {
	if err := s.enqueue(ctx, r); err != nil {
		return appendResult{}, err
	}
	return s.await(r)
}

// enqueue hands a request to the commit goroutine. Requests are decided in the
// order in which enqueue returned.
func (s *store) enqueue(ctx context.Context, r *appendRequest) error {
	if err := s.failure(); err != nil {
		return fmt.Errorf("%w: %w", errFailed, err)
	}
	if s.files.waiting.Load() > 0 {
		// The commit goroutine may be among those that wait for room.
		if err := s.refusal(r); err != nil {
			return err
		}
	}
	r.ctx = ctx
	r.done = make(chan appendResult, 1)
	select {
	case s.queue <- r:
		return nil
	case <-s.quit:
		return errStopping
	case <-s.failed():
		return fmt.Errorf("%w: %w", errFailed, s.failure())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits for the answer to a request that was enqueued.
func (s *store) await(r *appendRequest) (appendResult, error) {
	select {
	case res := <-r.done:
		return res, res.err
	case <-s.failed():
		return appendResult{}, fmt.Errorf("%w: %w", errFailed, s.failure())
	case <-s.done:
		// The goroutine may have answered before it ended.
		select {
		case res := <-r.done:
			return res, res.err
		default:
			return appendResult{}, errStopping
		}
	case <-r.ctx.Done():
		return appendResult{}, r.ctx.Err()
	}
}

// commitLoop is the only writer of the log. Everything that has to happen in
// one order, checking expectations and assigning positions, happens here.
func (s *store) commitLoop() {
	defer close(s.done)
	// To Pebble some errors of the file system are a panic, such as one when it
	// begins a new write-ahead log. Nothing was acknowledged then.
	defer func() {
		if p := recover(); p != nil {
			s.logger.Error("committing to the event store panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			s.trap.hold(fmt.Errorf("write the log: %v", p))
		}
	}()
	group := make([]*appendRequest, 0, maxGroup)
	crowded := false // the last group served several
	for {
		select {
		case r := <-s.queue:
			if group = s.collect(append(group[:0], r)); crowded || len(group) > 1 {
				group = s.gather(group)
			}
			crowded = len(group) > 1
		case f := <-s.tasks:
			f()
			continue
		case <-s.quit:
			// Nobody can have been let in after quit was closed, but some may wait.
			if group = s.collect(group[:0]); len(group) == 0 {
				return
			}
		}
		s.commitGroup(group)
		clear(group)
	}
}

// collect adds the requests that wait right now, without waiting for more.
func (s *store) collect(group []*appendRequest) []*appendRequest {
	size := 0
	for _, r := range group {
		size += r.size
	}
	for len(group) < maxGroup && size < maxGroupBytes {
		select {
		case r := <-s.queue:
			group = append(group, r)
			size += r.size
		default:
			return group
		}
	}
	return group
}

// gather adds the requests that arrive while the others are let run. Many
// writers on few processors come one by one, between two syncs that take as long
// as the work for a handful of them; a sync for each handful costs more
// processor time than its appends. Where nobody is on the way it comes back at
// once, and a lone writer never gets here.
func (s *store) gather(group []*appendRequest) []*appendRequest {
	began := time.Now()
	for vain := 0; vain < gatherTurns && len(group) < maxGroup && time.Since(began) < gatherTime; {
		had := len(group)
		runtime.Gosched()
		if group = s.collect(group); len(group) > had {
			vain = 0
		} else {
			vain++
		}
	}
	return group
}

// commitGroup applies the requests in order and answers each once everything
// that its answer rests on is synced.
func (s *store) commitGroup(group []*appendRequest) {
	tx := s.begin()
	for i := 0; i < len(group); {
		r := group[i]
		if err := r.ctx.Err(); err != nil {
			tx.answer(r, appendResult{err: err}) // nobody waits any more: better not written
			i++
			continue
		}
		res, again := tx.apply(r)
		if again {
			// The request must compare itself with events of this very group.
			if !s.finish(tx, group[i:]) {
				return
			}
			tx = s.begin()
			continue
		}
		tx.answer(r, res)
		i++
	}
	s.finish(tx, nil)
}

// finish syncs a transaction, lets readers see it and answers its requests. If
// it fails, it answers the given further requests too.
func (s *store) finish(tx *transaction, further []*appendRequest) bool {
	err := s.sync(tx)
	if err != nil {
		s.trap.spring(err)
		failed := appendResult{err: fmt.Errorf("%w: %w", errFailed, err)}
		for _, a := range tx.answers {
			a.to.done <- failed
		}
		for _, r := range further {
			r.done <- failed
		}
		return false
	}
	if tx.last > 0 {
		s.next = tx.next
		s.committed.Store(tx.last)
		s.news.wake()
	}
	for _, a := range tx.answers {
		a.to.done <- a.result
	}
	return true
}

// sync makes a transaction durable. It waits for the sync apart from applying
// the batch, because then Pebble returns a failed sync as an error; applied in
// one step it would call Fatalf, which never returns here.
func (s *store) sync(tx *transaction) (err error) {
	if err := s.failure(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.batch.Close()) }()
	if tx.last == 0 {
		return nil
	}
	if tx.err != nil {
		return tx.err
	}
	for stream, h := range tx.heads {
		if !h.dirty {
			continue
		}
		if err := tx.batch.Set(headKey(stream), encodeHead(&h.head), nil); err != nil {
			return fmt.Errorf("write a stream's head: %w", err)
		}
	}
	if err := s.db.ApplyNoSyncWait(tx.batch, pebble.Sync); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	if err := tx.batch.SyncWait(); err != nil {
		return fmt.Errorf("sync the log: %w", err)
	}
	return nil
}
