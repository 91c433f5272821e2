package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// ScavengeProgress tells how far a scavenge is.
type ScavengeProgress struct {
	Streams uint64 `json:"streams"` // looked at
	Removed uint64 `json:"removed"` // events, since it began or went on
	// Step is streams, then files: what was removed is taken out of them.
	Step string `json:"step"`
}

// Scavenged is what a scavenge has done.
type Scavenged struct {
	Streams      uint64        `json:"streams"` // looked at
	Removed      uint64        `json:"removed"` // events
	RemovedBytes uint64        `json:"removedBytes"`
	BytesBefore  uint64        `json:"bytesBefore"` // of the files
	BytesAfter   uint64        `json:"bytesAfter"`
	Took         time.Duration `json:"took"`
	// Resumed says that it went on with a run that was cut off; that one's
	// counts are in it.
	Resumed bool `json:"resumed"`
	// Lingering says that files with removed events are still there, because
	// something reads them; they go when that ends.
	Lingering bool `json:"lingering"`
}

// Scavenge removes for good what no reader may see any more: events beyond
// $maxCount, older than $maxAge, before $tb, events of deleted and of tombstoned
// streams but for the tombstone, and superseded metadata. Readers of the whole
// log find nothing at those positions, as if nothing had ever been there; all
// other events keep their positions and revisions. Streams go on counting.
//
// It runs beside everything else, at a bounded rate, and goes on where it was
// cut off. Afterwards the bytes of what was removed are in no file of the store.
func (s *Server) Scavenge(ctx context.Context, report func(ScavengeProgress)) (Scavenged, error) {
	return s.store.scavenge(ctx, report)
}

// ScavengeDir is Scavenge for the directory of a store that nobody has open.
func ScavengeDir(ctx context.Context, dir string, report func(ScavengeProgress)) (out Scavenged, err error) {
	// Opening would make an empty store where there is none.
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return Scavenged{}, fmt.Errorf("there is no event store at %s", dir)
	}
	s, err := openStore(ctx, storeOptions{dir: dir, logger: slog.New(slog.DiscardHandler), clock: time.Now})
	if err != nil {
		return Scavenged{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.scavenge(ctx, report)
}

// scavenger is a scavenge under way.
type scavenger struct {
	store   *store
	ctx     context.Context
	report  func(ScavengeProgress)
	state   scavengeState
	touched touched
	removed uint64 // since it began or went on
}

const (
	// streamsPage is how many streams are looked at before the place is noted.
	streamsPage = 1000
	// restRatio is how many times as long as a step it rests after one, so that
	// appends have the commit goroutine most of the time.
	restRatio = 4
	minRest   = 2 * time.Millisecond
)

func (s *store) scavenge(ctx context.Context, report func(ScavengeProgress)) (out Scavenged, err error) {
	ctx, end, err := s.beginUpkeep(ctx)
	if err != nil {
		return Scavenged{}, err
	}
	defer end()
	g := &scavenger{store: s, ctx: ctx, report: report}
	err = s.trap.guard(context.Background(), func() (err error) {
		out, err = g.run()
		return err
	})
	if s.failure() != nil {
		return Scavenged{}, fmt.Errorf("%w: %w", errFailed, s.failure()) // it may be running still
	}
	return out, err
}

func (g *scavenger) run() (Scavenged, error) {
	began := time.Now()
	out := Scavenged{BytesBefore: g.store.diskUsage()}
	if err := g.begin(); err != nil {
		return Scavenged{}, err
	}
	out.Resumed = g.state.after != ""
	for done := false; !done; {
		var err error
		if done, err = g.page(); err != nil {
			return Scavenged{}, err
		}
	}
	now, err := readLedger(g.store.db)
	if err != nil {
		return Scavenged{}, err
	}
	out.Streams, out.Removed, out.RemovedBytes = g.state.streams, now.events-g.state.base.events, now.bytes-g.state.base.bytes
	if out.Removed > 0 {
		g.tell("files")
		if out.Lingering, err = g.store.purge(g.ctx, &g.touched); err != nil {
			return Scavenged{}, err
		}
	}
	g.state = scavengeState{finished: ticks(g.store.opt.clock())}
	if err := g.note(); err != nil {
		return Scavenged{}, err
	}
	out.BytesAfter, out.Took = g.store.diskUsage(), time.Since(began)
	g.store.logger.Info("the event store was scavenged", "streams", out.Streams, "removed", out.Removed,
		"bytesBefore", out.BytesBefore, "bytesAfter", out.BytesAfter, "took", out.Took)
	return out, nil
}

// begin goes on with a run that was cut off, or begins a new one.
func (g *scavenger) begin() (err error) {
	if g.state, err = readScavengeState(g.store.db); err != nil {
		return err
	}
	if g.state.running {
		g.touched.all = true // what was touched before isn't known any more
		return nil
	}
	g.state.running = true
	if g.state.base, err = readLedger(g.store.db); err != nil {
		return err
	}
	return g.note()
}

// page looks at the next streams, and notes the place.
func (g *scavenger) page() (done bool, err error) {
	names, err := g.next()
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if err := g.stream(name); err != nil {
			return false, err
		}
		g.state.streams++
		g.state.after = name
	}
	if err := g.note(); err != nil {
		return false, err
	}
	g.tell("streams")
	return len(names) < streamsPage, context.Cause(g.ctx)
}

