package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// maxCategories bounds what is kept in memory; the rest counts as otherCategory.
	maxCategories = 1000
	otherCategory = "(others)"
	// Categories of what is not in the users' hands.
	metadataCategory = "$$ (metadata)"
	systemCategory   = "$ (system)"
)

// counting goes through the heads of the streams.
type counting struct {
	db         pebble.Reader
	ctx        context.Context
	end        time.Time
	top        int
	categories map[string]*Group
	stats      *Stats
}

// heads counts streams and events by what the heads say, so that no event is read.
func (c *counting) heads() (err error) {
	it, err := c.db.NewIterWithContext(c.ctx, &pebble.IterOptions{LowerBound: []byte{keyHead}, UpperBound: []byte{keyHead + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	c.stats.Complete = true
	for ok := it.First(); ok; ok = it.Next() {
		if c.stats.Streams%1024 == 0 {
			if err := context.Cause(c.ctx); err != nil {
				return err
			}
			if c.stats.Streams > 0 && time.Now().After(c.end) {
				c.stats.Complete = false
				break
			}
		}
		raw, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		h, err := decodeHead(raw)
		if err != nil {
			return err
		}
		stream := string(it.Key()[1:])
		events, err := c.events(stream, &h)
		if err != nil {
			return err
		}
		c.add(stream, events)
	}
	for _, g := range c.categories {
		c.stats.Categories = append(c.stats.Categories, *g)
	}
	slices.SortFunc(c.stats.Categories, byEvents)
	return it.Error()
}

// events is how many events a stream has.
func (c *counting) events(stream string, h *head) (uint64, error) {
	var gone uint64
	if c.stats.Removed > 0 {
		m, err := readMark(c.db, stream)
		if err != nil {
			return 0, err
		}
		gone = uint64(m.before)
	}
	if !h.tombstoned {
		return uint64(h.last+1) - min(gone, uint64(h.last+1)), nil
	}
	// The tombstone's revision says nothing; the one before it does.
	it, err := c.db.NewIterWithContext(c.ctx, &pebble.IterOptions{LowerBound: streamPrefix(stream), UpperBound: indexKey(stream, tombstoneRevision)})
	if err != nil {
		return 0, err
	}
	n := uint64(1)
	if it.Last() {
		n += binary.BigEndian.Uint64(it.Key()[len(it.Key())-8:]) + 1 - gone
	}
	return n, errors.Join(it.Error(), it.Close())
}

func (c *counting) add(stream string, events uint64) {
	c.stats.Streams++
	c.stats.Events += events
	name := categoryOf(stream)
	g := c.categories[name]
	if g == nil && len(c.categories) >= maxCategories {
		name = otherCategory
		g = c.categories[name]
	}
	if g == nil {
		g = &Group{Name: name}
		c.categories[name] = g
	}
	g.Streams++
	g.Events += events
	c.rank(Group{Name: stream, Streams: 1, Events: events})
}

// rank keeps the largest streams in order.
func (c *counting) rank(g Group) {
	l := c.stats.Largest
	if c.top <= 0 || len(l) == c.top && l[c.top-1].Events >= g.Events {
		return
	}
	at, _ := slices.BinarySearchFunc(l, g, byEvents)
	l = slices.Insert(l, at, g)
	c.stats.Largest = l[:min(len(l), c.top)]
}

// byEvents puts the largest first.
func byEvents(a, b Group) int {
	return cmp.Or(cmp.Compare(b.Events, a.Events), strings.Compare(a.Name, b.Name))
}

func categoryOf(stream string) string {
	switch {
	case strings.HasPrefix(stream, metadataPrefix):
		return metadataCategory
	case strings.HasPrefix(stream, "$"):
		return systemCategory
	}
	name, _, _ := strings.Cut(stream, "-")
	return name
}
