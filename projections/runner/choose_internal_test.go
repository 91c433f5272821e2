package runner

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"tallyard/domain/es"
)

// TestChoose states what of a batch a projection gets, and how far that brings it.
func TestChoose(t *testing.T) {
	handle := func(*Writer, es.Envelope) error { return nil }
	p := &Projection{Name: "p", Categories: []string{"mine"}, On: map[string]Handler{"mine.known.v1": handle}}
	event := func(at es.Position, category, name string) item {
		it := item{category: category, env: es.Envelope{Name: name}}
		it.rec.Position, it.rec.Stream = at, es.StreamOf(category, uuid.Nil, uuid.Nil).String()
		return it
	}
	strange := event(5, "mine", "")
	strange.unknown, strange.err = true, es.ErrUnknownEvent
	theirs := strange
	theirs.category = "theirs"
	broken := event(5, "mine", "")
	broken.err = fmt.Errorf("not JSON")
	for _, c := range []struct {
		name   string
		at     es.Position
		parked string
		items  []item
		todo   int
		to     es.Position
		halt   bool
	}{
		{"events of mine", 0, "", []item{event(1, "mine", "mine.known.v1"), event(2, "mine", "mine.known.v1")}, 2, 9, false},
		{"what is done is not done again", 1, "", []item{event(1, "mine", "mine.known.v1"), event(2, "mine", "mine.known.v1")}, 1, 9, false},
		{"other categories move the checkpoint only", 0, "", []item{event(1, "theirs", "mine.known.v1")}, 0, 9, false},
		{"events without a handler too", 0, "", []item{event(1, "mine", "mine.other.v1")}, 0, 9, false},
		{"parked streams are left out", 0, event(1, "mine", "").rec.Stream, []item{event(1, "mine", "mine.known.v1")}, 0, 9, false},
		{"an unknown event halts before it", 0, "", []item{event(1, "mine", "mine.known.v1"), strange, event(6, "mine", "mine.known.v1")}, 1, 1, true},
		{"but not in another category", 0, "", []item{theirs, event(6, "mine", "mine.known.v1")}, 1, 9, false},
		{"nor when it is behind", 5, "", []item{strange, event(6, "mine", "mine.known.v1")}, 1, 9, false},
		{"an event that can't be decoded is handled, to fail", 0, "", []item{broken}, 1, 9, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := &state{p: p, at: c.at, parked: map[string]bool{c.parked: true}}
			todo, to, halt := st.choose(&batch{items: c.items, seen: 9})
			if len(todo) != c.todo || to != c.to || (halt != "") != c.halt {
				t.Fatalf("%d events, to %d, halt %q; want %d, %d, %v", len(todo), to, halt, c.todo, c.to, c.halt)
			}
		})
	}
}

// TestInsertsAreGathered states how rows are joined and what keeps its order.
func TestInsertsAreGathered(t *testing.T) {
	w := &Writer{texts: newTexts("gen_7")}
	for i := range 137 {
		w.Insert("a", "x, y", i, i)
		w.Insert("b", "z", i)
	}
	w.Exec("UPDATE {g}.a SET x = 1")
	w.Insert("a", "x, y", 1, 2)
	w.seal()
	var got []int
	rows := 0
	for _, s := range w.queue {
		got = append(got, len(s.args))
		rows += len(s.args)
	}
	// 137 = 128 + 8 + 1, twice; then the update, then the row behind it.
	if want := "[256 16 2 128 8 1 0 2]"; fmt.Sprint(got) != want {
		t.Fatalf("arguments by statement: %v, want %s", got, want)
	}
	if s := w.queue[6].sql; s != "UPDATE gen_7.a SET x = 1" {
		t.Fatal(s)
	}
	if s := w.queue[2].sql; s != "INSERT INTO gen_7.a (x, y) VALUES ($1, $2)" {
		t.Fatal(s)
	}
	if rows != 137*3+2 {
		t.Fatalf("%d values", rows)
	}
	w.reset()
	if !w.empty() {
		t.Fatal("not empty after reset")
	}
}

// TestIDsAreSentAsTheyAre and the caller's arguments stay what they were.
func TestIDsAreSentAsTheyAre(t *testing.T) {
	w := &Writer{texts: newTexts("gen_7")}
	id := uuid.New()
	args := []any{id, "x"}
	w.Exec("SELECT $1, $2", args...)
	w.Insert("a", "x, y", args...)
	w.Insert("a", "x, y", args...)
	w.seal()
	if _, ok := args[0].(uuid.UUID); !ok {
		t.Fatalf("the caller's argument became %T", args[0])
	}
	for _, s := range w.queue {
		if got, ok := s.args[0].(pgtype.UUID); !ok || got.Bytes != id || !got.Valid {
			t.Fatalf("%s is sent %T %v", s.sql, s.args[0], s.args[0])
		}
	}
}
