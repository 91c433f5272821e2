package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"tallyard/infra/eventstore/embedded/persistent"
)

// parkedMetadata tells of a parked message when and why it was parked.
type parkedMetadata struct {
	Added  time.Time `json:"added"`
	Reason string    `json:"reason"`
	// SubscriptionEventNumber is the event's position in the group's source; it
	// is missing where the message had been parked before.
	SubscriptionEventNumber *persistent.Position `json:"subscriptionEventNumber,omitempty"`
}

// writeParked writes links to what is to be parked.
func (g *group) writeParked(ctx context.Context) (bool, error) {
	g.mu.Lock()
	parked := g.state.Parking(time.Now())
	g.mu.Unlock()
	if len(parked) == 0 {
		return false, nil
	}
	events := make([]proposed, 0, len(parked))
	for i := range parked {
		e, err := g.parkedLink(&parked[i])
		if err != nil {
			return false, err
		}
		events = append(events, e)
	}
	err := g.store.appendOwn(ctx, g.name.parked(), events...)
	n := len(events)
	if err != nil {
		n = 0
	}
	g.mu.Lock()
	g.state.ParkingWritten(time.Now(), n)
	g.mu.Unlock()
	return true, g.survive(ctx, "park messages", err)
}

func (g *group) parkedLink(p *persistent.Parked) (proposed, error) {
	meta := parkedMetadata{Added: g.store.opt.clock().UTC(), Reason: p.Reason}
	if p.Source {
		meta.SubscriptionEventNumber = &p.Position
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return proposed{}, fmt.Errorf("park a message: %w", err)
	}
	e := &p.Body.(*handedOut).event
	return proposed{
		id: uuid.New(), kind: linkType, contentType: contentBinary, metadata: raw,
		data: []byte(strconv.FormatInt(e.revision, 10) + "@" + e.stream),
	}, nil
}

// beginReplay takes up a replay that was asked for.
func (g *group) beginReplay(ctx context.Context) (bool, error) {
	g.mu.Lock()
	wanted := g.replay
	g.replay = nil
	g.mu.Unlock()
	if wanted == nil {
		return false, nil
	}
	first, end, err := g.store.parkedRange(ctx, g.name)
	if err != nil {
		return false, err
	}
	g.mu.Lock()
	g.state.Replay(first, min(wanted.stop, end))
	g.mu.Unlock()
	return true, nil
}

// parkedRange is the first revision of the parked messages that is there, and
// the one behind the last.
func (s *store) parkedRange(ctx context.Context, name groupName) (first, end persistent.Position, err error) {
	h, err := s.durableHead(ctx, name.parked())
	if err != nil || h.missing() || h.tombstoned {
		return 0, 0, err
	}
	from, last, err := s.visible(ctx, name.parked(), &h)
	return persistent.Position(from), persistent.Position(last) + 1, err
}

// readParked takes parked messages into the group that are to be replayed.
func (g *group) readParked(ctx context.Context) (bool, error) {
	g.mu.Lock()
	from, n := g.state.ReplayNext()
	g.mu.Unlock()
	if n == 0 {
		return false, nil
	}
	h, err := g.store.durableHead(ctx, g.name.parked())
	if err != nil {
		return false, err
	}
	var p page
	if !h.tombstoned {
		if p, _, err = g.store.readStream(ctx, g.name.parked(), &h, int64(from), false, n); err != nil {
			return false, err
		}
	}
	before := from + persistent.Position(n)
	again := make([]*persistent.Event, 0, n) // nil where the event is gone
	for i := range p.events {
		e, err := g.parkedEvent(&p.events[i])
		if err != nil {
			return false, err
		}
		again = append(again, e)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	all := !p.more
	for i, e := range again {
		switch at := persistent.Position(p.events[i].revision); {
		case at >= before:
			all = true
		case e == nil:
			g.state.PassReplayed(at + 1)
		default:
			g.state.AddReplayed(time.Now(), *e)
		}
	}
	if all {
		g.state.PassReplayed(before) // revisions that aren't there any more
	}
	return true, nil
}

// parkedEvent makes a link to a parked event into an event of the group; nil if
// there is nothing to deliver any more.
func (g *group) parkedEvent(link *event) (*persistent.Event, error) {
	target, ok, err := g.store.resolve(link)
	if err != nil {
		return nil, err
	}
	if !ok {
		g.logger.Warn("a parked event is gone and can't be delivered again", "link", string(link.data))
		return nil, nil //nolint:nilnil // nothing to deliver is no error
	}
	return &persistent.Event{
		ID: link.id, Position: persistent.Position(link.revision), Size: link.sizeHint() + target.sizeHint(),
		Pin: pinOf(g.entry.Strategy, &target), Body: &handedOut{event: target, link: link},
	}, nil
}

// truncateParked cuts off the parked messages that were replayed and handled.
func (g *group) truncateParked(ctx context.Context) (bool, error) {
	g.mu.Lock()
	before, due := g.state.Truncate(time.Now(), false)
	g.mu.Unlock()
	if !due {
		return false, nil
	}
	err := g.cutParked(ctx, before)
	g.mu.Lock()
	g.state.Truncated(time.Now(), err == nil)
	g.mu.Unlock()
	return true, g.survive(ctx, "cut off replayed messages", err)
}

func (g *group) cutParked(ctx context.Context, before persistent.Position) error {
	return g.store.appendMetadata(ctx, g.name.parked(), map[string]int64{"$tb": int64(before)})
}
