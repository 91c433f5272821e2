// Package page builds keyset pages: the rows behind a key in an order, never
// by an offset, so that pages do not shift while rows come and go (GEN-02).
package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Key is the place of a row in an order: the value it is ordered by, as text,
// and its id.
type Key struct {
	Value string
	ID    uuid.UUID
}

// Column is something that rows can be ordered by. The index behind it has the
// id as its last column.
type Column struct {
	SQL  string // expression, with the table's alias
	Cast string // Postgres type of the key's value, "timestamptz" or "text"
}

// Order is an order of rows; the id always decides last, in the same direction.
type Order struct {
	Column     Column
	IDColumn   string // "a.id"
	Descending bool
}

// Page asks for some rows of an order: the First behind After, or the Last
// before Before.
type Page struct {
	First, Last   int // one of them is set
	After, Before *Key
}

// Limit is how many rows are asked for.
func (p Page) Limit() int { return max(p.First, p.Last) }

// backward tells whether the page is counted from its end.
func (p Page) backward() bool { return p.Last > 0 }

// SQL gives the conditions and the tail of a query; the arguments are appended
// to args, whose length numbers the placeholders.
func SQL(o Order, p Page, args []any) (where, tail string, _ []any) {
	desc := o.Descending
	if p.backward() {
		desc = !desc
	}
	var conds []string
	bound := func(k *Key, behind bool) {
		if k == nil {
			return
		}
		op := ">"
		if o.Descending == behind {
			op = "<"
		}
		args = append(args, k.Value, k.ID)
		conds = append(conds, fmt.Sprintf("(%s, %s) %s ($%d::text::%s, $%d)", o.Column.SQL, o.IDColumn, op, len(args)-1, o.Column.Cast, len(args)))
	}
	bound(p.After, true)
	bound(p.Before, false)
	where = "TRUE"
	if len(conds) > 0 {
		where = strings.Join(conds, " AND ")
	}
	dir := "ASC"
	if desc {
		dir = "DESC"
	}
	// The number stands in the text, so that every plan is made for a page: as a
	// parameter it would be taken for a tenth of all rows.
	tail = fmt.Sprintf("ORDER BY %s %s, %s %s LIMIT %d", o.Column.SQL, dir, o.IDColumn, dir, p.Limit()+1)
	return where, tail, args
}

// Rows are the rows of a page with what lies around it.
type Rows[T any] struct {
	Items       []T
	HasNext     bool
	HasPrevious bool
}

// Cut turns the rows of a query made with SQL into a page: it takes off the one
// row too many and puts a page that was counted from its end the right way round.
func Cut[T any](items []T, p Page) Rows[T] {
	more := len(items) > p.Limit()
	if more {
		items = items[:p.Limit()]
	}
	if p.backward() {
		slices.Reverse(items)
		return Rows[T]{Items: items, HasPrevious: more, HasNext: p.Before != nil}
	}
	return Rows[T]{Items: items, HasNext: more, HasPrevious: p.After != nil}
}

// TimeValue is a time as a key's value; it keeps the microseconds that Postgres keeps.
func TimeValue(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }
