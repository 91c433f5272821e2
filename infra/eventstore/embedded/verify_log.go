package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// log reads every record and looks for it in the index of its stream.
func (v *verifier) log() error {
	total := v.store.committed.Load()
	var before tailEvent
	var gaps, n uint64
	v.end = firstPosition
	err := v.keys(keyEvent, func(key, raw []byte) error {
		n++
		position, err := positionOfKey(key)
		if err != nil {
			v.damage(fmt.Sprintf("key %x", key), "%v", err)
			return nil
		}
		if err := v.tick("log", n, position, total); err != nil {
			return err
		}
		where := fmt.Sprintf("position %d", position)
		e, err := decodeRecord(position, raw)
		if err != nil {
			v.damage(where, "%v", err)
			// Its size is true all the same: the key behind it tells.
			v.end = position + uint64(len(raw))
			before = tailEvent{}
			return nil
		}
		v.rep.Events++
		v.rep.Bytes += uint64(len(raw))
		if position < v.end {
			v.damage(where, "the record lies inside the one before it, which ends at %d", v.end)
		} else {
			gaps += position - v.end
		}
		v.neighbours(where, &before, &e, position == v.end)
		v.end = position + uint64(len(raw))
		before = tailEvent{event: e, size: uint64(len(raw))}
		before.data, before.metadata = nil, nil
		return v.indexed(where, &e)
	})
	if err != nil || v.unsound {
		return err
	}
	if v.noted >= v.end {
		v.damage("log", "%v", errEndMissing(v.noted, v.end))
	}
	if before.more > 0 {
		v.damage(fmt.Sprintf("position %d", before.position), "%d events of the last append are missing", before.more)
	}
	return v.account(gaps)
}

// neighbours compares a record with the one before it.
func (v *verifier) neighbours(where string, before *tailEvent, e *event, touching bool) {
	if before.size == 0 {
		return
	}
	if e.created < before.created {
		v.damage(where, "the event is older than the one before it")
	}
	switch {
	case !touching: // what was between them has been removed
	case before.more == 0 && e.first != e.position:
		v.damage(where, "the event belongs to an append that began at %d, where it did not", e.first)
	case before.more > 0 && (e.first != before.first || e.more != before.more-1):
		v.damage(where, "the append that began at %d is there in part", before.first)
	}
}

// account compares the gaps between the records with what was removed.
func (v *verifier) account(gaps uint64) error {
	l, err := readLedger(v.db)
	switch {
	case errors.Is(err, errTornLedger):
		v.damage("ledger", "%v", err)
		return nil
	case err != nil:
		return v.unlessDamaged(err)
	}
	v.rep.Removed = l.events
	if gaps != l.bytes {
		v.damage("log", "%d bytes are missing between the records, where scavenging has removed %d", gaps, l.bytes)
	}
	return nil
}

// indexed looks for an event in its stream's index.
func (v *verifier) indexed(where string, e *event) error {
	found, err := lookUp(v.db, indexKey(e.stream, e.revision), func(value []byte) error {
		if len(value) != 8 || binary.BigEndian.Uint64(value) != e.position {
			v.damage(where, "the index of %s has another place for revision %d", e.stream, e.revision)
		}
		return nil
	})
	if err == nil && !found {
		v.damage(where, "the index of %s does not know revision %d", e.stream, e.revision)
	}
	return v.unlessDamaged(err)
}
