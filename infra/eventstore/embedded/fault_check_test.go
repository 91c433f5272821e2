package embedded

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"
)

// tally is what a check of a store after a crash has found.
type tally struct {
	Acknowledged int `json:"acknowledged"` // events
	Found        int `json:"found"`        // of those
	Twice        int `json:"twice"`        // events that are there more than once
	Half         int `json:"half"`         // appends of which a part is there
	Unknown      int `json:"unknown"`      // events without an answer that are there
}

func (t *tally) add(o tally) {
	t.Acknowledged += o.Acknowledged
	t.Found += o.Found
	t.Twice += o.Twice
	t.Half += o.Half
	t.Unknown += o.Unknown
}

// check compares a store with what was promised: every acknowledged event is
// there, as it was written and where the answer said; nothing is there twice or
// that nobody wrote; an append is there wholly or not at all; revisions follow
// each other; the streams with a model show what it says; and a verification
// finds no damage.
func (l *ledgerOfPromises) check(ctx context.Context, s *store) (t tally, err error) {
	log, err := wholeOrNothing(s)
	if err != nil {
		return t, err
	}
	found := make(map[uuid.UUID]*event, len(log))
	next := map[string]int64{}
	for i := range log {
		e := &log[i]
		if _, twice := found[e.id]; twice {
			t.Twice++
		}
		found[e.id] = e
		if a, ok := l.tried[e.id]; ok {
			if a.stream != e.stream || !bytes.Equal(a.data, e.data) {
				return t, fmt.Errorf("the event at %d is not as it was written", e.position)
			}
		} else if e.kind == "made" {
			return t, fmt.Errorf("the event at %d was never written", e.position)
		}
		if _, owned := l.owned[e.stream]; !owned && e.revision != next[e.stream] && e.kind == "made" {
			return t, fmt.Errorf("%s has revision %d where %d was due", e.stream, e.revision, next[e.stream])
		}
		next[e.stream] = e.revision + 1
		if e.more > 0 && (i+1 == len(log) || log[i+1].first != e.first) && e.kind == "made" && l.owned[e.stream] == nil {
			t.Half++
		}
	}
	for _, p := range l.promises {
		for i, id := range p.ids {
			t.Acknowledged++
			e := found[id]
			if e == nil {
				continue
			}
			t.Found++
			if e.stream != p.stream || e.revision != p.last-int64(len(p.ids)-1-i) || i == len(p.ids)-1 && e.position != p.position {
				return t, fmt.Errorf("%s was acknowledged as revision %d at %d of %s, and is revision %d at %d of %s",
					id, p.last, p.position, p.stream, e.revision, e.position, e.stream)
			}
			delete(found, id)
		}
	}
	for _, e := range found {
		if e.kind == "made" && l.owned[e.stream] == nil {
			t.Unknown++
		}
	}
	if t.Found != t.Acknowledged || t.Twice > 0 || t.Half > 0 {
		return t, fmt.Errorf("%+v", t)
	}
	if err := l.checkOwned(ctx, s); err != nil {
		return t, err
	}
	rep, err := s.verify(ctx, nil)
	if err == nil && rep.Damaged > 0 {
		err = fmt.Errorf("damaged: %+v", rep.Damage)
	}
	return t, err
}

// wholeOrNothing is wholeOf for a log that may be empty.
func wholeOrNothing(s *store) ([]event, error) {
	if s.committed.Load() == 0 {
		return nil, nil
	}
	return wholeOf(s)
}
