package embedded

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"
)

// Stats are figures about a store, of one moment.
type Stats struct {
	Store   uuid.UUID `json:"store"`
	Events  uint64    `json:"events"`  // in the streams that were looked at
	Removed uint64    `json:"removed"` // events that scavenging has removed from the store
	// Streams counts those that were looked at, streams of metadata and deleted
	// ones too. Complete is false when the time was over before all were: then
	// Events, Streams, Categories and Largest are about the first ones by name.
	Streams  uint64 `json:"streams"`
	Complete bool   `json:"complete"`

	First      uint64    `json:"firstPosition"` // of the oldest event, 0 without one
	Last       uint64    `json:"lastPosition"`
	Oldest     time.Time `json:"oldest"`
	Newest     time.Time `json:"newest"`
	Categories []Group   `json:"categories"` // by events, at most maxCategories
	Largest    []Group   `json:"largest"`    // streams by events

	Bytes    uint64  `json:"bytes"` // on disk, write-ahead log included
	LogBytes uint64  `json:"walBytes"`
	Levels   []Level `json:"levels"`
	Debt     uint64  `json:"compactionDebt"` // bytes that compactions have yet to go through
	DiskFree uint64  `json:"diskFree"`       // for this user
	DiskSize uint64  `json:"diskSize"`
}

// Group is a stream, or a category of streams: what stands before the first "-".
type Group struct {
	Name    string `json:"name"`
	Streams uint64 `json:"streams"`
	Events  uint64 `json:"events"`
}

// Level is a level of the tree that the files form.
type Level struct {
	Level int   `json:"level"`
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Stats looks at the heads of the streams, at most for the given time, and
// names the top largest ones.
func (s *Server) Stats(ctx context.Context, limit time.Duration, top int) (Stats, error) {
	// Closing the store waits for it, and so does other work on the whole store.
	ctx, end, err := s.store.beginUpkeep(ctx)
	if err != nil {
		return Stats{}, err
	}
	defer end()
	return s.store.stats(ctx, limit, top)
}

// StatsDir is Server.Stats for the directory of a store that nobody has open.
// It changes nothing there.
func StatsDir(ctx context.Context, dir string, limit time.Duration, top int) (st Stats, err error) {
	if err := storeThere(dir); err != nil {
		return Stats{}, err
	}
	s := newStore(storeOptions{dir: dir, logger: slog.New(slog.DiscardHandler), clock: time.Now})
	if err := s.openFiles(true); err != nil {
		return Stats{}, err
	}
	defer func() { err = errors.Join(err, s.closeFiles(context.WithoutCancel(ctx))) }()
	return s.stats(ctx, limit, top)
}

func (s *store) stats(ctx context.Context, limit time.Duration, top int) (st Stats, err error) {
	db := s.db.NewSnapshot()
	defer func() { err = errors.Join(err, db.Close()) }()
	if st.Store, _, err = readDescription(db); err != nil {
		return Stats{}, err
	}
	l, err := readLedger(db)
	if err != nil {
		return Stats{}, err
	}
	st.Removed = l.events
	if err := st.ends(ctx, db); err != nil {
		return Stats{}, err
	}
	c := &counting{db: db, ctx: ctx, end: time.Now().Add(limit), categories: map[string]*Group{}, top: top, stats: &st}
	if err := c.heads(); err != nil {
		return Stats{}, err
	}
	m := s.db.Metrics()
	st.Debt = m.Compact.EstimatedDebt
	if err := st.sizes(s); err != nil {
		return Stats{}, err
	}
	for i := range m.Levels {
		if l := &m.Levels[i]; l.TablesCount > 0 {
			st.Levels = append(st.Levels, Level{Level: i, Files: l.TablesCount, Bytes: l.TablesSize})
		}
	}
	// Not every file system tells; then it stays 0.
	if usage, err := s.opt.fs.GetDiskUsage(s.opt.dir); err == nil {
		st.DiskFree, st.DiskSize = usage.AvailBytes, usage.TotalBytes
	}
	return st, nil
}

// ends looks at the first and the last event.
func (st *Stats) ends(ctx context.Context, db pebble.Reader) (err error) {
	it, err := db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: []byte{keyEvent}, UpperBound: eventUpperBound()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	look := func(position *uint64, created *time.Time) error {
		raw, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if *position, err = positionOfKey(it.Key()); err != nil {
			return err
		}
		e, err := decodeRecord(*position, raw)
		*created = time.Unix(0, e.created*100).UTC()
		return err
	}
	if !it.First() {
		return it.Error()
	}
	if err := look(&st.First, &st.Oldest); err != nil {
		return err
	}
	it.Last()
	return look(&st.Last, &st.Newest)
}

// sizes adds up the files. They come and go meanwhile.
func (st *Stats) sizes(s *store) error {
	names, err := s.opt.fs.List(s.opt.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := s.opt.fs.Stat(s.opt.fs.PathJoin(s.opt.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		st.Bytes += uint64(info.Size())
		if strings.HasSuffix(name, ".log") {
			st.LogBytes += uint64(info.Size())
		}
	}
	return nil
}
