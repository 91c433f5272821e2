package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// streamInIndex is what the index says of a stream.
type streamInIndex struct {
	name         string
	last         int64
	lastPosition uint64
}

// index reads the index of every stream: revisions follow each other, each
// points at its event, and the stream has a head.
func (v *verifier) index() error {
	at := streamInIndex{last: noRevision}
	err := v.keys(keyIndex, func(key, value []byte) error {
		v.entries++
		if err := v.tick("index", v.entries, v.entries, v.rep.Events); err != nil {
			return err
		}
		stream, revision, err := parseIndexKey(key)
		if err != nil || len(value) != 8 {
			v.damage(fmt.Sprintf("key %x", key), "a damaged entry of a stream's index")
			return nil //nolint:nilerr // it is in the report
		}
		where := fmt.Sprintf("%s, revision %d", stream, revision)
		if stream != at.name || at.last == noRevision {
			if err := v.firstOf(where, stream, revision); err != nil {
				return err
			}
		} else if revision != at.last+1 && revision != tombstoneRevision {
			v.damage(where, "the revisions from %d on are missing before it", at.last+1)
		}
		at = streamInIndex{name: stream, last: revision, lastPosition: binary.BigEndian.Uint64(value)}
		return v.pointsAt(where, at)
	})
	if err != nil || v.unsound {
		return err
	}
	if v.entries != v.rep.Events {
		v.damage("index", "it has %d entries for %d events", v.entries, v.rep.Events)
	}
	return nil
}

// firstOf looks at a stream's first revision, which only scavenging may have moved.
func (v *verifier) firstOf(where, stream string, revision int64) error {
	m, err := readMark(v.db, stream)
	switch {
	case errors.Is(err, errTornMark):
		v.damage(where, "%v", err)
	case err != nil:
		return v.unlessDamaged(err)
	case revision != m.before && revision != tombstoneRevision:
		v.damage(where, "it is the first one, where %d should be", m.before)
	}
	found, err := lookUp(v.db, headKey(stream), func([]byte) error { return nil })
	if err == nil && !found {
		v.damage(where, "the stream has no head")
	}
	return v.unlessDamaged(err)
}

// pointsAt looks at the event that an entry of the index points at.
func (v *verifier) pointsAt(where string, at streamInIndex) error {
	found, err := lookUp(v.db, eventKey(at.lastPosition), func(raw []byte) error {
		// A damaged record has been found before.
		if e, err := decodeRecord(at.lastPosition, raw); err == nil && (e.stream != at.name || e.revision != at.last) {
			v.damage(where, "the index points at revision %d of %s", e.revision, e.stream)
		}
		return nil
	})
	if err == nil && !found {
		v.damage(where, "the index points at position %d, where no event is", at.lastPosition)
	}
	return v.unlessDamaged(err)
}
