package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"tallyard/domain/es"
)

// Pair says which position of the source became which of the target.
type Pair struct {
	Events uint64      `json:"events"` // how many events there are up to this one
	Source es.Position `json:"source"`
	Target es.Position `json:"target"`
	Event  uuid.UUID   `json:"event"`
	// Gaps are the streams whose revisions differ by another number than the
	// lines before this one say: revision in the source less that in the target.
	Gaps map[string]int64 `json:"gaps,omitempty"`
}

// mapFile is the file of pairs, one JSON object a line, in the order of the
// log. It is only added to; a copy that goes on begins behind its last line,
// after a look whether both stores have that event there.
type mapFile struct {
	file *os.File
	last Pair // the zero Pair while there is none
}

// openMap opens a map file, or makes one, and reads what it says of gaps.
func openMap(path string, g *gaps) (m *mapFile, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return nil, fmt.Errorf("the map of positions: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("the map of positions: %w", err)
	}
	m = &mapFile{file: f}
	whole := 0
	for {
		line, _, complete := bytes.Cut(text[whole:], []byte("\n"))
		if !complete { // nothing, or a line that was cut off
			break
		}
		var p Pair
		if err := json.Unmarshal(line, &p); err != nil || p.Event == uuid.Nil || p.Source <= m.last.Source || p.Target <= m.last.Target {
			return nil, fmt.Errorf("%s is no map of positions, or a damaged one; name another file with --map", path)
		}
		for stream, by := range p.Gaps {
			g.by[stream] = by
		}
		m.last = p
		whole += len(line) + 1
	}
	if err := f.Truncate(int64(whole)); err != nil {
		return nil, fmt.Errorf("the map of positions: %w", err)
	}
	if _, err := f.Seek(int64(whole), io.SeekStart); err != nil {
		return nil, fmt.Errorf("the map of positions: %w", err)
	}
	return m, syncDir(filepath.Dir(path))
}

// add writes a pair down for good.
func (m *mapFile) add(p Pair, g *gaps) error {
	if p.Source <= m.last.Source {
		return nil
	}
	if len(g.new) > 0 {
		p.Gaps = g.new
	}
	line, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err = m.file.Write(append(line, '\n')); err == nil {
		err = m.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the map of positions: %w", err)
	}
	g.new = map[string]int64{}
	p.Gaps = nil
	m.last = p
	return nil
}

func (m *mapFile) close() error { return m.file.Close() }

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // G304: where the operator's file lies
	if err != nil {
		return fmt.Errorf("the map of positions: %w", err)
	}
	err = d.Sync()
	if errors.Is(err, fs.ErrInvalid) {
		err = nil // not every file system syncs directories
	}
	return errors.Join(err, d.Close())
}
