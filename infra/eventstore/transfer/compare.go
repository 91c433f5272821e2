package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"tallyard/infra/eventstore"
)

// ErrDiffers says that the target holds something that the source doesn't.
var ErrDiffers = errors.New("the target is no copy of the source")

// align walks through both logs side by side as long as the target has events,
// and tells each that is in both. It ends where the target ends.
func (c *copier) align(ctx context.Context, source, target *cursor, same func(source, target *eventstore.Event) error) error {
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		t, err := target.peek()
		if err != nil {
			return fmt.Errorf("the target: %w", err)
		}
		if t == nil {
			return nil
		}
		s, err := source.peek()
		if err != nil {
			return fmt.Errorf("the source: %w", err)
		}
		switch {
		case s != nil && sameEvent(s, t):
			if what := difference(s, t); what != "" {
				return fmt.Errorf("%w: event %s of stream %s has another %s there", ErrDiffers, t.ID, t.Stream, what)
			}
			c.gaps.note(s, t)
			if err := same(s, t); err != nil {
				return err
			}
			source.take()
			target.take()
		case madeByServer(t):
			target.take()
		case s == nil:
			return fmt.Errorf("%w: at position %d of the target lies event %s of stream %s, behind the end of the source", ErrDiffers, t.Position, t.ID, t.Stream)
		default:
			return fmt.Errorf("%w: at position %d of the target lies event %s of stream %s, where event %s of stream %s should be; copy into an empty store", ErrDiffers, t.Position, t.ID, t.Stream, s.ID, s.Stream)
		}
	}
}

// sameEvent tells whether t is the copy of s. A tombstone gets its id from its server.
func sameEvent(s, t *eventstore.Event) bool {
	return s.Stream == t.Stream && s.Type == t.Type && (s.ID == t.ID || s.Type == tombstoneType)
}

// madeByServer tells whether an event that the source doesn't have may stand in
// the target: what a server writes when a deleted stream is written to again.
func madeByServer(t *eventstore.Event) bool {
	_, meta := metadataOf(t.Stream)
	return meta && t.Type == metadataType
}

// difference names what of an event was not copied as it is; empty if all was.
func difference(s, t *eventstore.Event) string {
	_, meta := metadataOf(s.Stream)
	switch {
	case s.Type == tombstoneType:
		return ""
	case !bytes.Equal(s.Metadata, t.Metadata):
		return "metadata"
	case sendable(s.ContentType) != t.ContentType:
		return "content type"
	case bytes.Equal(s.Data, t.Data), meta && sameButTruncation(s.Data, t.Data):
		return ""
	}
	return "content"
}

// sendable is the content type that an event can be sent with.
func sendable(contentType string) string {
	if contentType == eventstore.ContentJSON {
		return contentType
	}
	return eventstore.ContentBinary
}
