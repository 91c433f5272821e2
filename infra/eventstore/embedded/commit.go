package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"
)

const (
	// maxGroup is how many waiting appends one disk sync may serve.
	maxGroup = 512
	// maxGroupBytes ends a group early, so that its batch stays well below a memtable.
	maxGroupBytes = 4 << 20
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
	if err := s.failure(); err != nil {
		return appendResult{}, fmt.Errorf("%w: %w", errFailed, err)
	}
	r.ctx = ctx
	r.done = make(chan appendResult, 1)
	select {
	case s.queue <- r:
	case <-s.quit:
		return appendResult{}, errStopping
	case <-s.failed():
		return appendResult{}, fmt.Errorf("%w: %w", errFailed, s.failure())
	case <-ctx.Done():
		return appendResult{}, ctx.Err()
	}
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
	case <-ctx.Done():
		return appendResult{}, ctx.Err()
	}
}

// commitLoop is the only writer of the log. Everything that has to happen in
// one order, checking expectations and assigning positions, happens here.
func (s *store) commitLoop() {
	defer close(s.done)
	group := make([]*appendRequest, 0, maxGroup)
	for {
		select {
		case r := <-s.queue:
			group = s.collect(append(group[:0], r))
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

// transaction is a group of appends on its way to the disk.
type transaction struct {
	s       *store
	batch   *pebble.Batch
	heads   map[string]*dirtyHead
	next    uint64
	last    uint64 // position of the last event written, 0 if none was
	created int64
	buf     []byte
	answers []answer
	err     error
}

type dirtyHead struct {
	head
	dirty bool
}

type answer struct {
	to     *appendRequest
	result appendResult
}

func (s *store) begin() *transaction {
	now := s.opt.clock()
	// Times never run backward in the log, whatever the clock does, so that
	// $maxAge cuts at one place of a stream.
	s.lastCreated = max(s.lastCreated, ticks(now))
	return &transaction{
		s: s, batch: s.db.NewBatch(), heads: map[string]*dirtyHead{},
		next: s.next, created: s.lastCreated,
	}
}

func (tx *transaction) answer(r *appendRequest, res appendResult) {
	tx.answers = append(tx.answers, answer{to: r, result: res})
}

// head gives the head of a stream as this transaction has left it.
func (tx *transaction) head(stream string) (*dirtyHead, error) {
	if h, ok := tx.heads[stream]; ok {
		return h, nil
	}
	h, err := tx.s.readHead(stream)
	if err != nil {
		return nil, err
	}
	d := &dirtyHead{head: h}
	tx.heads[stream] = d
	return d, nil
}

// apply decides one request and writes what it adds into the batch. again asks
// to finish this transaction and to apply the request to the next one.
func (tx *transaction) apply(r *appendRequest) (res appendResult, again bool) {
	h, err := tx.head(r.stream)
	if err != nil {
		return appendResult{err: err}, false
	}
	if base, ok := metadataOf(r.stream); ok {
		b, err := tx.head(base)
		if err != nil {
			return appendResult{err: err}, false
		}
		if b.tombstoned {
			return appendResult{err: errStreamDeleted}, false
		}
	}
	ids := make([]uuid.UUID, len(r.events))
	for i := range r.events {
		ids[i] = r.events[i].id
	}
	v, at := judge(&h.head, r.expected, r.stream, ids, tx.s.recent.find)
	if r.kind != requestAppend {
		v = judgeDelete(&h.head, r.expected, r.kind == requestDelete)
	}
	if v == verdictHistory {
		if h.dirty {
			return appendResult{}, true
		}
		if v, at, err = tx.s.compareHistory(&h.head, r, ids); err != nil {
			return appendResult{err: err}, false
		}
	}
	switch v {
	case verdictDeleted:
		return appendResult{err: errStreamDeleted}, false
	case verdictWrong:
		return appendResult{wrong: true, current: h.last}, false
	case verdictRepeat:
		return appendResult{current: at.revision, position: at.position}, false
	}
	if tx.s.space.tooLow(tx.s.opt.clock()) && r.kind == requestAppend {
		return appendResult{err: errDiskFull}, false
	}
	return tx.write(r, h), false
}

// compareHistory tells whether the events that follow the expected revision are
// those of the request. Where a stream began anew after a soft delete, no_stream
// means the new beginning too.
func (s *store) compareHistory(h *head, r *appendRequest, ids []uuid.UUID) (verdict, knownEvent, error) {
	first := r.expected.expected() + 1
	at, same, err := s.holds(h, r.stream, first, ids)
	if err != nil {
		return 0, knownEvent{}, err
	}
	if again := h.meta.truncateBefore; !same && r.expected.kind == expectNoStream && again > 0 && again <= h.last {
		if at, same, err = s.holds(h, r.stream, again, ids); err != nil {
			return 0, knownEvent{}, err
		}
	}
	switch {
	case same:
		return verdictRepeat, at, nil
	case startsAnew(h, r.expected):
		return verdictWrite, knownEvent{}, nil
	default:
		return verdictWrong, knownEvent{}, nil
	}
}

// holds tells whether the stream has exactly these event ids from a revision on.
func (s *store) holds(h *head, stream string, from int64, ids []uuid.UUID) (at knownEvent, same bool, err error) {
	if from+int64(len(ids))-1 > h.last {
		return knownEvent{}, false, nil
	}
	for i, id := range ids {
		position, ok, err := s.positionAt(stream, from+int64(i))
		if err != nil || !ok {
			return knownEvent{}, false, err
		}
		e, err := s.eventAt(position)
		if err != nil || e.id != id {
			return knownEvent{}, false, err
		}
		at = knownEvent{revision: e.revision, position: position}
	}
	return at, true, nil
}

// write adds the events of a request, and what follows from them, to the batch.
// Whatever can fail alone is read before the first event is put.
func (tx *transaction) write(r *appendRequest, h *dirtyHead) appendResult {
	switch r.kind {
	case requestDelete:
		if _, err := tx.head(metadataPrefix + r.stream); err != nil {
			return appendResult{err: err}
		}
		return tx.writeMetadata(r.stream, h, deletedMetadata())
	case requestTombstone:
		first := tx.next
		tx.put(h, &event{
			first: first, revision: tombstoneRevision, id: uuid.New(), stream: r.stream,
			kind: tombstoneType, contentType: contentBinary,
		})
		h.tombstoned = true
		return tx.written(h)
	}
	if len(r.events) == 0 {
		return appendResult{current: h.last, position: h.lastPosition}
	}
	revived := h.deleted()
	restart := h.last + 1
	var old []byte
	if revived {
		var err error
		if old, err = tx.oldMetadata(r.stream); err != nil {
			return appendResult{err: err}
		}
	}
	first := tx.next
	more := len(r.events) - 1
	if revived {
		more++
	}
	for i := range r.events {
		p := &r.events[i]
		tx.put(h, &event{
			first: first, more: more - i, revision: h.last + 1, id: p.id, stream: r.stream, kind: p.kind,
			contentType: p.contentType, metadata: p.metadata, data: p.data,
		})
	}
	if base, ok := metadataOf(r.stream); ok {
		tx.takeMetadata(base, r.events[len(r.events)-1].data)
	}
	res := tx.written(h)
	if revived {
		tx.appendMetadata(r.stream, first, restoredMetadata(old, restart))
	}
	return res
}

func (tx *transaction) written(h *dirtyHead) appendResult {
	return appendResult{err: tx.err, current: h.last, position: h.lastPosition}
}

// writeMetadata replaces a stream's metadata in an append of its own.
func (tx *transaction) writeMetadata(stream string, h *dirtyHead, data []byte) appendResult {
	at := tx.appendMetadata(stream, tx.next, data)
	return appendResult{err: tx.err, current: h.last, position: at}
}

// appendMetadata adds one event to the stream's metadata stream, as part of the append that began at first.
func (tx *transaction) appendMetadata(stream string, first uint64, data []byte) (position uint64) {
	meta, err := tx.head(metadataPrefix + stream)
	if err != nil {
		tx.fail(err)
		return 0
	}
	tx.put(meta, &event{
		first: first, revision: meta.last + 1, id: uuid.New(), stream: metadataPrefix + stream,
		kind: metadataType, contentType: contentJSON, data: data,
	})
	tx.takeMetadata(stream, data)
	return meta.lastPosition
}

// takeMetadata makes the stream's head obey its new metadata.
func (tx *transaction) takeMetadata(stream string, data []byte) {
	h, err := tx.head(stream)
	if err != nil {
		tx.fail(err)
		return
	}
	h.meta = parseMetadata(data)
	h.changed = tx.last
	h.dirty = true
}

// oldMetadata reads the metadata that hides a stream, so that reviving it keeps
// what else it says; a client may have written it by hand. Metadata that came
// in this very transaction isn't on disk yet and is taken to say nothing else.
func (tx *transaction) oldMetadata(stream string) ([]byte, error) {
	meta, err := tx.head(metadataPrefix + stream)
	if err != nil || meta.dirty || meta.last < 0 {
		return nil, err
	}
	e, err := tx.s.eventAt(meta.lastPosition)
	return e.data, err
}

// put writes one event: record, index entry, head, recent id.
func (tx *transaction) put(h *dirtyHead, e *event) {
	e.position, e.created = tx.next, tx.created
	tx.buf = appendRecord(tx.buf[:0], e)
	if err := tx.batch.Set(eventKey(e.position), tx.buf, nil); err != nil {
		tx.fail(fmt.Errorf("write an event: %w", err))
		return
	}
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], e.position)
	if err := tx.batch.Set(indexKey(e.stream, e.revision), at[:], nil); err != nil {
		tx.fail(fmt.Errorf("write a stream's index: %w", err))
		return
	}
	h.last, h.lastPosition, h.changed, h.dirty = e.revision, e.position, e.position, true
	tx.last = e.position
	tx.next += uint64(len(tx.buf))
	tx.s.recent.add(e.stream, e.id, knownEvent{revision: e.revision, position: e.position})
}

// fail makes the whole transaction fail: a batch half built must not be written.
func (tx *transaction) fail(err error) {
	if tx.err == nil {
		tx.err = err
	}
}
