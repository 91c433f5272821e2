package relay

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/graph/gqlmodel"
	"tallyard/projections/page"
)

// Sizes of pages (GEN-02).
const (
	DefaultPage = 20
	MaxPage     = 100
)

// Args are the arguments of a connection.
type Args struct {
	First  *int32
	After  *string
	Last   *int32
	Before *string
}

// List names a list with its filter and order; a cursor of another one does
// not fit it.
type List struct {
	sealer *Sealer
	tenant uuid.UUID
	digest [8]byte
}

// NewList names a list; what tells it apart from others goes into parts.
func NewList(s *Sealer, tenant uuid.UUID, parts ...any) (List, error) {
	b, err := json.Marshal(parts)
	if err != nil {
		return List{}, fmt.Errorf("digest of a list: %w", err)
	}
	sum := sha256.Sum256(b)
	return List{s, tenant, [8]byte(sum[:8])}, nil
}

const listPurpose = "list"

// Cursor seals the place of a row.
func (l List) Cursor(k page.Key) string {
	b := append(l.digest[:len(l.digest):len(l.digest)], k.ID[:]...)
	return l.sealer.Seal(listPurpose, l.tenant, append(b, k.Value...))
}

func (l List) open(text *string, field string) (*page.Key, *fault.Fault) {
	if text == nil {
		return nil, nil
	}
	b, ok := l.sealer.Open(listPurpose, l.tenant, *text)
	if !ok || len(b) < 24 || [8]byte(b[:8]) != l.digest {
		return nil, badCursor(field)
	}
	return &page.Key{ID: uuid.UUID(b[8:24]), Value: string(b[24:])}, nil
}

// Page reads the arguments of a list at the root, which has a default size.
func (l List) Page(a Args) (page.Page, error) {
	if a.First == nil && a.Last == nil {
		n := int32(DefaultPage)
		a.First = &n
	}
	return l.Nested(a)
}

// Nested reads the arguments of a list inside another thing, where the size
// must be given.
func (l List) Nested(a Args) (page.Page, error) {
	var p page.Page
	switch {
	case a.First != nil && a.Last != nil:
		return p, fault.New(fault.Limit, fault.CodeBadRequest, "Give first or last, not both.").At("last")
	case a.First == nil && a.Last == nil:
		return p, fault.New(fault.Limit, fault.CodeBadRequest, "Give first or last.").At("first")
	}
	for field, n := range map[string]*int32{"first": a.First, "last": a.Last} {
		if n != nil && (*n < 1 || *n > MaxPage) {
			return p, fault.New(fault.Limit, fault.CodeLimitExceeded, fmt.Sprintf("A page has 1 to %d rows.", MaxPage)).At(field)
		}
	}
	if a.First != nil {
		p.First = int(*a.First)
	} else {
		p.Last = int(*a.Last)
	}
	var bad *fault.Fault
	if p.After, bad = l.open(a.After, "after"); bad != nil {
		return p, bad
	}
	if p.Before, bad = l.open(a.Before, "before"); bad != nil {
		return p, bad
	}
	return p, nil
}

// Connection makes the parts of a connection from the rows of a page.
func Connection[R, N, E any](l List, a Args, rows page.Rows[R], key func(R) page.Key, node func(R) *N, edge func(cursor string, node *N) *E) (edges []*E, nodes []*N, info *gqlmodel.PageInfo) {
	info = &gqlmodel.PageInfo{HasNextPage: rows.HasNext, HasPreviousPage: rows.HasPrevious, StartCursor: a.After, EndCursor: a.After}
	if a.Last != nil {
		info.StartCursor, info.EndCursor = a.Before, a.Before
	}
	edges, nodes = make([]*E, len(rows.Items)), make([]*N, len(rows.Items))
	for i, r := range rows.Items {
		cursor := l.Cursor(key(r))
		nodes[i] = node(r)
		edges[i] = edge(cursor, nodes[i])
		if i == 0 {
			info.StartCursor = &cursor
		}
		if i == len(rows.Items)-1 {
			info.EndCursor = &cursor
		}
	}
	return edges, nodes, info
}

// Count calls a connection's counter.
func Count(ctx context.Context, c gqlmodel.Counter) (int32, error) {
	if c == nil {
		return 0, nil
	}
	n, err := c(ctx)
	return int32(min(n, 1<<31-1)), err //nolint:gosec // bounded in the same expression
}