// next lists the streams behind the noted place.
func (g *scavenger) next() (names []string, err error) {
	from := []byte{keyHead}
	if g.state.after != "" {
		from = append(headKey(g.state.after), 0)
	}
	it, err := g.store.db.NewIterWithContext(g.ctx, &pebble.IterOptions{LowerBound: from, UpperBound: []byte{keyHead + 1}})
	if err != nil {
		return nil, fmt.Errorf("list the streams: %w", err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok && len(names) < streamsPage; ok = it.Next() {
		names = append(names, string(it.Key()[1:]))
	}
	return names, it.Error()
}

// stream removes what a stream hides. Most hide nothing, which its head tells.
func (g *scavenger) stream(name string) error {
	h, err := g.store.durableHead(g.ctx, name)
	if errors.Is(err, errTornHead) {
		return nil // a verification tells
	}
	if err != nil {
		return err
	}
	_, isMeta := metadataOf(name)
	if !h.tombstoned && h.meta == (streamMetadata{}) && !(isMeta && h.last > 0) {
		return nil
	}
	for more := true; more; {
		var r removed
		var rerr error
		began := time.Now()
		err := g.store.onCommitGoroutine(g.ctx, func() { r, rerr = g.store.removeHidden(g.ctx, name) })
		if err := errors.Join(err, rerr); err != nil {
			return fmt.Errorf("scavenge %s: %w", name, err)
		}
		more = r.more
		if r.events == 0 {
			return nil
		}
		g.removed += r.events
		g.touched.add(name, r.positions)
		if err := g.rest(time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// rest leaves the commit goroutine to others.
func (g *scavenger) rest(worked time.Duration) error {
	t := time.NewTimer(max(minRest, restRatio*worked))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-g.ctx.Done():
		return context.Cause(g.ctx)
	}
}

// note writes down how far it is, behind what it has removed.
func (g *scavenger) note() error {
	value := encodeScavengeState(&g.state)
	var err error
	cerr := g.store.onCommitGoroutine(g.ctx, func() { err = g.store.db.Set(scavengeKey(), value, pebble.NoSync) })
	if err := errors.Join(cerr, err); err != nil {
		return fmt.Errorf("note how far scavenging is: %w", err)
	}
	return nil
}

func (g *scavenger) tell(step string) {
	if g.report != nil {
		g.report(ScavengeProgress{Step: step, Streams: g.state.streams, Removed: g.removed})
	}
}
