package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// removalStep is how many events are removed at once. The commit goroutine
	// does it, so no append is decided meanwhile: one millisecond or two.
	removalStep = 256
	// removalStepBytes bounds what is read for it.
	removalStepBytes = 1 << 20
)

// keepFrom is the lowest revision of a stream that has to stay. What lies below
// no reader sees, and never will unless somebody takes back what hides it.
//
// The last event stays where it is only hidden by its age, by $maxCount or by
// $tb. Of a stream that was deleted nothing stays; its head and its mark go on
// counting its revisions. A tombstone stays for ever.
func (s *store) keepFrom(ctx context.Context, stream string, h *head) (int64, error) {
	_, isMeta := metadataOf(stream)
	switch {
	case h.last == noRevision:
		return 0, nil
	case h.tombstoned, isMeta:
		return h.last, nil
	case h.deleted():
		return h.last + 1, nil
	case h.meta == streamMetadata{}:
		return 0, nil
	}
	first, last, err := s.visible(ctx, stream, h)
	return min(first, last), err
}

// removed tells what one step of a removal has removed.
type removed struct {
	ledger
	positions []uint64
	more      bool
}

// removeHidden removes the beginning of a stream that nobody sees, up to one
// step of it. The commit goroutine runs it: nobody changes what is visible in
// the meantime, and the newest event of the log, whose place tells where the
// next one goes, is known.
func (s *store) removeHidden(ctx context.Context, stream string) (r removed, err error) {
	h, err := s.readHead(stream)
	if err != nil {
		return removed{}, err
	}
	keep, err := s.keepFrom(ctx, stream, &h)
	if err != nil || keep <= 0 {
		return removed{}, err
	}
	batch := s.db.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	m, err := s.collectHidden(ctx, batch, stream, keep, &r)
	if err != nil || r.events == 0 {
		return removed{}, err
	}
	total := ledger{events: s.removed.events + r.events, bytes: s.removed.bytes + r.bytes}
	err = errors.Join(batch.Set(markKey(stream), encodeMark(m), nil), batch.Set(ledgerKey(), encodeLedger(total), nil))
	if err == nil {
		// Without a sync: a removal that a crash takes back is done again.
		err = s.db.Apply(batch, pebble.NoSync)
	}
	if err != nil {
		err = fmt.Errorf("remove events of %s: %w", stream, err)
		s.trap.spring(err) // part of it may be there
		return removed{}, err
	}
	s.removed = total
	return r, nil
}

// collectHidden puts the removal of a stream's first events into a batch.
func (s *store) collectHidden(ctx context.Context, batch *pebble.Batch, stream string, keep int64, r *removed) (m mark, err error) {
	upper := prefixEnd(streamPrefix(stream))
	if keep < math.MaxInt64 {
		upper = indexKey(stream, keep)
	}
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: streamPrefix(stream), UpperBound: upper})
	if err != nil {
		return mark{}, fmt.Errorf("read a stream's index: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return mark{}, fmt.Errorf("read a stream's index: %w", err)
		}
		_, revision, err := parseIndexKey(it.Key())
		if err != nil || len(value) != 8 {
			return mark{}, errBadIndex
		}
		position := binary.BigEndian.Uint64(value)
		if revision >= keep || position == s.committed.Load() {
			return m, nil
		}
		if r.events == removalStep || r.bytes >= removalStepBytes {
			r.more = true
			return m, nil
		}
		length, err := s.recordLength(position)
		if err != nil {
			return mark{}, err
		}
		if err := errors.Join(batch.Delete(eventKey(position), nil), batch.Delete(it.Key(), nil)); err != nil {
			return mark{}, err
		}
		r.events++
		r.bytes += length
		r.positions = append(r.positions, position)
		m = mark{before: revision + 1, position: position}
	}
	return m, it.Error()
}

// recordLength is how many bytes of the log an event takes. A damaged record
// keeps its length, and may be removed.
func (s *store) recordLength(position uint64) (n uint64, err error) {
	found, err := lookUp(s.db, eventKey(position), func(raw []byte) error {
		n = uint64(len(raw))
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("read the event at %d: %w", position, pebble.ErrNotFound)
	}
	return n, err
}
