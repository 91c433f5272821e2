package embedded

import "sync"

// pageBuffer is memory for pages of the log, for a reader that is done with a
// page before it reads the next. Readers take one for a page and give it back,
// so that those who wait for news hold none.
type pageBuffer struct {
	events []event
	chunk  []byte // the records' bytes; where they don't fit, the last part of them
}

const (
	minChunk = 4 << 10
	maxChunk = 256 << 10
)

var pageBuffers = sync.Pool{New: func() any { return &pageBuffer{} }}

func takePageBuffer() *pageBuffer { return pageBuffers.Get().(*pageBuffer) }

// giveBack ends the life of the events in the buffer.
func (b *pageBuffer) giveBack() {
	clear(b.events) // what they point at can go
	pageBuffers.Put(b)
}

func (b *pageBuffer) reset() {
	b.events, b.chunk = b.events[:0], b.chunk[:0]
}

// copy puts a copy of some bytes into the buffer.
func (b *pageBuffer) copy(raw []byte) []byte {
	if cap(b.chunk)-len(b.chunk) < len(raw) {
		// Events point into the old chunk, which is left to them.
		b.chunk = make([]byte, 0, max(min(max(2*cap(b.chunk), minChunk), maxChunk), len(raw)))
	}
	at := len(b.chunk)
	b.chunk = append(b.chunk, raw...)
	return b.chunk[at:len(b.chunk):len(b.chunk)]
}
