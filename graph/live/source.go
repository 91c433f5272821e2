package live

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Source is what makes the items of one subscription. All functions run one
// after the other.
type Source[T any] struct {
	// Projections are the read models that a client would ask after an item.
	Projections []string
	// FromRows: items are made from the read model's rows, not from the log. While
	// the read model is behind there is nothing to make them from, and an event
	// must not be passed over: the subscription ends instead, and resumes with
	// its cursor.
	FromRows bool
	// Categories of streams that matter; empty: all.
	Categories []string
	// Tenants whose streams matter; empty: the viewer's own.
	Tenants []uuid.UUID
	// Begin refuses who may not watch, or not any more: it is asked before the
	// first item. A stream that resumes goes on from a place where it was allowed.
	// It may be nil.
	Begin func(ctx context.Context, then access.Grants, at es.Position) error
	// Snapshot makes the first item, the state at a position.
	Snapshot func(ctx context.Context, then access.Grants, at es.Position, cursor string) (*T, error)
	// Item makes the item of an event; nil when it is not for this viewer. Then are
	// the viewer's rights at that place of the log, which decide what came into view
	// and went out of it; the context's viewer has the newest ones, which decide
	// what is shown of it.
	Item func(ctx context.Context, then access.Grants, env es.Envelope, cursor string) (*T, error)
	// Turn makes the items of a change of the viewer's rights: some of them, and
	// the thing after which to ask for more, nil when these are all. It may be nil.
	Turn func(ctx context.Context, t Turn) (parts []Part[T], next uuid.UUID, err error)
	// Resync makes the item that ends a subscription whose cursor is of no use.
	Resync func(cursor string) *T
	// Tick makes items between events, from what else is to be told; it may be nil.
	Tick func(ctx context.Context, then access.Grants, cursor string) ([]*T, error)
}

// Turn is a change of the viewer's rights at a place of the log.
type Turn struct {
	Was, Is access.Grants
	Turned  access.Turned
	At      es.Position
	// After: go on after this thing; nil: from the beginning.
	After uuid.UUID
}

// Part is an item of a turn that may have many.
type Part[T any] struct {
	// Thing is the last one, in the order of their ids, that the item tells of.
	Thing uuid.UUID
	Item  func(cursor string) *T
}
