package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"
)

// mark tells what scavenging has removed of a stream. Only beginnings of
// streams are ever removed, so one number says it all. It is written together
// with the removal.
type mark struct {
	before   int64  // every revision below is gone, every one from here on is there
	position uint64 // of the event before-1, which a stream's head may still name
}

// ledger counts what scavenging has removed of the log. Positions count bytes,
// so the gaps between the records must add up to it: a record that is missing
// for any other reason shows.
type ledger struct {
	events uint64
	bytes  uint64
}

var (
	errTornMark   = errors.New("mark of removed events damaged: checksum does not match")
	errTornLedger = errors.New("ledger of removed events damaged: checksum does not match")
)

const markVersion = 1

func encodeMark(m mark) []byte {
	return sealNumbers(uint64(m.before), m.position)
}

func decodeMark(b []byte) (mark, error) {
	var before, position uint64
	if !openNumbers(b, &before, &position) || int64(before) < 0 {
		return mark{}, errTornMark
	}
	return mark{before: int64(before), position: position}, nil
}

func encodeLedger(l ledger) []byte {
	return sealNumbers(l.events, l.bytes)
}

func decodeLedger(b []byte) (ledger, error) {
	var l ledger
	if !openNumbers(b, &l.events, &l.bytes) {
		return ledger{}, errTornLedger
	}
	return l, nil
}

// sealNumbers encodes numbers behind a checksum.
func sealNumbers(numbers ...uint64) []byte {
	return sealed(func(b []byte) []byte {
		for _, n := range numbers {
			b = binary.AppendUvarint(b, n)
		}
		return b
	})
}

// openNumbers is the inverse of sealNumbers.
func openNumbers(b []byte, numbers ...*uint64) bool {
	r, ok := unsealed(b)
	for _, n := range numbers {
		*n = r.uvarint()
	}
	return ok && !r.bad && len(r.rest) == 0
}

// sealed puts a checksum and a version before what fill appends.
func sealed(fill func([]byte) []byte) []byte {
	b := fill(append(make([]byte, 4, 32), markVersion))
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// unsealed is the inverse of sealed.
func unsealed(b []byte) (recordReader, bool) {
	if len(b) < 5 || binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) || b[4] != markVersion {
		return recordReader{}, false
	}
	return recordReader{rest: b[5:]}, true
}

// scavengeState is how far scavenging is, kept so that it goes on there after
// the store was closed, and so that the time between two runs is kept, too.
type scavengeState struct {
	finished int64  // when the last run ended, in ticks
	running  bool   // a run was begun and not ended
	after    string // the last stream, in the order of keys, that this run is done with
	streams  uint64 // looked at by this run
	base     ledger // when it began
}

func encodeScavengeState(s *scavengeState) []byte {
	running := uint64(0)
	if s.running {
		running = 1
	}
	return sealed(func(b []byte) []byte {
		for _, n := range []uint64{uint64(s.finished), running, s.streams, s.base.events, s.base.bytes} {
			b = binary.AppendUvarint(b, n)
		}
		return appendText(b, s.after)
	})
}

// decodeScavengeState reads the state. One that is damaged is taken to be none:
// a run that begins anew does no harm.
func decodeScavengeState(b []byte) scavengeState {
	r, ok := unsealed(b)
	if !ok {
		return scavengeState{}
	}
	s := scavengeState{finished: int64(r.uvarint()), running: r.uvarint() == 1, streams: r.uvarint()}
	s.base = ledger{events: r.uvarint(), bytes: r.uvarint()}
	s.after = string(r.bytes())
	if r.bad {
		return scavengeState{}
	}
	return s
}

// readScavengeState reads how far scavenging is.
func readScavengeState(db pebble.Reader) (s scavengeState, err error) {
	_, err = lookUp(db, scavengeKey(), func(v []byte) error {
		s = decodeScavengeState(v)
		return nil
	})
	return s, err
}

// readMark reads a stream's mark; a stream of which nothing was removed has an empty one.
func readMark(db pebble.Reader, stream string) (mark, error) {
	var m mark
	_, err := lookUp(db, markKey(stream), func(v []byte) (err error) {
		m, err = decodeMark(v)
		return err
	})
	return m, err
}

// readLedger reads the ledger; without one nothing was ever removed.
func readLedger(db pebble.Reader) (ledger, error) {
	var l ledger
	_, err := lookUp(db, ledgerKey(), func(v []byte) (err error) {
		l, err = decodeLedger(v)
		return err
	})
	return l, err
}

// lookUp hands the value of a key to use, which must not keep it; found is
// false if there is none.
func lookUp(db pebble.Reader, key []byte, use func([]byte) error) (found bool, err error) {
	v, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the store: %w", err)
	}
	err = use(v)
	if cerr := closer.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("read the store: %w", cerr)
	}
	return true, err
}
