package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tallyard/domain/es"
)

// Bounds of a batch: events can be up to a megabyte, so that their number
// alone would not keep memory flat.
const (
	maxBatchEvents = 1_000
	maxBatchBytes  = 4 << 20
)

// item is one event of the log, decoded if somebody needs it.
type item struct {
	rec      es.Recorded
	category string
	env      es.Envelope
	// err says that the event could not be decoded; unknown that this program
	// does not know its type.
	err     error
	unknown bool
	decoded bool
}

// batch is what was there at once.
type batch struct {
	items []item
	bytes int
	// seen is how far the log was looked at; it may lie behind the last item.
	seen     es.Position
	caughtUp bool
}

func (b *batch) full() bool { return len(b.items) >= maxBatchEvents || b.bytes >= maxBatchBytes }

// categoryOf is the first part of a stream's name.
func categoryOf(stream string) string {
	c, _, _ := strings.Cut(stream, "-")
	return c
}

// feed follows the log and hands out batches: an event at once when the taker
// waits, and all that came in the meantime when it was busy.
func (c *core) feed(ctx context.Context, after es.Position, out chan<- *batch) error {
	sub, err := c.log.Subscribe(ctx, es.After(after), es.Filter{})
	if err != nil {
		return fmt.Errorf("follow the log: %w", err)
	}
	defer sub.Close()
	var b *batch
	for {
		var (
			in    <-chan es.Message
			ready chan<- *batch
		)
		if b != nil {
			ready = out
		}
		if b == nil || !b.full() {
			in = sub.Messages()
		}
		select {
		case <-ctx.Done():
			return nil
		case ready <- b:
			b = nil
		case m, ok := <-in:
			if !ok {
				if ctx.Err() != nil {
					return nil
				}
				return errors.Join(errors.New("following the log ended"), sub.Err())
			}
			if b == nil {
				b = &batch{}
			}
			c.add(b, m)
		}
	}
}

func (c *core) add(b *batch, m es.Message) {
	switch m.Kind {
	case es.MessageEvent:
		b.items = append(b.items, c.decode(m.Event))
		b.bytes += len(m.Event.Data) + len(m.Event.Metadata)
		b.seen = m.Event.Position
	case es.MessageCheckpoint:
		b.seen = max(b.seen, m.Position)
	case es.MessageCaughtUp:
		b.caughtUp = true
	}
}

// decode reads an event if a projection follows its category.
func (c *core) decode(rec es.Recorded) item {
	it := item{rec: rec, category: categoryOf(rec.Stream)}
	wanted := false
	for _, p := range c.set.list {
		wanted = wanted || p.raw == nil && p.reads(it.category)
	}
	if wanted {
		it.env, it.err = c.registry.Decode(rec)
		it.unknown = errors.Is(it.err, es.ErrUnknownEvent)
		it.decoded = it.err == nil
	}
	return it
}
