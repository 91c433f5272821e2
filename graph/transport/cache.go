package transport

import (
	"container/list"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
)

// documents keeps parsed and validated documents, the most recently used,
// within a number of bytes.
type documents struct {
	mu    sync.Mutex
	limit int
	used  int
	order *list.List // of *cached, most recent first
	byKey map[string]*list.Element
}

type cached struct {
	key  string
	doc  *ast.QueryDocument
	cost int
}

// A parsed document holds nodes with positions and types, so its text is the
// least of it. A test measures the heap against this factor.
const documentFactor = 30

func newDocuments(limit int) *documents {
	return &documents{limit: limit, order: list.New(), byKey: map[string]*list.Element{}}
}

func (d *documents) get(key string) *ast.QueryDocument {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.byKey[key]
	if e == nil {
		return nil
	}
	d.order.MoveToFront(e)
	return e.Value.(*cached).doc
}

func (d *documents) add(key string, doc *ast.QueryDocument) {
	cost := len(key)*(documentFactor+1) + 1024
	if cost > d.limit/8 { // one document does not push out all others
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byKey[key] != nil {
		return
	}
	d.byKey[key] = d.order.PushFront(&cached{key, doc, cost})
	d.used += cost
	for d.used > d.limit {
		last := d.order.Back()
		c := last.Value.(*cached)
		d.order.Remove(last)
		delete(d.byKey, c.key)
		d.used -= c.cost
	}
}

func (d *documents) size() (entries, bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.byKey), d.used
}
