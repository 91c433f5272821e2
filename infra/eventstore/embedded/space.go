package embedded

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// SpaceLevel tells how near the store is to taking no more events for want of room.
type SpaceLevel int

// The levels, in the order of need.
const (
	SpaceEnough   SpaceLevel = iota
	SpaceLow                 // 80 % of the limit, or less free than four times the reserve
	SpaceCritical            // 90 % of the limit, or less free than twice the reserve
	SpaceFull                // appends are refused
)

// String names the level.
func (l SpaceLevel) String() string {
	return [...]string{"enough", "low", "critical", "full"}[l]
}

// Space is how much room the store has, in bytes.
type Space struct {
	Used  uint64 // by the store's files
	Limit uint64 // what they may take, 0 for no limit
	Free  uint64 // on the disk; 0 where it can't be told
	Level SpaceLevel
	// Text says in words what is scarce and what to do; empty at SpaceEnough.
	Text string
}

// Space tells how much room the store has, as of the last second.
func (s *Server) Space() Space { return s.store.space.now() }

// space watches the room on the disk. Appends are refused before there is none
// left: a refused one is tried again, one that met a full disk waits.
type space struct {
	fs      vfs.FS
	dir     string
	reserve uint64 // of free space, 0 is none
	limit   uint64 // of the store's own size, 0 is none

	mu sync.Mutex
	at Space
}

func (p *space) now() Space {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// measure looks at the disk. stuck tells that a write has met a full one.
func (p *space) measure(used uint64, stuck bool) (before, after Space) {
	a := Space{Used: used, Limit: p.limit}
	usage, err := p.fs.GetDiskUsage(p.dir)
	known := err == nil
	if known {
		a.Free = usage.AvailBytes
	} else if !errors.Is(err, vfs.ErrUnsupported) {
		before = p.now()
		a.Free, known = before.Free, before.Free > 0
	}
	level := func(l SpaceLevel, text string) {
		if l > a.Level {
			a.Level, a.Text = l, text
		}
	}
	if p.limit > 0 {
		limited := fmt.Sprintf("the event store has %s of the %s that --eventstore-max-bytes allows", size(used), size(p.limit))
		const more = "; allow more, or run tallyard events scavenge"
		switch {
		case used >= p.limit:
			level(SpaceFull, limited+", and takes no more events"+more)
		case used >= p.limit/10*9:
			level(SpaceCritical, limited+more)
		case used >= p.limit/10*8:
			level(SpaceLow, limited+more)
		}
	}
	if p.reserve > 0 && known {
		free := fmt.Sprintf("the disk of the event store has %s left", size(a.Free))
		const more = "; make room on it"
		switch {
		case a.Free < p.reserve:
			level(SpaceFull, free+", and the event store takes no more events"+more)
		case a.Free/2 < p.reserve:
			level(SpaceCritical, free+more)
		case a.Free/4 < p.reserve:
			level(SpaceLow, free+more)
		}
	}
	if stuck {
		level(SpaceFull, "the disk of the event store is full, and the event store takes no more events; make room on it")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, p.at = p.at, a
	return before, a
}

// refusal is why a request is refused now for want of room, nil if it is not.
// What makes room, deletes and metadata, is let through as long as it can be
// written.
func (s *store) refusal(r *appendRequest) error {
	if s.files.waiting.Load() > 0 {
		return fmt.Errorf("%w: the disk of the event store is full", errNoRoom)
	}
	if _, isMeta := metadataOf(r.stream); isMeta || r.kind != requestAppend {
		return nil
	}
	if a := s.space.now(); a.Level == SpaceFull {
		return fmt.Errorf("%w: %s", errNoRoom, a.Text)
	}
	return nil
}

// size shows bytes to people.
func size(n uint64) string {
	for _, unit := range []struct {
		name  string
		shift uint
	}{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n >= 1<<unit.shift {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(uint64(1)<<unit.shift), unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// measureSpace looks at the disk and logs when it has become scarcer, or room again.
func (s *store) measureSpace() {
	if s.failure() != nil {
		return
	}
	before, after := s.space.measure(s.diskUsage(), s.files.waiting.Load() > 0)
	switch {
	case after.Level > before.Level:
		s.logger.Warn("the event store has little room", "what", after.Text, "level", after.Level.String(), "used", after.Used, "limit", after.Limit, "free", after.Free)
	case after.Level < before.Level:
		s.logger.Info("the event store has more room", "level", after.Level.String(), "used", after.Used, "limit", after.Limit, "free", after.Free)
	}
}

// diskUsage is how many bytes the store's files have.
func (s *store) diskUsage() uint64 {
	m := s.db.Metrics()
	// Pebble counts the write-ahead log that it writes to by its size when it was begun.
	return m.DiskSpaceUsage() + m.WAL.Size - min(m.WAL.Size, m.WAL.PhysicalSize)
}
