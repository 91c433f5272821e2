package algorithm

import (
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/fault"
)

func TestTransfer(t *testing.T) {
	w := newWorld(t)
	r := w.published("given", access.Group)
	move := func(from, to uuid.UUID) bool {
		t.Helper()
		moved, err := w.Transfer(t.Context(), by(alice), r.Algorithm, from, to)
		if err != nil {
			t.Fatal(err)
		}
		return moved
	}
	before, _ := w.state(r)
	t.Run("TEN-05_an_algorithm_gets_another_owner_with_all_its_versions", func(t *testing.T) {
		if !move(alice, bob) {
			t.Fatal("nothing was moved")
		}
		s, v := w.state(r)
		if s.Owner != bob || s.Thing(v).Owner != bob || s.Changes != before.Changes+1 {
			t.Errorf("%+v", s)
		}
		if _, err := w.UpdateVersion(t.Context(), by(alice), UpdateInput{VersionRef: r}); !fault.Is(err, fault.CodeForbidden) {
			t.Errorf("the old owner edits it: %v", err)
		}
	})
	t.Run("TEN-05_what_is_not_theirs_stays", func(t *testing.T) {
		if move(alice, carol) || move(carol, alice) {
			t.Error("it was moved")
		}
		if moved, err := w.Transfer(t.Context(), by(alice), uuid.New(), alice, bob); moved || err != nil {
			t.Errorf("of nothing: %v %v", moved, err)
		}
		if s, _ := w.state(r); s.Owner != bob {
			t.Errorf("%+v", s)
		}
	})
}

func TestClosedProject(t *testing.T) {
	w := newWorld(t)
	w.Projects = projects{speech}
	_, err := w.Create(t.Context(), by(alice), CreateInput{Name: "late", Project: vision, VersionInput: commanded("1")})
	if !fault.Is(err, fault.CodeInvalidState) {
		t.Errorf("TEN-11 a member makes something in a project that is closed: %v", err)
	}
}
