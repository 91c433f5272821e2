package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logEndFile lies beside Pebble's files and says how far the log is known to
// be safe on disk. Pebble takes damage near the end of its write-ahead log or
// its manifest for a write that a crash cut off, and goes on without what came
// behind; what had been acknowledged would be gone without a word. With this
// file the store sees that its end is missing. It is never ahead of what is
// synced, and may be behind: it is written now and then, and when the store is
// closed.
const logEndFile = "log.end"

// logEndSlot is the size of one of the file's two slots, written in turn so
// that a write that is cut off leaves the other.
const logEndSlot = 64

// logEnd is the open file. Its methods may be called from any goroutine.
type logEnd struct {
	mu    sync.Mutex
	file  vfs.File
	noted uint64
	slot  int64
}

// readLogEnd reads the position that was noted last; 0 if none was.
func readLogEnd(files vfs.FS, dir string) (position uint64, err error) {
	f, err := files.Open(files.PathJoin(dir, logEndFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read where the log ended: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := make([]byte, 2*logEndSlot)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read where the log ended: %w", err)
	}
	for at := 0; at+12 <= n; at += logEndSlot {
		p := binary.BigEndian.Uint64(b[at:])
		if binary.BigEndian.Uint32(b[at+8:]) == logEndSum(b[at:at+8]) {
			position = max(position, p)
		}
	}
	return position, nil
}

func logEndSum(b []byte) uint32 { return crc32.Update(1, castagnoli, b) }

// openLogEnd opens the file for noting.
func openLogEnd(files vfs.FS, dir string) (*logEnd, error) {
	f, err := files.OpenReadWrite(files.PathJoin(dir, logEndFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("open the note of where the log ends: %w", err)
	}
	return &logEnd{file: f}, nil
}

// note writes a position down that is safe on disk. Losing a note is no harm,
// so it is not synced.
func (l *logEnd) note(position uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if position <= l.noted {
		return nil
	}
	b := make([]byte, 12)
	binary.BigEndian.PutUint64(b, position)
	binary.BigEndian.PutUint32(b[8:], logEndSum(b[:8]))
	if _, err := l.file.WriteAt(b, l.slot*logEndSlot); err != nil {
		return fmt.Errorf("note where the log ends: %w", err)
	}
	l.noted, l.slot = position, 1-l.slot
	return nil
}

func (l *logEnd) close() error { return l.file.Close() }

// errEndMissing says that acknowledged events are gone.
func errEndMissing(noted, last uint64) error {
	return fmt.Errorf("the event log ends at position %d, but was safe on disk up to %d: acknowledged events are lost, by a damaged disk or by files put back from two times. "+
		"Restore a backup; to go on without those events, remove the file %s from the log's directory", last, noted, logEndFile)
}
