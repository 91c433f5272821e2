package runner

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Placeholder stands in SQL for the schema of the generation that is meant.
const Placeholder = "{g}"

// Writer gathers the SQL that events make, so that a whole batch goes to
// Postgres in one round trip. Nothing can be read through it.
type Writer struct {
	texts *texts
	queue []statement
	// open holds the inserts since the last Exec, by target, in order of arrival.
	open []*rows
}

// statement is one queued statement, its text ready to run.
type statement struct {
	sql  string
	args []any
}

// rows are inserts into the same columns of the same table.
type rows struct {
	table, columns string
	conflict       string // what follows ON CONFLICT; empty: no row may be there
	width, count   int
	args           []any
	places         map[any]int // where in args the row of a key begins, for upserts
}

// Exec queues a statement. "{g}" in it is replaced by the generation's schema:
//
//	w.Exec(`UPDATE {g}.algorithms SET name = $2 WHERE id = $1`, id, name)
//
// Statements run in the order in which they were queued.
func (w *Writer) Exec(sql string, args ...any) {
	w.seal()
	w.queue = append(w.queue, statement{w.texts.statement(sql), quickIDs(slices.Clone(args))})
}

// quickIDs gives ids a type that the client can send as they are: it would
// render a uuid.UUID as text and parse that again, a fifth of all the work.
func quickIDs(args []any) []any {
	for i, a := range args {
		if id, ok := a.(uuid.UUID); ok {
			args[i] = pgtype.UUID{Bytes: id, Valid: true}
		}
	}
	return args
}

// Insert queues one new row; columns are separated by commas:
//
//	w.Insert("audit_entries", "id, tenant, at", id, tenant, at)
//
// It is the fast way to add rows: inserts between two Execs are gathered by
// table into statements of many rows. So they keep their order within a table,
// and towards every Exec, but not among different tables.
func (w *Writer) Insert(table, columns string, values ...any) {
	w.rows(table, columns, "", len(values)).add(values)
}

// Upsert is a kind of row that is made once and added to afterwards.
type Upsert struct {
	// Table and Columns are as for [Writer.Insert].
	Table, Columns string
	// Conflict is what follows ON CONFLICT, and must do in SQL what Merge does.
	Conflict string
	// Merge adds a later row of the same key to an earlier one, in place: a
	// statement can't meet the same row twice.
	Merge func(have, more []any)
}

// Upsert queues a row of that kind. Rows are gathered as those of Insert are;
// key is what Conflict is about.
func (w *Writer) Upsert(u *Upsert, key any, values ...any) {
	r := w.rows(u.Table, u.Columns, u.Conflict, len(values))
	if at, ok := r.places[key]; ok {
		u.Merge(r.args[at:at+r.width], quickIDs(slices.Clone(values)))
		return
	}
	if r.places == nil {
		r.places = map[any]int{}
	}
	r.places[key] = len(r.args)
	r.add(values)
}

// rows finds what is gathered for a table, or begins with it.
func (w *Writer) rows(table, columns, conflict string, width int) *rows {
	for _, r := range w.open {
		if r.table == table && r.columns == columns && r.conflict == conflict && r.width == width {
			return r
		}
	}
	r := &rows{table: table, columns: columns, conflict: conflict, width: width, args: make([]any, 0, 8*width)}
	w.open = append(w.open, r)
	return r
}

func (r *rows) add(values []any) {
	r.args = append(r.args, values...)
	quickIDs(r.args[len(r.args)-len(values):])
	r.count++
}

// chunks are the numbers of rows that one INSERT may have: few, so that the
// prepared statements are few.
var chunks = []int{128, 32, 8, 2, 1}

// seal turns the gathered inserts into statements.
func (w *Writer) seal() {
	for _, r := range w.open {
		rest := r.args
		for _, n := range chunks {
			for ; r.count >= n; r.count -= n {
				w.queue = append(w.queue, statement{w.texts.insert(r, n), rest[:n*r.width]})
				rest = rest[n*r.width:]
			}
		}
	}
	w.open = w.open[:0]
}

// empty tells whether nothing was queued.
func (w *Writer) empty() bool { return len(w.queue) == 0 && len(w.open) == 0 }

// into adds what was queued to a batch.
func (w *Writer) into(b *pgx.Batch) {
	w.seal()
	for _, s := range w.queue {
		b.Queue(s.sql, s.args...)
	}
}

// each runs f on what was queued, in order, until it fails.
func (w *Writer) each(f func(sql string, args []any) error) error {
	w.seal()
	for _, s := range w.queue {
		if err := f(s.sql, s.args); err != nil {
			return err
		}
	}
	return nil
}

// reset empties the writer for another use.
func (w *Writer) reset() {
	clear(w.queue)
	w.queue, w.open = w.queue[:0], w.open[:0]
}

// texts remembers the finished text of each statement of a projection in a
// generation. One goroutine at a time uses it.
type texts struct {
	schema string
	known  map[string]string
	rows   map[insertText]string
}

type insertText struct {
	table, columns, conflict string
	width, count             int
}

func newTexts(schema string) *texts {
	return &texts{schema: schema, known: map[string]string{}, rows: map[insertText]string{}}
}

// maxTexts bounds what a projection that builds its SQL anew each time could pile up.
const maxTexts = 2_000

func (t *texts) statement(sql string) string {
	if s, ok := t.known[sql]; ok {
		return s
	}
	if len(t.known) >= maxTexts {
		clear(t.known)
	}
	s := inSchema(sql, t.schema)
	t.known[sql] = s
	return s
}

// insert is the statement for count rows.
func (t *texts) insert(r *rows, count int) string {
	key := insertText{r.table, r.columns, r.conflict, r.width, count}
	if s, ok := t.rows[key]; ok {
		return s
	}
	var b strings.Builder
	b.WriteString("INSERT INTO " + t.schema + "." + r.table + " (" + r.columns + ") VALUES ")
	for i := range count * r.width {
		switch {
		case i == 0:
			b.WriteString("(")
		case i%r.width == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(i+1))
	}
	b.WriteString(")")
	if r.conflict != "" {
		b.WriteString(" ON CONFLICT " + r.conflict)
	}
	t.rows[key] = b.String()
	return t.rows[key]
}

// inSchema puts a generation's schema into SQL.
func inSchema(sql, schema string) string { return strings.ReplaceAll(sql, Placeholder, schema) }
