package embedded

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"
)

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
	if err := tx.s.refusal(r); err != nil {
		return appendResult{err: err}, false
	}
	if r.kind == requestAppend && len(r.events) > 0 && h.deleted() {
		meta, err := tx.head(metadataPrefix + r.stream)
		if err != nil {
			return appendResult{err: err}, false
		}
		if meta.dirty {
			return appendResult{}, true // what it revives with must be read from the disk
		}
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
		e, ok, err := s.eventAt(stream, from+int64(i), position)
		if err != nil || !ok || e.id != id {
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
// what else it says; a client may have written it by hand. None of this very
// transaction is there then: apply sees to it.
func (tx *transaction) oldMetadata(stream string) ([]byte, error) {
	meta, err := tx.head(metadataPrefix + stream)
	if err != nil || meta.last < 0 {
		return nil, err
	}
	e, _, err := tx.s.eventAt(metadataPrefix+stream, meta.last, meta.lastPosition)
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
