package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// noRevision is the last revision of a stream without events.
const noRevision int64 = -1

// head is what is known of a stream without reading its events. The stream's
// metadata is kept with it, so that a reader needs one look-up.
type head struct {
	last         int64  // last revision, noRevision without events
	lastPosition uint64 // position of that event
	changed      uint64 // position of the last event that changed this head
	tombstoned   bool
	meta         streamMetadata
}

var errTornHead = errors.New("stream head damaged: checksum does not match")

// deleted tells whether the stream was deleted softly and not written to since.
func (h *head) deleted() bool { return h.meta.truncateBefore == deletedTruncate }

// missing tells whether readers see no stream at all.
func (h *head) missing() bool { return h.last == noRevision || h.deleted() }

// firstVisible is the lowest revision that $tb and $maxCount let through.
func (h *head) firstVisible() int64 {
	first := h.meta.truncateBefore
	if n := h.meta.maxCount; n > 0 && h.last-n+1 > first {
		first = h.last - n + 1
	}
	return first
}

// oldestVisible is the lowest creation time, in ticks, that $maxAge lets through; 0 is all.
func (h *head) oldestVisible(now time.Time) int64 {
	if h.meta.maxAge <= 0 {
		return 0
	}
	return ticks(now) - h.meta.maxAge*ticksPerSecond
}

const ticksPerSecond = int64(time.Second / 100)

// ticks is the protocol's time: 100 ns since 1970.
func ticks(t time.Time) int64 { return t.UnixNano() / 100 }

func encodeHead(h *head) []byte {
	b := make([]byte, 4, 64)
	var flags byte
	if h.tombstoned {
		flags |= 1
	}
	b = append(b, 1, flags)
	b = binary.AppendVarint(b, h.last)
	b = binary.AppendUvarint(b, h.lastPosition)
	b = binary.AppendUvarint(b, h.changed)
	b = binary.AppendVarint(b, h.meta.maxCount)
	b = binary.AppendVarint(b, h.meta.maxAge)
	b = binary.AppendVarint(b, h.meta.truncateBefore)
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

func decodeHead(b []byte) (head, error) {
	if len(b) < 6 || binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) || b[4] != 1 {
		return head{}, errTornHead
	}
	r := recordReader{rest: b[6:]}
	h := head{tombstoned: b[5]&1 != 0}
	h.last = r.varint()
	h.lastPosition = r.uvarint()
	h.changed = r.uvarint()
	h.meta.maxCount = r.varint()
	h.meta.maxAge = r.varint()
	h.meta.truncateBefore = r.varint()
	if r.bad || h.last < noRevision {
		return head{}, errTornHead
	}
	return h, nil
}

// String shows a head to people.
func (h *head) String() string {
	state := ""
	if h.tombstoned {
		state = ", tombstoned"
	}
	return fmt.Sprintf("revision %d at %d, changed at %d, metadata %+v%s", h.last, h.lastPosition, h.changed, h.meta, state)
}

// deriveHead makes a stream's head anew from its index, from what was removed
// of it, and from its metadata stream.
func deriveHead(db pebble.Reader, stream string) (head, error) {
	h := head{last: noRevision}
	last, position, err := lastOf(db, stream)
	if err != nil {
		return head{}, err
	}
	if last != noRevision {
		h.last, h.lastPosition, h.changed = last, position, position
		h.tombstoned = last == tombstoneRevision
	}
	last, position, err = lastOf(db, metadataPrefix+stream)
	if err != nil || last == noRevision {
		return h, err
	}
	meta, err := recordedAt(db, position)
	if err != nil {
		return head{}, err
	}
	h.meta = parseMetadata(meta.data)
	h.changed = max(h.changed, position)
	return h, nil
}

var errBadIndex = errors.New("a stream's index is damaged")

// lastOf finds the last revision of a stream by its index or, where all of it
// was removed, by its mark.
func lastOf(db pebble.Reader, stream string) (revision int64, position uint64, err error) {
	prefix := streamPrefix(stream)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return 0, 0, fmt.Errorf("read a stream's index: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		m, err := readMark(db, stream)
		return m.before - 1, m.position, errors.Join(err, it.Error())
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return 0, 0, fmt.Errorf("read a stream's index: %w", err)
	}
	_, revision, err = parseIndexKey(it.Key())
	if err != nil || len(v) != 8 {
		return 0, 0, errBadIndex
	}
	return revision, binary.BigEndian.Uint64(v), nil
}
