package algorithm

import (
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/fault"
)

func TestProject(t *testing.T) {
	w := newWorld(t)
	t.Run("TEN-01_a_project_that_is_not_there_is_missing_for_admins_too", func(t *testing.T) {
		in := CreateInput{Project: uuid.New(), Name: "nowhere", VersionInput: commanded("v1")}
		if _, err := w.Create(t.Context(), by(admin), in); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("made in a project that is not there: %v", err)
		}
		in.Project = speech
		if _, err := w.Create(t.Context(), by(admin), in); err != nil {
			t.Errorf("an admin works in every project there is: %v", err)
		}
	})
}
