package loader

import (
	"context"

	"github.com/google/uuid"
	"github.com/vikstrous/dataloadgen"

	"tallyard/domain/es"
	"tallyard/projections/page"
)

// PageOf asks for a page of what lies inside a thing.
type PageOf struct {
	ID        uuid.UUID
	Published bool        // of an algorithm: the published versions alone
	At        es.Position // of a project: the members at this position, 0 for now
	First     int
	Last      int
	After     page.Key
	Before    page.Key
}

// VersionsOf makes the key of a page of an algorithm's versions.
func VersionsOf(id uuid.UUID, published bool, p page.Page) PageOf {
	k := keyOf(id, p)
	k.Published = published
	return k
}

// MembersAt makes the key of a page of a project's members.
func MembersAt(id uuid.UUID, at es.Position, p page.Page) PageOf {
	k := keyOf(id, p)
	k.At = at
	return k
}

func keyOf(id uuid.UUID, p page.Page) PageOf {
	k := PageOf{ID: id, First: p.First, Last: p.Last}
	if p.After != nil {
		k.After = *p.After
	}
	if p.Before != nil {
		k.Before = *p.Before
	}
	return k
}

func (k PageOf) page() page.Page {
	p := page.Page{First: k.First, Last: k.Last}
	if k.After != (page.Key{}) {
		p.After = &k.After
	}
	if k.Before != (page.Key{}) {
		p.Before = &k.Before
	}
	return p
}

// pages makes a loader of pages inside things; those that are cut alike go
// together.
func pages[V any](find func(context.Context, PageOf, []uuid.UUID) (map[uuid.UUID]page.Rows[V], error)) *dataloadgen.Loader[PageOf, page.Rows[V]] {
	return dataloadgen.NewLoader(func(ctx context.Context, keys []PageOf) ([]page.Rows[V], []error) {
		groups := map[PageOf][]uuid.UUID{}
		for _, k := range keys {
			id := k.ID
			k.ID = uuid.Nil
			groups[k] = append(groups[k], id)
		}
		found := map[PageOf]page.Rows[V]{}
		for k, ids := range groups {
			rows, err := find(ctx, k, ids)
			if err != nil {
				return make([]page.Rows[V], len(keys)), all(err)
			}
			for id, r := range rows {
				of := k
				of.ID = id
				found[of] = r
			}
		}
		list := make([]page.Rows[V], len(keys))
		for i, k := range keys {
			list[i] = found[k]
		}
		return list, nil
	}, dataloadgen.WithWait(wait))
}
