package embedded

import (
	"encoding/binary"
	"errors"
	"math"
)

// The key space, one leading byte each. Big endian numbers make the byte order
// of Pebble's keys the order of the log.
const (
	keyEvent = 'e' // position → record
	keyIndex = 'i' // stream, revision → position
	keyHead  = 'h' // stream → head
	keyMark  = 's' // stream → what scavenging has removed of it
	keyStore = 'm' // the store's own: its description, and what scavenging did
)

// maxStreamName bounds a stream's name; keys of any length work, but a name
// that long is a mistake of the caller.
const maxStreamName = 1024

// tombstoneRevision is the revision of the event that ends a stream for ever.
const tombstoneRevision = math.MaxInt64

var errBadKey = errors.New("malformed key")

// eventKey is the key of the record at a position.
func eventKey(position uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyEvent}, position)
}

// positionOfKey is the inverse of eventKey.
func positionOfKey(key []byte) (uint64, error) {
	if len(key) != 9 || key[0] != keyEvent {
		return 0, errBadKey
	}
	return binary.BigEndian.Uint64(key[1:]), nil
}

// streamPrefix starts every index key of a stream. The name's length stands
// before the name so that no stream's keys lie among those of another.
func streamPrefix(stream string) []byte {
	key := make([]byte, 0, 1+binary.MaxVarintLen64+len(stream)+8)
	key = append(key, keyIndex)
	key = binary.AppendUvarint(key, uint64(len(stream)))
	return append(key, stream...)
}

// indexKey is the key under which a stream's revision points at its position.
func indexKey(stream string, revision int64) []byte {
	return binary.BigEndian.AppendUint64(streamPrefix(stream), uint64(revision))
}

// parseIndexKey is the inverse of indexKey.
func parseIndexKey(key []byte) (stream string, revision int64, err error) {
	if len(key) < 1 || key[0] != keyIndex {
		return "", 0, errBadKey
	}
	size, n := binary.Uvarint(key[1:])
	if n <= 0 || size > maxStreamName || n != len(binary.AppendUvarint(nil, size)) {
		return "", 0, errBadKey
	}
	rest := key[1+n:]
	if uint64(len(rest)) != size+8 {
		return "", 0, errBadKey
	}
	rev := binary.BigEndian.Uint64(rest[size:])
	if rev > math.MaxInt64 {
		return "", 0, errBadKey
	}
	return string(rest[:size]), int64(rev), nil
}

// headKey is the key of a stream's head.
func headKey(stream string) []byte {
	return append([]byte{keyHead}, stream...)
}

// markKey is the key of a stream's mark.
func markKey(stream string) []byte {
	return append([]byte{keyMark}, stream...)
}

// storeKey is the key of the store's description.
func storeKey() []byte { return []byte{keyStore} }

// scavengeKey is the key of how far scavenging is.
func scavengeKey() []byte { return []byte{keyStore, 's'} }

// ledgerKey is the key of the ledger of what was removed.
func ledgerKey() []byte { return []byte{keyStore, 'r'} }

// eventUpperBound is the first key behind all event keys.
func eventUpperBound() []byte { return []byte{keyEvent + 1} }
