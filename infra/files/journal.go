package files

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
)

// record is a line of a copy's journal: a file that is copied for good, and
// what its source looked like. A later try takes the file over when the source
// still looks the same.
type record struct {
	Path     string `json:"p"`
	Size     int64  `json:"s"`
	Modified int64  `json:"m"`
	Changed  int64  `json:"c"`
	Inode    uint64 `json:"i"`
	Exec     bool   `json:"x,omitempty"`
	Sum      string `json:"h"`
}

func recordOf(path string, st stat, sum []byte) record {
	return record{
		Path: path, Size: st.size, Modified: st.modified, Changed: st.changed,
		Inode: st.inode, Exec: st.exec, Sum: hex.EncodeToString(sum),
	}
}

func (r record) of(st stat) bool {
	return r == recordOf(r.Path, st, r.sum())
}

func (r record) sum() []byte {
	sum, _ := hex.DecodeString(r.Sum) // a wrong one has the wrong length, which of notices
	return sum
}

// journal is the open journal of a copy. Whoever holds it holds the copy.
type journal struct {
	f    *os.File
	dir  *dir
	name string
	size int64 // of the whole lines
}

// takeJournal opens the journal of a copy and locks it, so that two programs
// never work on one copy.
func takeJournal(work *dir, name string) (*journal, error) {
	for {
		f, st, err := work.openOrCreate(name)
		if err != nil {
			return nil, err
		}
		held, err := lock(f)
		if err == nil && !held {
			err = busy("This copy is already under way")
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		// The holder before us may have ended its copy and removed the file.
		now, err := work.lstat(name)
		if err == nil && now.sameFile(st) {
			return &journal{f: f, dir: work, name: name}, nil
		}
		if err := errors.Join(ignoreMissing(err), f.Close()); err != nil {
			return nil, err
		}
	}
}

// read gives the records. A last line that a crash cut short is cut away.
func (j *journal) read() (map[string]record, error) {
	known := map[string]record{}
	in := bufio.NewReaderSize(j.f, 1<<16)
	var good int64
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var r record
		if json.Unmarshal(line, &r) != nil {
			break
		}
		good += int64(len(line))
		known[r.Path] = r
	}
	j.size = good
	return known, j.f.Truncate(good)
}

// append adds records, all or none.
func (j *journal) append(records []record) error {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	for _, r := range records {
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	if _, err := j.f.WriteAt(text.Bytes(), j.size); err != nil {
		return errors.Join(err, j.f.Truncate(j.size))
	}
	j.size += int64(text.Len())
	return nil
}

// remove ends the copy: the journal goes, and with it the lock.
func (j *journal) remove() error { return j.dir.unlink(j.name) }

// close gives the copy back to be continued later.
func (j *journal) close() { _ = j.f.Close() } // losing a record only costs copying a file again
