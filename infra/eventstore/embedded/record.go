package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/google/uuid"
)

// event is a recorded event in memory. Its byte slices belong to whoever read
// it and are never written to.
type event struct {
	position    uint64
	first       uint64 // position of the first event of the same append
	more        int    // events of the same append behind this one
	revision    int64
	id          uuid.UUID
	created     int64 // 100 ns ticks since 1970
	stream      string
	kind        string // the event's type
	contentType string
	metadata    []byte
	data        []byte
}

const (
	contentJSON   = "application/json"
	contentBinary = "application/octet-stream"
)

// recordVersion is the first byte of every record; a later layout takes the next.
const recordVersion = 1

// recordHeader is the version byte and the checksum.
const recordHeader = 1 + 4

var (
	errTornRecord = errors.New("record damaged: checksum does not match")
	castagnoli    = crc32.MakeTable(crc32.Castagnoli)
)

// checksum covers the position too, so that a whole record under a wrong key is found out.
func checksum(position uint64, body []byte) uint32 {
	var p [8]byte
	binary.BigEndian.PutUint64(p[:], position)
	return crc32.Update(crc32.Checksum(p[:], castagnoli), castagnoli, body)
}

// sizeHint is a little more than the record of e will need.
func (e *event) sizeHint() int {
	return 64 + len(e.stream) + len(e.kind) + len(e.contentType) + len(e.metadata) + len(e.data)
}

// appendRecord appends the encoded record of e to dst.
func appendRecord(dst []byte, e *event) []byte {
	start := len(dst)
	dst = append(dst, recordVersion, 0, 0, 0, 0)
	dst = append(dst, e.id[:]...)
	dst = binary.AppendUvarint(dst, e.position-e.first)
	dst = binary.AppendUvarint(dst, uint64(e.more))
	dst = binary.AppendUvarint(dst, uint64(e.revision))
	dst = binary.AppendVarint(dst, e.created)
	dst = appendText(dst, e.stream)
	dst = appendText(dst, e.kind)
	switch e.contentType {
	case contentJSON:
		dst = append(dst, 1)
	case contentBinary:
		dst = append(dst, 2)
	default:
		dst = append(dst, 0)
		dst = appendText(dst, e.contentType)
	}
	dst = binary.AppendUvarint(dst, uint64(len(e.metadata)))
	dst = append(dst, e.metadata...)
	dst = append(dst, e.data...)
	binary.BigEndian.PutUint32(dst[start+1:], checksum(e.position, dst[start+recordHeader:]))
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// decodeRecord reads the record found at position. The event's slices point
// into record, its strings do not.
func decodeRecord(position uint64, record []byte) (event, error) {
	return decodeRecordLike(position, record, &event{})
}

// decodeRecordLike is decodeRecord for a record that is likely to share texts
// with another, such as the one before it: they are made once.
func decodeRecordLike(position uint64, record []byte, other *event) (event, error) {
	if len(record) < recordHeader+16 {
		return event{}, errTornRecord
	}
	body := record[recordHeader:]
	if binary.BigEndian.Uint32(record[1:]) != checksum(position, body) {
		return event{}, errTornRecord
	}
	if record[0] != recordVersion {
		return event{}, fmt.Errorf("record of unknown version %d: written by a newer program", record[0])
	}
	e := event{position: position}
	copy(e.id[:], body)
	r := recordReader{rest: body[16:]}
	delta := r.uvarint()
	more := r.uvarint()
	rev := r.uvarint()
	e.created = r.varint()
	e.stream = textLike(r.bytes(), other.stream)
	e.kind = textLike(r.bytes(), other.kind)
	switch r.byte() {
	case 0:
		e.contentType = string(r.bytes())
	case 1:
		e.contentType = contentJSON
	case 2:
		e.contentType = contentBinary
	default:
		r.bad = true
	}
	e.metadata = r.bytes()
	if r.bad || delta > position || more > math.MaxInt32 || rev > math.MaxInt64 {
		return event{}, errors.New("record malformed behind a good checksum")
	}
	e.first = position - delta
	e.more = int(more)
	e.revision = int64(rev)
	e.data = r.rest
	return e, nil
}

// textLike makes a text of bytes, or takes the other where it is the same.
func textLike(b []byte, other string) string {
	if string(b) == other {
		return other
	}
	return string(b)
}

// recordReader takes fields off the front of a record and remembers whether one was missing.
type recordReader struct {
	rest []byte
	bad  bool
}

func (r *recordReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *recordReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *recordReader) byte() byte {
	if len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *recordReader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.bad = true
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}
