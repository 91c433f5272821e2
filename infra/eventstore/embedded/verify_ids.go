package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// idsPage is how many remembered ids are fetched from the commit goroutine at
// once, which stands still that long.
const idsPage = 1024

// rememberedID is an event id that the store knows by heart.
type rememberedID struct {
	recentKey
	at knownEvent
}

// ids compares the remembered event ids with the events.
func (v *verifier) ids() error {
	var page []rememberedID
	for from := 0; ; from += idsPage {
		err := v.store.onCommitGoroutine(v.ctx, func() { page = v.store.recent.page(page[:0], from, idsPage) })
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return context.Cause(v.ctx)
		}
		if v.report != nil {
			v.report(VerifyProgress{Step: "ids", Done: uint64(from), Total: recentCapacity})
		}
		for i := range page {
			if err := v.id(&page[i]); err != nil {
				return err
			}
		}
	}
}

func (v *verifier) id(r *rememberedID) error {
	if r.at.position >= v.end {
		return nil // written after the moment that is verified
	}
	v.rep.IDs++
	where := fmt.Sprintf("remembered id %s", r.id)
	e, err := recordedAt(v.db, r.at.position)
	switch {
	case errors.Is(err, errTornRecord):
		return nil // found where it lies
	case errors.Is(err, pebble.ErrNotFound):
		m, err := readMark(v.db, r.stream)
		if err == nil && r.at.revision >= m.before {
			v.damage(where, "there is no event at position %d", r.at.position)
		}
		return v.unlessDamaged(err)
	case err != nil:
		return v.unlessDamaged(err)
	}
	if e.id != r.id || e.stream != r.stream || e.revision != r.at.revision {
		v.damage(where, "at position %d lies another event", r.at.position)
	}
	return nil
}
