package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"
)

// attempt is an event that somebody tried to write.
type attempt struct {
	stream string
	data   []byte
}

// promise is an append that was acknowledged.
type promise struct {
	stream   string
	ids      []uuid.UUID
	last     int64
	position uint64
}

// step is one thing that was done to a stream that somebody owns alone.
type step struct {
	kind     requestKind
	ids      []uuid.UUID // of an append
	metadata string      // of an append to the metadata stream
}

// history is what was done to such a stream, in order. Only the last step may
// have an unknown outcome.
type history struct {
	done    []step
	pending *step
}

// ledgerOfPromises is what the writers tried and what they were promised.
type ledgerOfPromises struct {
	mu       sync.Mutex
	tried    map[uuid.UUID]attempt
	promises []promise
	owned    map[string]*history
}

func newPromises() *ledgerOfPromises {
	return &ledgerOfPromises{tried: map[uuid.UUID]attempt{}, owned: map[string]*history{}}
}

// atCrash copies the promises at the moment of a crash, which nobody promises or
// begins anything in: what is promised later doesn't count.
func (l *ledgerOfPromises) atCrash(crash func()) *ledgerOfPromises {
	l.mu.Lock()
	defer l.mu.Unlock()
	crash()
	c := newPromises()
	c.promises = slices.Clone(l.promises)
	for id, a := range l.tried {
		c.tried[id] = a
	}
	for stream, h := range l.owned {
		k := &history{done: slices.Clone(h.done)}
		if h.pending != nil {
			p := *h.pending
			k.pending = &p
		}
		c.owned[stream] = k
	}
	return c
}

// events makes an append's events and notes that they are tried.
func (l *ledgerOfPromises) events(stream string, n, size int) []proposed {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]proposed, n)
	for i := range out {
		id := uuid.New()
		data := bytes.Repeat([]byte(id.String()), 1+size/36)
		out[i] = proposed{id: id, kind: "made", contentType: contentBinary, data: data}
		l.tried[id] = attempt{stream: stream, data: data}
	}
	return out
}

func idsOf(events []proposed) []uuid.UUID {
	ids := make([]uuid.UUID, len(events))
	for i := range events {
		ids[i] = events[i].id
	}
	return ids
}

// promised notes an acknowledged append.
func (l *ledgerOfPromises) promised(stream string, events []proposed, res appendResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promises = append(l.promises, promise{stream: stream, ids: idsOf(events), last: res.current, position: res.position})
}

// do takes one step on an owned stream. Its error says that the outcome is unknown.
func (l *ledgerOfPromises) do(ctx context.Context, s *store, stream string, st step, events []proposed) error {
	st.ids = idsOf(events)
	l.mu.Lock()
	h := l.owned[stream]
	if h == nil {
		h = &history{}
		l.owned[stream] = h
	}
	h.pending = &st
	l.mu.Unlock()
	r := &appendRequest{kind: st.kind, stream: stream, events: events}
	if st.metadata != "" {
		r.stream = metadataPrefix + stream
		r.events = []proposed{{id: uuid.New(), kind: metadataType, contentType: contentJSON, data: []byte(st.metadata)}}
	}
	res, err := s.append(ctx, r)
	if err == nil && res.wrong {
		err = fmt.Errorf("%s is at revision %d", stream, res.current)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.done, h.pending = append(h.done, st), nil
	return nil
}

// modelStream is what a stream is after its history.
type modelStream struct {
	ids   []uuid.UUID
	meta  streamMetadata
	ended bool
	// hidden is below which revision events were out of sight at some time:
	// they may be gone, even if they are to be seen again.
	hidden int
}

// play takes the steps that were acknowledged and, if so wanted, the pending one.
func (h *history) play(pending bool) modelStream {
	var m modelStream
	steps := h.done
	if pending && h.pending != nil {
		steps = append(slices.Clone(steps), *h.pending)
	}
	for _, st := range steps {
		switch {
		case st.kind == requestTombstone:
			m.ended = true
		case st.kind == requestDelete:
			m.meta = streamMetadata{truncateBefore: deletedTruncate}
		case st.metadata != "":
			m.meta = parseMetadata([]byte(st.metadata))
		default:
			if m.meta.truncateBefore == deletedTruncate {
				m.meta.truncateBefore = int64(len(m.ids))
			}
			m.ids = append(m.ids, st.ids...)
		}
		m.hidden = max(m.hidden, m.first())
	}
	return m
}

// first is the lowest revision that readers may see.
func (m *modelStream) first() int {
	h := head{last: int64(len(m.ids)) - 1, meta: m.meta}
	return int(min(max(h.firstVisible(), 0), int64(len(m.ids))))
}

// visible is what readers see of the model.
func (m *modelStream) visible() []uuid.UUID {
	h := head{last: int64(len(m.ids)) - 1, meta: m.meta}
	if m.ended || h.missing() {
		return nil
	}
	return m.ids[m.first():]
}

// matches tells whether a store shows readers what the model says.
func (m *modelStream) matches(ctx context.Context, s *store, stream string) error {
	h, err := s.durableHead(ctx, stream)
	if err != nil {
		return err
	}
	if h.tombstoned != m.ended || !m.ended && h.last != int64(len(m.ids))-1 {
		return fmt.Errorf("%s: head %s, %d events are known, ended %v", stream, &h, len(m.ids), m.ended)
	}
	var seen []uuid.UUID
	if !h.tombstoned && !h.missing() {
		for from := int64(0); ; {
			p, next, err := s.readStream(ctx, stream, &h, from, false, pageEvents)
			if err != nil {
				return err
			}
			for _, e := range p.events {
				seen = append(seen, e.id)
			}
			if !p.more {
				break
			}
			from = next
		}
	}
	want := m.visible()
	gone := len(want) - len(seen)
	if gone < 0 || !slices.Equal(seen, want[gone:]) || gone > 0 && m.first()+gone > m.hidden {
		return fmt.Errorf("%s: %d events are visible, %d should be", stream, len(seen), len(want))
	}
	return nil
}

var errNoState = errors.New("the stream is in no state that its history allows")

// checkOwned compares the owned streams with their models.
func (l *ledgerOfPromises) checkOwned(ctx context.Context, s *store) error {
	for stream, h := range l.owned {
		without, with := h.play(false), h.play(true)
		err := without.matches(ctx, s, stream)
		if err == nil {
			continue
		}
		if pending := with.matches(ctx, s, stream); pending != nil {
			return errors.Join(errNoState, err, pending)
		}
	}
	return nil
}
