package embedded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// touchedSpan is how many bytes of the log are taken as one where events
	// were removed, and maxTouched how many such spans, or streams, are kept
	// apart. Beyond that everything is compacted.
	touchedSpan = 4 << 20
	maxTouched  = 4096
	// purgeWait is how long to wait for files that are still read.
	purgeWait = 10 * time.Second
)

// touched is where events were removed.
type touched struct {
	all     bool
	spans   map[uint64]struct{}
	streams map[string]struct{}
}

// add notes a removal of a stream's events at some positions.
func (t *touched) add(stream string, positions []uint64) {
	if t.all {
		return
	}
	if t.spans == nil {
		t.spans, t.streams = map[uint64]struct{}{}, map[string]struct{}{}
	}
	t.streams[stream] = struct{}{}
	for _, p := range positions {
		t.spans[p/touchedSpan] = struct{}{}
	}
	if len(t.spans) > maxTouched || len(t.streams) > maxTouched {
		*t = touched{all: true}
	}
}

// ranges are the ranges of keys to compact.
func (t *touched) ranges() []pebble.KeyRange {
	if t.all {
		return []pebble.KeyRange{{Start: []byte{keyEvent}, End: eventUpperBound()}, {Start: []byte{keyIndex}, End: []byte{keyIndex + 1}}}
	}
	var out []pebble.KeyRange
	for _, span := range slices.Sorted(maps.Keys(t.spans)) {
		r := pebble.KeyRange{Start: eventKey(span * touchedSpan), End: eventKey((span + 1) * touchedSpan)}
		if n := len(out); n > 0 && string(out[n-1].End) == string(r.Start) {
			out[n-1].End = r.End
			continue
		}
		out = append(out, r)
	}
	for _, stream := range slices.Sorted(maps.Keys(t.streams)) {
		prefix := streamPrefix(stream)
		out = append(out, pebble.KeyRange{Start: prefix, End: prefixEnd(prefix)})
	}
	return out
}

// purge takes what was removed out of the files: tables are compacted, and
// write-ahead logs that have it are deleted. lingering tells that some files
// are still there because they are read.
func (s *store) purge(ctx context.Context, t *touched) (lingering bool, err error) {
	if err := s.db.Flush(); err != nil {
		return false, fmt.Errorf("write what was removed: %w", err)
	}
	for _, r := range t.ranges() {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		if err := s.db.Compact(ctx, r.Start, r.End, false); err != nil {
			return false, fmt.Errorf("compact the event store: %w", err)
		}
	}
	old, err := s.replaceLogs(ctx)
	if err != nil {
		return false, err
	}
	return s.awaitDeletions(ctx, old)
}

// replaceLogs makes Pebble go on to new write-ahead logs until it is done with
// those that are there now, which it names: it would keep them, with what is in
// them, to write over them some day.
func (s *store) replaceLogs(ctx context.Context) (old []string, err error) {
	if old, err = s.logFiles(); err != nil {
		return nil, err
	}
	s.files.fresh.Store(true)
	defer s.files.fresh.Store(false)
	for range len(old) + 1 {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := s.db.Flush(); err != nil {
			return nil, fmt.Errorf("begin a new write-ahead log: %w", err)
		}
	}
	return old, nil
}

func (s *store) logFiles() ([]string, error) {
	names, err := s.opt.fs.List(s.opt.dir)
	if err != nil {
		return nil, fmt.Errorf("list the event store's files: %w", err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, logSuffix) }), nil
}

// awaitDeletions waits a while until tables that were replaced and old
// write-ahead logs are gone. Pebble deletes them by itself, when nobody reads
// them any more.
func (s *store) awaitDeletions(ctx context.Context, old []string) (lingering bool, err error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(purgeWait); ; {
		logs, err := s.logFiles()
		if err != nil {
			return false, err
		}
		t := s.db.Metrics().Table
		still := slices.ContainsFunc(old, func(name string) bool { return slices.Contains(logs, name) })
		if !still && t.ObsoleteCount == 0 && t.ZombieCount == 0 {
			return false, nil
		}
		if time.Now().After(deadline) {
			return true, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
