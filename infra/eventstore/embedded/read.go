package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/cockroachdb/pebble/v2"
)

// A page is what a reader takes from the log at once. Between pages it holds
// no iterator, so a reader that waits for its client pins no files.
const (
	pageEvents = 256
	pageBytes  = 1 << 20
)

// page is a run of events and whether the log had more behind it.
type page struct {
	events []event
	more   bool
}

// readAll reads a page of the whole log: forward from a position on, inclusive,
// or backward from the event before it. It never looks behind what is safe on
// disk. The page lies in the buffer and is good until the buffer is given back;
// without a buffer it is the caller's own.
func (s *store) readAll(ctx context.Context, from uint64, backward bool, limit int, buf *pageBuffer) (p page, err error) {
	if buf == nil {
		buf = &pageBuffer{}
	}
	buf.reset()
	defer func() { buf.events = p.events }()
	p.events = buf.events
	bounds := pebble.IterOptions{LowerBound: []byte{keyEvent}}
	end := s.committed.Load() + 1
	if backward && from < end {
		end = from
	}
	bounds.UpperBound = eventKey(end)
	if !backward {
		if from >= end {
			return page{}, nil
		}
		bounds.LowerBound = eventKey(from)
	}
	it, err := s.db.NewIterWithContext(ctx, &bounds)
	if err != nil {
		return page{}, fmt.Errorf("read the log: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	step, ok := it.Next, false
	if backward {
		step, ok = it.Prev, it.Last()
	} else {
		ok = it.First()
	}
	limit = min(limit, pageEvents)
	var size int
	last := &event{}
	for ; ok; ok = step() {
		if len(p.events) == limit || size >= pageBytes {
			p.more = true
			return p, nil
		}
		position, err := positionOfKey(it.Key())
		if err != nil {
			return page{}, err
		}
		raw, err := it.ValueAndErr()
		if err != nil {
			return page{}, fmt.Errorf("read the log: %w", err)
		}
		e, err := decodeRecordLike(position, buf.copy(raw), last)
		if err != nil {
			return page{}, fmt.Errorf("read the event at %d: %w", position, err)
		}
		size += len(raw)
		p.events = append(p.events, e)
		last = &p.events[len(p.events)-1]
	}
	return p, it.Error()
}

// readStream reads a page of a stream, whose head the caller has just read,
// forward or backward from a revision on, inclusive. next is where the page
// behind it starts; p.more tells whether there may be one.
func (s *store) readStream(ctx context.Context, stream string, h *head, from int64, backward bool, limit int) (p page, next int64, err error) {
	first, last, err := s.visible(ctx, stream, h)
	if err != nil {
		return page{}, 0, err
	}
	if backward {
		last = min(last, from)
	} else {
		first = max(first, from)
	}
	if first > last || limit <= 0 {
		return page{}, from, nil
	}
	prefix := streamPrefix(stream)
	upper := prefixEnd(prefix)
	if last < math.MaxInt64 {
		upper = binary.BigEndian.AppendUint64(prefix[:len(prefix):len(prefix)], uint64(last)+1)
	}
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: indexKey(stream, first), UpperBound: upper})
	if err != nil {
		return page{}, 0, fmt.Errorf("read a stream's index: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	step, ok := it.Next, false
	if backward {
		step, ok = it.Prev, it.Last()
	} else {
		ok = it.First()
	}
	limit = min(limit, pageEvents)
	next = from
	var size int
	for ; ok; ok = step() {
		if len(p.events) == limit || size >= pageBytes {
			p.more = true
			return p, next, nil
		}
		v, err := it.ValueAndErr()
		if err != nil || len(v) != 8 {
			return page{}, 0, errors.Join(errBadIndex, err)
		}
		_, revision, err := parseIndexKey(it.Key())
		if err != nil {
			return page{}, 0, errBadIndex
		}
		e, ok, err := s.eventAt(stream, revision, binary.BigEndian.Uint64(v))
		if err != nil {
			return page{}, 0, err
		}
		if !ok {
			// It is out of sight by now, and so is all before it.
			if backward {
				return p, next, nil
			}
			p.events, size = p.events[:0], 0
			continue
		}
		size += e.sizeHint()
		p.events = append(p.events, e)
		next = e.revision + 1
		if backward {
			next = e.revision - 1
		}
	}
	return p, next, it.Error()
}

// visible is the range of a stream's revisions that its metadata lets readers see.
func (s *store) visible(ctx context.Context, stream string, h *head) (first, last int64, err error) {
	if _, isMeta := metadataOf(stream); isMeta {
		// A metadata stream is what its last event says.
		return max(h.last, 0), h.last, nil
	}
	first, last = h.firstVisible(), h.last
	oldest := h.oldestVisible(s.opt.clock())
	if oldest == 0 || first > last {
		return first, last, nil
	}
	// Times never run backward in the log, so the first event that is young
	// enough can be searched for.
	n := last - max(first, 0) + 1
	if n > math.MaxInt32 {
		first, n = last-math.MaxInt32+1, math.MaxInt32
	}
	at := sort.Search(int(n), func(i int) bool {
		if err != nil || ctx.Err() != nil {
			return true
		}
		var position uint64
		var ok bool
		if position, ok, err = s.positionAt(stream, first+int64(i)); err != nil || !ok {
			return false
		}
		var e event
		e, ok, err = s.eventAt(stream, first+int64(i), position)
		return ok && e.created >= oldest
	})
	return first + int64(at), last, errors.Join(err, ctx.Err())
}
