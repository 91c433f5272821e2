package transfer

import (
	"context"
	"errors"
	"fmt"

	"tallyard/domain/es"
	"tallyard/infra/eventstore"
)

// append writes events of one stream, which follow each other in the source.
func (c *copier) append(ctx context.Context, batch []eventstore.Event) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	last := &batch[len(batch)-1]
	w, err := c.write(ctx, batch)
	if err != nil {
		return fmt.Errorf("the target, at event %s of the source's position %d: %w", batch[0].ID, batch[0].Position, err)
	}
	for i := range batch {
		if t := batch[i].ContentType; batch[i].Type != tombstoneType && sendable(t) != t {
			c.report.Retyped++
		}
	}
	c.report.Copied += uint64(len(batch))
	return c.reached(uint64(len(batch)), last, w.Position)
}

func (c *copier) write(ctx context.Context, batch []eventstore.Event) (es.Written, error) {
	first := &batch[0]
	if first.Type == tombstoneType {
		// The stream may have lost all its events before; none can be expected.
		return es.Written{}, c.to.Tombstone(ctx, first.Stream, es.Any())
	}
	base, meta := metadataOf(first.Stream)
	if meta && first.Type == metadataType {
		data, err := c.moveTruncation(ctx, base, first.Data)
		if err != nil {
			return es.Written{}, err
		}
		first.Data = data
	}
	before := c.gaps.by[first.Stream]
	w, err := c.to.AppendWhole(ctx, first.Stream, es.At(first.Revision-1-es.Revision(before)), batch...)
	if !errors.Is(err, es.ErrWrongRevision) {
		return w, err
	}
	current, ok := eventstore.CurrentRevision(err)
	if !ok {
		return es.Written{}, err
	}
	by := int64(first.Revision - 1 - current)
	if by <= before && !meta {
		return es.Written{}, fmt.Errorf("%w: somebody else writes to stream %s: %w", ErrDiffers, first.Stream, err)
	}
	c.gaps.set(first.Stream, by)
	return c.to.AppendWhole(ctx, first.Stream, es.At(current), batch...)
}
