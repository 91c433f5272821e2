package embedded

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// heads compares the head of every stream with its events and its metadata,
// and reads the marks of what was removed.
func (v *verifier) heads() error {
	err := v.keys(keyHead, func(key, value []byte) error {
		v.rep.Streams++
		if err := v.tick("heads", v.rep.Streams, v.rep.Streams, 0); err != nil {
			return err
		}
		stream := string(key[1:])
		h, err := decodeHead(value)
		if err != nil {
			v.damage("head of "+stream, "%v", err)
			return nil
		}
		return v.head(stream, &h)
	})
	if err != nil || v.unsound {
		return err
	}
	return v.keys(keyMark, func(key, value []byte) error {
		if _, err := decodeMark(value); err != nil {
			v.damage("mark of "+string(key[1:]), "%v", err)
		}
		return context.Cause(v.ctx)
	})
}

func (v *verifier) head(stream string, h *head) error {
	where := "head of " + stream
	want, err := deriveHead(v.db, stream)
	switch {
	case errors.Is(err, errTornRecord), errors.Is(err, errTornMark), errors.Is(err, errBadIndex), errors.Is(err, pebble.ErrNotFound):
		return nil // found where it lies
	case err != nil:
		return v.unlessDamaged(err)
	}
	if *h != want {
		v.damage(where, "it says %s, the log says %s", h, &want)
	}
	return nil
}
