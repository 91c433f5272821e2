package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// verifyTail looks at the last events of the log when the store is opened. It
// cuts a damaged record off the end, with the whole append that it belongs to,
// since an append is there wholly or not at all; it refuses a log that ends
// before what was noted as safe, or that has a damaged record before good ones,
// because there something else is broken; it puts right stream heads that
// disagree with the log; and it fills the memory of recent event ids.
func (s *store) verifyTail(ctx context.Context, noted uint64) error {
	tail, cut, err := s.scanTail(ctx)
	if err != nil {
		return err
	}
	var last uint64
	if len(tail) > 0 {
		last = tail[0].position
	}
	if last < noted {
		return errEndMissing(noted, last)
	}
	if cut > 0 {
		if tail, err = s.cutTail(tail, cut); err != nil {
			return err
		}
	}
	if len(tail) == 0 {
		s.next = firstPosition
		return nil
	}
	if err := s.checkGaps(tail); err != nil {
		return err
	}
	s.next = tail[0].position + tail[0].size
	s.lastCreated = tail[0].created
	s.committed.Store(tail[0].position)
	if err := s.checkHeads(tail); err != nil {
		return err
	}
	for i := len(tail) - 1; i >= 0; i-- {
		e := &tail[i]
		s.recent.add(e.stream, e.id, knownEvent{revision: e.revision, position: e.position})
	}
	return nil
}

// checkGaps refuses a log with holes near its end that scavenging has not made.
func (s *store) checkGaps(tail []tailEvent) error {
	var gaps uint64
	for i := range len(tail) - 1 {
		gaps += tail[i].position - tail[i+1].position - tail[i+1].size
	}
	if gaps > s.removed.bytes {
		return fmt.Errorf("the log has a hole: %d bytes are missing near its end, where %d were removed in all; restore a backup", gaps, s.removed.bytes)
	}
	return nil
}

// tailEvent is an event near the end of the log, without its payload.
type tailEvent struct {
	event
	size uint64 // of its record
}

// scanTail reads the last events, newest first, without their payload. cut is
// the lowest position of a damaged record at the very end, 0 if all are good.
func (s *store) scanTail(ctx context.Context) (tail []tailEvent, cut uint64, err error) {
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{
		LowerBound: []byte{keyEvent}, UpperBound: eventUpperBound(),
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read the end of the log: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.Last(); ok && len(tail) < recentCapacity; ok = it.Prev() {
		position, err := positionOfKey(it.Key())
		if err != nil {
			return nil, 0, err
		}
		raw, err := it.ValueAndErr()
		if err != nil {
			return nil, 0, fmt.Errorf("read the end of the log: %w", err)
		}
		e, err := decodeRecord(position, raw)
		switch {
		case errors.Is(err, errTornRecord) && len(tail) == 0:
			cut = position
			continue
		case err != nil:
			return nil, 0, fmt.Errorf("the log is damaged at position %d, before its end; restore a backup: %w", position, err)
		}
		// The iterator's buffer is used again; the payload isn't needed here.
		e.data, e.metadata = nil, nil
		tail = append(tail, tailEvent{event: e, size: uint64(len(raw))})
	}
	return tail, cut, it.Error()
}

// cutTail removes the damaged records from position cut on, and the events
// before them that belong to the same append.
func (s *store) cutTail(tail []tailEvent, cut uint64) (rest []tailEvent, err error) {
	from := cut
	// The damaged record can't say where its append began, but the good one
	// before it tells whether more of its own append had to follow.
	// Where something was removed in between, they are not of one append.
	if len(tail) > 0 && tail[0].more > 0 && tail[0].position+tail[0].size == cut {
		from = tail[0].first
	}
	batch := s.db.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	streams := map[string]bool{}
	for len(tail) > 0 && tail[0].position >= from {
		streams[tail[0].stream] = true
		if err := batch.Delete(indexKey(tail[0].stream, tail[0].revision), nil); err != nil {
			return nil, err
		}
		tail = tail[1:]
	}
	if err := batch.DeleteRange(eventKey(from), eventUpperBound(), nil); err != nil {
		return nil, err
	}
	orphans, err := s.orphanedIndex(from)
	if err != nil {
		return nil, err
	}
	for _, o := range orphans {
		streams[o.stream] = true
		if err := batch.Delete(indexKey(o.stream, o.revision), nil); err != nil {
			return nil, err
		}
	}
	if err := batch.Commit(pebble.Sync); err != nil {
		return nil, fmt.Errorf("cut the damaged end off the log: %w", err)
	}
	s.logger.Error("the last records of the event log were damaged and have been cut off", "from", from, "streams", len(streams))
	for stream := range streams {
		if err := s.rebuildHead(stream); err != nil {
			return nil, err
		}
	}
	return tail, nil
}

// orphanedIndex finds the index entries that point at or behind a position. It
// reads the whole index, which a damaged log is worth.
func (s *store) orphanedIndex(from uint64) (orphans []event, err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyIndex}, UpperBound: []byte{keyIndex + 1}})
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		v := it.Value()
		if len(v) != 8 || binary.BigEndian.Uint64(v) < from {
			continue
		}
		stream, revision, err := parseIndexKey(it.Key())
		if err != nil {
			return nil, err
		}
		orphans = append(orphans, event{stream: stream, revision: revision})
	}
	return orphans, it.Error()
}

// checkHeads compares the heads of the streams in the tail with the log, which is the truth.
func (s *store) checkHeads(tail []tailEvent) error {
	seen := map[string]bool{}
	for i := range tail {
		e := &tail[i]
		if seen[e.stream] {
			continue
		}
		seen[e.stream] = true
		h, err := s.readHead(e.stream)
		if err == nil && h.last == e.revision && h.lastPosition == e.position {
			continue
		}
		if err != nil && !errors.Is(err, errTornHead) {
			return err
		}
		s.logger.Warn("a stream's head disagreed with the log and has been rebuilt", "stream", e.stream)
		if err := s.rebuildHead(e.stream); err != nil {
			return err
		}
	}
	return nil
}

// rebuildHead writes a stream's head as the log has it.
func (s *store) rebuildHead(stream string) error {
	h, err := deriveHead(s.db, stream)
	if err != nil {
		return err
	}
	if err := s.db.Set(headKey(stream), encodeHead(&h), pebble.Sync); err != nil {
		return fmt.Errorf("rebuild a stream's head: %w", err)
	}
	if base, isMeta := metadataOf(stream); isMeta {
		return s.rebuildHead(base)
	}
	return nil
}

// prefixEnd is the first key behind all keys that start with prefix.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
