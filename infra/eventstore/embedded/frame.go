package embedded

import (
	"encoding/binary"
	"strconv"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of the fields of streams.ReadResp and of the messages in it that
// carry an event. TestFrame compares what is written here with the generated code.
const (
	respEvent = 1

	readEvent          = 1
	readLink           = 2
	readCommitPosition = 3

	recordedID             = 1
	recordedStream         = 2
	recordedRevision       = 3
	recordedPrepare        = 4
	recordedCommit         = 5
	recordedMetadata       = 6
	recordedCustomMetadata = 7
	recordedData           = 8

	uuidStructured = 1
	uuidString     = 2
	streamNameOf   = 3
	mapKey         = 1
	mapValue       = 2
)

// eventFrame is the response that carries an event. It is written by hand, from
// the record as it was read: a reader that catches up with a long log costs
// mostly this, and the generated code would make a dozen objects for each event.
type eventFrame struct {
	wire  wireOptions
	event *event
	link  *event // by which the event was found, if any
}

// codec writes event frames itself and leaves every other message to gRPC.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*eventFrame)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	s := f.sizes()
	pool := mem.DefaultBufferPool()
	buf := pool.Get(tagged(respEvent, s.read))
	*buf = f.append((*buf)[:0], s)
	return mem.BufferSlice{mem.NewBuffer(buf, pool)}, nil
}

// frameSizes are the sizes of the messages in a frame, which stand before them.
type frameSizes struct{ read, event, link int }

func (f *eventFrame) sizes() (s frameSizes) {
	found := f.event
	s.event = f.recordedSize(f.event)
	s.read = tagged(readEvent, s.event)
	if f.link != nil {
		found = f.link
		s.link = f.recordedSize(f.link)
		s.read += tagged(readLink, s.link)
	}
	s.read += protowire.SizeTag(readCommitPosition) + protowire.SizeVarint(found.position)
	return s
}

func (f *eventFrame) append(b []byte, s frameSizes) []byte {
	found := f.event
	b = appendHead(b, respEvent, s.read)
	b = appendHead(b, readEvent, s.event)
	b = f.appendRecorded(b, f.event)
	if f.link != nil {
		found = f.link
		b = appendHead(b, readLink, s.link)
		b = f.appendRecorded(b, f.link)
	}
	return appendUint(b, readCommitPosition, found.position)
}

// tagged is the size of a field that has a length and so many bytes.
func tagged(field protowire.Number, n int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(n)
}

// number is the size of a number's field, which is left out where it is 0.
func number(field protowire.Number, v uint64) int {
	if v == 0 {
		return 0
	}
	return protowire.SizeTag(field) + protowire.SizeVarint(v)
}

// filled is the size of a field of bytes, which is left out where it is empty.
func filled(field protowire.Number, n int) int {
	if n == 0 {
		return 0
	}
	return tagged(field, n)
}

// entry is the size of an entry of the map of metadata.
func entry(key string, value int) int {
	return tagged(mapKey, len(key)) + tagged(mapValue, value)
}

func (f *eventFrame) idSize(e *event) int {
	if f.wire.textIDs {
		return tagged(uuidString, textUUID)
	}
	high, low := halves(e)
	return tagged(uuidStructured, number(1, high)+number(2, low))
}

// textUUID is the length of a UUID as text.
const textUUID = 36

func halves(e *event) (high, low uint64) {
	return binary.BigEndian.Uint64(e.id[:8]), binary.BigEndian.Uint64(e.id[8:])
}

func (f *eventFrame) recordedSize(e *event) int {
	return tagged(recordedID, f.idSize(e)) +
		tagged(recordedStream, filled(streamNameOf, len(e.stream))) +
		number(recordedRevision, uint64(e.revision)) +
		number(recordedPrepare, e.position) +
		number(recordedCommit, e.position) +
		tagged(recordedMetadata, entry(wireType, len(e.kind))) +
		tagged(recordedMetadata, entry(wireContentType, len(e.contentType))) +
		tagged(recordedMetadata, entry(wireCreated, digits(e.created))) +
		filled(recordedCustomMetadata, len(e.metadata)) +
		filled(recordedData, len(e.data))
}

// digits is how many bytes a number has as text.
func digits(v int64) int {
	var text [20]byte
	return len(strconv.AppendInt(text[:0], v, 10))
}

func (f *eventFrame) appendRecorded(b []byte, e *event) []byte {
	b = appendHead(b, recordedID, f.idSize(e))
	if f.wire.textIDs {
		b = appendHead(b, uuidString, textUUID)
		b = append(b, e.id.String()...)
	} else {
		high, low := halves(e)
		b = appendHead(b, uuidStructured, number(1, high)+number(2, low))
		b = appendUint(b, 1, high)
		b = appendUint(b, 2, low)
	}
	b = appendHead(b, recordedStream, filled(streamNameOf, len(e.stream)))
	if e.stream != "" {
		b = appendHead(b, streamNameOf, len(e.stream))
		b = append(b, e.stream...)
	}
	b = appendUint(b, recordedRevision, uint64(e.revision))
	b = appendUint(b, recordedPrepare, e.position)
	b = appendUint(b, recordedCommit, e.position)
	b = appendEntry(b, wireType, e.kind)
	b = appendEntry(b, wireContentType, e.contentType)
	n := digits(e.created)
	b = appendKey(b, wireCreated, n)
	b = strconv.AppendInt(b, e.created, 10)
	if len(e.metadata) > 0 {
		b = appendHead(b, recordedCustomMetadata, len(e.metadata))
		b = append(b, e.metadata...)
	}
	if len(e.data) > 0 {
		b = appendHead(b, recordedData, len(e.data))
		b = append(b, e.data...)
	}
	return b
}

// appendHead appends what stands before a field with a length.
func appendHead(b []byte, field protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(n))
}

func appendUint(b []byte, field protowire.Number, v uint64) []byte {
	// The position of an event is never 0, so the one that has to be there
	// though it were 0, in a oneof, is too.
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// appendKey appends an entry of the metadata up to its value.
func appendKey(b []byte, key string, value int) []byte {
	b = appendHead(b, recordedMetadata, entry(key, value))
	b = appendHead(b, mapKey, len(key))
	b = append(b, key...)
	return appendHead(b, mapValue, value)
}

func appendEntry(b []byte, key, value string) []byte {
	return append(appendKey(b, key, len(value)), value...)
}
