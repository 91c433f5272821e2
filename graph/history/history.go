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
	args := relay.Args{First: first, After: after}
	list, err := relay.NewList(r.Sealer, stream.Tenant, "history", stream.String())
	if err != nil {
		return nil, err
	}
	p, err := list.Nested(args)
	if err != nil {
		return nil, err
	}
	from := es.Revision(0)
	if p.After != nil {
		from = revision(p.After.Value) + 1
	}
	rows := make([]es.Envelope, 0, p.First+1)
	for env, err := range es.Events(ctx, r.Runtime, stream, from) {
		if err != nil {
			return nil, err
		}
		if keep != nil && !keep(env) {
			continue
		}
		if rows = append(rows, env); len(rows) > p.First {
			break
		}
	}
	c := &gqlmodel.HistoryConnection{}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, page.Cut(rows, p),
		func(e es.Envelope) page.Key { return page.Key{Value: revisionText(e.Revision), ID: e.ID} },
		r.Entry,
		func(cursor string, n *gqlmodel.HistoryEntry) *gqlmodel.HistoryEdge {
			return &gqlmodel.HistoryEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

// Entry shows one event.
func (r *Reader) Entry(e es.Envelope) *gqlmodel.HistoryEntry {
	h := &gqlmodel.HistoryEntry{
		Position: r.Sealer.Position(e.Meta.Tenant, e.Position), Event: e.Name, Action: e.Meta.Action, At: e.Meta.Time,
		Actor: Actor(e.Meta.Actor), Changes: Changes(e.Event.Changes()),
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
