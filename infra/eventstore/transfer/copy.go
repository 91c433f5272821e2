package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
)

// defaultMapEvery is how many events lie between two lines of the map file.
const defaultMapEvery = 1000

// Config tells what to copy.
type Config struct {
	From, To *eventstore.Log
	// MapPath is the file of positions; a copy that goes on needs the same one
	// to be quick, and finds its place without it.
	MapPath string
	// MapEvery is how many events lie between two lines of it; 0 is 1000.
	MapEvery uint64
	// Compare compares both stores as a whole at the end.
	Compare bool
	// Progress, which may be nil, is told how far it is.
	Progress func(Progress)
}

// Progress tells how far a copy is.
type Progress struct {
	Step   string      `json:"step"`   // resume, copy or compare
	Events uint64      `json:"events"` // of this step
	Source es.Position `json:"source"`
	End    es.Position `json:"end"` // where the source ended when the step began
}

// Report is what a copy did.
type Report struct {
	Copied  uint64 `json:"copied"`  // events that this run has written
	Found   uint64 `json:"found"`   // events that were there, written by an earlier run
	Skipped uint64 `json:"skipped"` // events of the source's server itself, left out
	Retyped uint64 `json:"retyped"` // events of content types that can't be sent, now binary
	Moved   uint64 `json:"moved"`   // streams whose revisions differ, see the package
	// Compared is how many events both stores were found to have in the same
	// order with the same content, 0 if they were not compared.
	Compared uint64 `json:"compared"`
	First    Pair   `json:"first"`
	Last     Pair   `json:"last"`
}

// copier is a copy under way.
type copier struct {
	Config
	from, to  *eventstore.Log
	gaps      *gaps
	positions *mapFile
	report    Report
	events    uint64      // copied and found, from the beginning of the log on
	pending   Pair        // the last pair that is known, perhaps not in the file yet
	upTo      es.Position // of the source: where the target ends
}

// Run copies what the target doesn't have yet, up to the end of the source. It
// may be run again, after a kill or because the source has grown.
func Run(ctx context.Context, cfg Config) (rep Report, err error) {
	c := &copier{Config: cfg, from: cfg.From, to: cfg.To, gaps: newGaps()}
	if c.MapEvery == 0 {
		c.MapEvery = defaultMapEvery
	}
	if c.positions, err = openMap(cfg.MapPath, c.gaps); err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, c.positions.close()) }()
	c.pending = c.positions.last
	c.events, c.upTo = c.pending.Events, c.pending.Source
	if err := c.checkMap(ctx); err != nil {
		return Report{}, err
	}
	if err := c.copy(ctx); err != nil {
		return c.report, err
	}
	if cfg.Compare {
		if err := c.compare(ctx); err != nil {
			return c.report, err
		}
	}
	c.report.Moved = uint64(len(c.gaps.by))
	c.report.Last = c.pending
	return c.report, nil
}

// checkMap makes sure that the last line of the map is about these two stores.
func (c *copier) checkMap(ctx context.Context) error {
	p := c.pending
	if p.Event == uuid.Nil {
		return nil
	}
	for _, side := range []struct {
		log  *eventstore.Log
		at   es.Position
		name string
	}{{c.from, p.Source, "source"}, {c.to, p.Target, "target"}} {
		e, ok, err := side.log.EventAt(ctx, side.at)
		if err != nil {
			return fmt.Errorf("the %s: %w", side.name, err)
		}
		if !ok || e.ID != p.Event {
			return fmt.Errorf("the map of positions %s is about another copy: the %s has no event %s at position %d; name another file with --map, the copy then finds its place by comparing", c.MapPath, side.name, p.Event, side.at)
		}
	}
	return nil
}

// copy finds the place to go on at and copies from there.
func (c *copier) copy(ctx context.Context) error {
	end, err := c.from.LastPosition(ctx)
	if err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	source := newCursor(ctx, c.from, c.pending.Source, everywhere)
	defer source.stop()
	target := newCursor(ctx, c.to, c.pending.Target, everywhere)
	err = c.align(ctx, source, target, func(s, t *eventstore.Event) error {
		c.report.Found++
		c.tell("resume", c.report.Found, s.Position, end)
		return c.reached(1, s, t.Position)
	})
	target.stop()
	if err != nil {
		return err
	}
	c.report.Found = c.events
	for n := 1; ; n = batchEvents {
		if c.events > 0 {
			n = batchEvents // the first event alone, so that the map begins with it
		}
		batch, err := source.run(n)
		if err != nil {
			return fmt.Errorf("the source: %w", err)
		}
		if len(batch) == 0 {
			break
		}
		if err := c.append(ctx, batch); err != nil {
			return err
		}
		c.tell("copy", c.report.Copied, batch[len(batch)-1].Position, end)
	}
	c.report.Skipped = source.skipped
	if c.pending.Event == uuid.Nil {
		return nil
	}
	return c.positions.add(c.pending, c.gaps)
}

// reached takes note of n more events in the target, of which e is the last.
// Where its position is not known, at is 0.
func (c *copier) reached(n uint64, e *eventstore.Event, at es.Position) error {
	c.events += n
	c.upTo = e.Position
	if at == 0 || e.Type == tombstoneType {
		return nil
	}
	c.pending = Pair{Events: c.events, Source: e.Position, Target: at, Event: e.ID}
	if c.positions.last.Event != uuid.Nil && c.events < c.positions.last.Events+c.MapEvery {
		return nil
	}
	return c.positions.add(c.pending, c.gaps)
}

// compare walks through both stores from the beginning.
func (c *copier) compare(ctx context.Context) error {
	source := newCursor(ctx, c.from, es.StartPosition, c.upTo)
	defer source.stop()
	target := newCursor(ctx, c.to, es.StartPosition, everywhere)
	defer target.stop()
	err := c.align(ctx, source, target, func(s, t *eventstore.Event) error {
		if c.report.Compared == 0 && s.Type != tombstoneType {
			c.report.First = Pair{Events: 1, Source: s.Position, Target: t.Position, Event: s.ID}
		}
		c.report.Compared++
		c.tell("compare", c.report.Compared, s.Position, c.upTo)
		return nil
	})
	if err != nil {
		return err
	}
	if s, err := source.peek(); err != nil || s != nil {
		if err == nil {
			err = fmt.Errorf("%w: it ends before event %s of stream %s", ErrDiffers, s.ID, s.Stream)
		}
		return err
	}
	return nil
}

func (c *copier) tell(step string, events uint64, at, end es.Position) {
	if c.Progress != nil {
		c.Progress(Progress{Step: step, Events: events, Source: at, End: max(at, end)})
	}
}
