package embedded

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"tallyard/infra/eventstore/embedded/persistent"
)

// groupReader reads the group's source. Only the group's goroutine uses it.
type groupReader struct {
	*group
	news  <-chan struct{} // closed when there may be more than the last read found
	atEnd bool            // the last read found the end
}

// handedOut is the body of an event in a group: the event, and the link by
// which it was found, if any.
type handedOut struct {
	event event
	link  *event
}

// read takes events of the source into the group, if it has room and there may
// be any.
func (r *groupReader) read(ctx context.Context) (bool, error) {
	more := !r.atEnd || isClosed(r.news)
	r.mu.Lock()
	if more && r.atEnd && r.state.Room() == 0 {
		// It falls behind, to where the buffer of the past counts.
		r.atEnd = false
		r.state.ReachedEnd(false)
	}
	room, after := r.state.Room(), r.state.Looked()
	r.mu.Unlock()
	if !more || room == 0 {
		return false, nil
	}
	r.news = r.store.news.next()
	p, err := r.page(ctx, after, room)
	if err != nil {
		return false, err
	}
	r.atEnd = !p.more
	events := make([]persistent.Event, 0, len(p.events))
	for i := range p.events {
		e, err := r.event(&p.events[i])
		if err != nil {
			return false, err
		}
		events = append(events, e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range events {
		e := &p.events[i]
		switch {
		case r.name.wholeLog() && ofGroups(e.stream):
			r.state.Ignore(events[i].Position)
		case !r.filter.match(e):
			r.state.Pass(events[i].Position, r.filter.interval)
		case room == 0:
			r.atEnd = false // it is read again later
			r.state.ReachedEnd(false)
			return true, nil
		default:
			r.state.Add(time.Now(), events[i])
			room--
		}
	}
	r.state.ReachedEnd(r.atEnd)
	return !r.atEnd, nil
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// page reads from the source, behind a position.
func (r *groupReader) page(ctx context.Context, after persistent.Position, room int) (page, error) {
	if r.name.wholeLog() {
		if r.filter != nil {
			room = pageEvents // most may not pass
		}
		return r.store.readAll(ctx, uint64(after+1), false, room, nil)
	}
	h, err := r.store.durableHead(ctx, r.name.stream)
	if err != nil || h.tombstoned || h.last <= int64(after) {
		return page{}, err
	}
	p, _, err := r.store.readStream(ctx, r.name.stream, &h, int64(after)+1, false, room)
	return p, err
}

// event makes an event of the source into one of the group, following it to its
// target if it is a link and links are wanted.
func (r *groupReader) event(e *event) (persistent.Event, error) {
	out := persistent.Event{ID: e.id, Position: persistent.Position(e.revision), Size: e.sizeHint()}
	if r.name.wholeLog() {
		out.Position = persistent.Position(e.position)
	}
	body := &handedOut{event: *e}
	if r.entry.ResolveLinks && e.kind == linkType {
		target, ok, err := r.store.resolve(e)
		if err != nil {
			return persistent.Event{}, err
		}
		if ok {
			body.event, body.link = target, e
			out.Size += target.sizeHint()
		}
	}
	out.Body = body
	out.Pin = pinOf(r.entry.Strategy, &body.event)
	return out, nil
}

// pinOf is what a pinning strategy goes by: the stream where the event comes
// from, also if only a link to it is at hand, or what it is correlated by.
func pinOf(strategy string, e *event) string {
	switch strategy {
	case persistent.PinnedByCorrelation:
		var meta struct {
			Correlation string `json:"$correlationId"`
		}
		if json.Unmarshal(e.metadata, &meta) == nil && meta.Correlation != "" {
			return meta.Correlation
		}
	case persistent.Pinned:
	default:
		return ""
	}
	if e.kind == linkType {
		if _, source, ok := strings.Cut(string(e.data), "@"); ok {
			return source
		}
	}
	return e.stream
}
