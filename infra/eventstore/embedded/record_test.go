package embedded

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/google/uuid"
)

func sampleEvents() []event {
	id := uuid.MustParse("0190d7f0-7a10-7c8e-9f00-0123456789ab")
	return []event{
		{position: 64, first: 64, revision: 0, id: id, created: 17_000_000_000_000_000, stream: "s", kind: "k", contentType: contentJSON, metadata: []byte("{}"), data: []byte("{}")},
		{position: 5000, first: 64, more: 3, revision: 7, id: id, created: -5, stream: "流-1", kind: "算法", contentType: contentBinary, metadata: []byte{}, data: []byte{}},
		{position: math.MaxUint64, first: 1, more: 1, revision: math.MaxInt64, id: id, stream: "$$s", kind: "$x", contentType: "text/plain", metadata: []byte{0}, data: bytes.Repeat([]byte{0xff}, 3000)},
	}
}

func TestRecordRoundTrip(t *testing.T) {
	for _, e := range sampleEvents() {
		raw := appendRecord(nil, &e)
		got, err := decodeRecord(e.position, raw)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("got %+v, want %+v", got, e)
		}
	}
}

// eventstore.md, Store: records carry a checksum.
func TestRecordDamageIsFound(t *testing.T) {
	e := sampleEvents()[1]
	raw := appendRecord(nil, &e)
	for i := range raw {
		bad := bytes.Clone(raw)
		bad[i] ^= 0x40
		if _, err := decodeRecord(e.position, bad); err == nil {
			t.Errorf("a flipped bit in byte %d went unnoticed", i)
		}
	}
	for n := range raw {
		if _, err := decodeRecord(e.position, raw[:n]); !errors.Is(err, errTornRecord) {
			t.Errorf("a record cut to %d bytes: %v", n, err)
		}
	}
	if _, err := decodeRecord(e.position+1, raw); !errors.Is(err, errTornRecord) {
		t.Errorf("a record under a wrong key: %v", err)
	}
}

func FuzzRecord(f *testing.F) {
	for _, e := range sampleEvents() {
		f.Add(e.position, appendRecord(nil, &e))
	}
	f.Add(uint64(64), []byte{})
	f.Fuzz(func(t *testing.T, position uint64, raw []byte) {
		// Behind a good checksum the rest of the decoder is reached, too.
		if len(raw) > recordHeader {
			sum := checksum(position, raw[recordHeader:])
			raw = append([]byte{raw[0], byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}, raw[recordHeader:]...)
		}
		e, err := decodeRecord(position, raw)
		if err != nil {
			return
		}
		again, err := decodeRecord(position, appendRecord(nil, &e))
		if err != nil || again.id != e.id || again.stream != e.stream || !bytes.Equal(again.data, e.data) || again.revision != e.revision {
			t.Fatalf("does not survive: %+v, %v", e, err)
		}
	})
}

func FuzzKeys(f *testing.F) {
	f.Add("s", int64(0), []byte("i\x01s\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add("", int64(math.MaxInt64), []byte{})
	f.Add("a\x00b", int64(3), []byte("e12345678"))
	f.Fuzz(func(t *testing.T, stream string, revision int64, raw []byte) {
		if stream2, revision2, err := parseIndexKey(raw); err == nil {
			if !bytes.Equal(indexKey(stream2, revision2), raw) {
				t.Fatalf("key %x reads as %q %d", raw, stream2, revision2)
			}
		}
		if p, err := positionOfKey(raw); err == nil && !bytes.Equal(eventKey(p), raw) {
			t.Fatalf("key %x reads as %d", raw, p)
		}
		if revision < 0 || len(stream) > maxStreamName {
			return
		}
		stream2, revision2, err := parseIndexKey(indexKey(stream, revision))
		if err != nil || stream2 != stream || revision2 != revision {
			t.Fatalf("%q %d reads as %q %d, %v", stream, revision, stream2, revision2, err)
		}
		if !bytes.HasPrefix(indexKey(stream, revision), streamPrefix(stream)) {
			t.Fatal("index key outside of its stream")
		}
	})
}

func FuzzHead(f *testing.F) {
	h := head{last: 5, lastPosition: 99, changed: 120, tombstoned: true, meta: streamMetadata{maxCount: 1, maxAge: 2, truncateBefore: deletedTruncate}}
	f.Add(encodeHead(&h))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := decodeHead(raw)
		if err != nil {
			return
		}
		again, err := decodeHead(encodeHead(&h))
		if err != nil || again != h {
			t.Fatalf("does not survive: %+v, %v", h, err)
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"$maxAge":1,"$maxCount":2,"$tb":9223372036854775807}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := parseMetadata(raw)
		if m.maxAge < 0 || m.maxCount < 0 || m.truncateBefore < 0 {
			t.Fatalf("negative: %+v", m)
		}
		if got := parseMetadata(restoredMetadata(raw, 7)).truncateBefore; got != 7 {
			t.Fatalf("restored $tb is %d", got)
		}
	})
}

func TestMetadataNumbers(t *testing.T) {
	for text, want := range map[string]streamMetadata{
		`{}`:                      {},
		`not json`:                {},
		`null`:                    {},
		`[]`:                      {},
		`{"$maxCount":"5"}`:       {},
		`{"$maxCount":-5}`:        {},
		`{"$maxAge":1.5}`:         {},
		`{"$maxCount":5,"$tb":3}`: {maxCount: 5, truncateBefore: 3},
		`{"$tb":18446744073709551615,"x":{"$maxAge":1}}`: {truncateBefore: math.MaxInt64},
	} {
		if got := parseMetadata([]byte(text)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
