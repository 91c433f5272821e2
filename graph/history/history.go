// Package history answers about the past of a thing from its stream: the list
// of what happened, and the thing as it was.
package history

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	"tallyard/projections/page"
)

// TimeIndex finds the position of a moment.
type TimeIndex interface {
	PositionAt(ctx context.Context, at time.Time) (es.Position, error)
}

// Reader reads histories.
type Reader struct {
	Runtime *es.Runtime
	Sealer  *relay.Sealer
	Index   TimeIndex
}

// Of gives a page of a stream's history, oldest first; only those events that
// keep tells, nil keeps all.
func (r *Reader) Of(ctx context.Context, stream es.StreamID, first *int32, after *string, keep func(es.Envelope) bool) (*gqlmodel.HistoryConnection, error) {
	return r.Read(ctx, Source{Streams: []es.StreamID{stream}, Keep: keep}, first, after)
}

// Source is what the history of one thing is made of.
type Source struct {
	// Streams of the thing; their events come in the order of the log.
	Streams []es.StreamID
	// Keep tells which events are shown; nil keeps all.
	Keep func(es.Envelope) bool
	// Changes tells what an event changed; nil: what the event says itself.
	Changes func(context.Context, es.Envelope) ([]es.Change, error)
}

// Read gives a page of a thing's history, oldest first.
func (r *Reader) Read(ctx context.Context, src Source, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	args := relay.Args{First: first, After: after}
	// The first stream names the thing; others may come and go with it.
	list, err := relay.NewList(r.Sealer, v.Tenant, "history", src.Streams[0].String())
	if err != nil {
		return nil, err
	}
	p, err := list.Nested(args)
	if err != nil {
		return nil, err
	}
	at := beginning(len(src.Streams))
	if p.After != nil {
		at = parseReached(p.After.Value, len(src.Streams))
	}
	rows := make([]row, 0, p.First+1)
	for row, err := range merged(ctx, r.Runtime, src.Streams, at) {
		if err != nil {
			return nil, err
		}
		if src.Keep != nil && !src.Keep(row.Envelope) {
			continue
		}
		if rows = append(rows, row); len(rows) > p.First {
			break
		}
	}
	cut := page.Cut(rows, p)
	for i, e := range cut.Items {
		cut.Items[i].changes = e.Event.Changes()
		if src.Changes == nil {
			continue
		}
		if cut.Items[i].changes, err = src.Changes(ctx, e.Envelope); err != nil {
			return nil, err
		}
	}
	c := &gqlmodel.HistoryConnection{}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, cut,
		func(e row) page.Key { return page.Key{Value: e.reached.String(), ID: e.ID} },
		func(e row) *gqlmodel.HistoryEntry { return r.entry(v.Tenant, e.Envelope, e.changes) },
		func(cursor string, n *gqlmodel.HistoryEntry) *gqlmodel.HistoryEdge {
			return &gqlmodel.HistoryEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

// Entry shows one event of the viewer's tenant.
func (r *Reader) Entry(e es.Envelope) *gqlmodel.HistoryEntry {
	return r.entry(e.Meta.Tenant, e, e.Event.Changes())
}

// entry shows an event to a viewer of a tenant, who gives its position back as
// theirs: things of the platform have no tenant of their own.
func (r *Reader) entry(viewer uuid.UUID, e es.Envelope, changes []es.Change) *gqlmodel.HistoryEntry {
	h := &gqlmodel.HistoryEntry{
		Position: r.Sealer.Position(viewer, e.Position), Event: e.Name, Action: e.Meta.Action, At: e.Meta.Time,
		Actor: Actor(e.Meta.Actor), Changes: Changes(changes),
	}
	if e.Meta.Reason != "" {
		h.Reason = &e.Meta.Reason
	}
	if id, err := uuid.Parse(e.Meta.Request); err == nil {
		h.RequestID = relay.Maybe(relay.Request, id)
	}
	return h
}

// Actor shows who acted.
func Actor(a es.Actor) *gqlmodel.Actor {
	out := &gqlmodel.Actor{UserID: a.User}
	switch a.Kind {
	case es.ActorUser:
		out.Kind = gqlmodel.ActorKindUser
	case es.ActorToken:
		out.Kind = gqlmodel.ActorKindToken
	default:
		out.Kind = gqlmodel.ActorKindSystem
		out.Part = &a.Part
	}
	return out
}

// Changes shows changes.
func Changes(list []es.Change) []*gqlmodel.FieldChange {
	out := make([]*gqlmodel.FieldChange, len(list))
	for i, c := range list {
		out[i] = &gqlmodel.FieldChange{Field: c.Field, From: c.From, To: c.To}
	}
	return out
}

// Moment opens the two ways to name a moment of the past; false when neither
// was given.
func (r *Reader) Moment(ctx context.Context, asOf *time.Time, asOfPosition *string) (es.Position, bool, error) {
	switch {
	case asOf != nil && asOfPosition != nil:
		return 0, false, fault.New(fault.Limit, fault.CodeBadRequest, "Give asOf or asOfPosition, not both.").At("asOfPosition")
	case asOf != nil:
		p, err := r.Index.PositionAt(ctx, *asOf)
		return p, true, err
	case asOfPosition != nil:
		v, err := authn.Must(ctx)
		if err != nil {
			return 0, false, err
		}
		p, bad := r.Sealer.OpenPosition(v.Tenant, *asOfPosition)
		if bad != nil {
			return 0, false, bad.At("asOfPosition")
		}
		return p, true, nil
	}
	return 0, false, nil
}
