package algorithm

import (
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/patch"
	"tallyard/domain/workload"
)

// A command as a table has it: what alice does with version v1.
var (
	editDescription = decideEdit(people[alice], edit{ref: VersionRef{Version: v1}, fields: Fields{Description: patch.To("new")}})
	editImage       = decideEdit(people[alice], edit{ref: VersionRef{Version: v1}, fields: Fields{Image: patch.To(workload.Image{Framework: workload.Other, Reference: "x"})}})
	editNothing     = decideEdit(people[alice], edit{ref: VersionRef{Version: v1}})
	editSource      = decideEdit(people[alice], edit{ref: VersionRef{Version: v1}, fields: Fields{Source: patch.To(Source{Command: "ls"})}})
	editByCopy      = decideEdit(people[alice], edit{ref: VersionRef{Version: v1}, origin: &Origin{Version: v2}, copyFrom: v2, operation: op2})
	publish         = decidePublish(people[alice], PublishInput{VersionRef: VersionRef{Version: v1}, Visibility: access.Global}, publishing{id: op2})
	deleteOne       = decideDelete(people[alice], v1, op2, nil, false)
	deleteInBatch   = decideDelete(people[alice], v1, op2, nil, true)
	use             = decideUse(people[bob], VersionRef{Version: v1}, Use{By: es.Ref{Kind: "workflow", ID: op1}, Name: "nightly"})
)

// TestStates holds ALG-12 and ALG-08 over every state: given a version in it,
// when something is done, then these events follow, or this code.
func TestStates(t *testing.T) {
	wrong := "INVALID_STATE"
	for status, want := range map[Status][9]string{
		//               description       image             nothing    source            copy              publish                delete                             in a batch                          use
		Creating:        {wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong, "NOT_FOUND"},
		CreateFailed:    {"version_edited", "version_edited", "nothing", "version_edited", "version_edited", wrong, "version_deleted deleted", "version_deleted deleted", "NOT_FOUND"},
		Created:         {"version_edited", "version_edited", "nothing", "version_edited", "version_edited", "publication_started", "version_deleted deleted", "version_deleted deleted", "NOT_FOUND"},
		ApprovalPending: {wrong, wrong, wrong, wrong, wrong, wrong, "approval_ended version_deleted deleted", "approval_ended version_deleted deleted", "NOT_FOUND"},
		Publishing:      {wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong, "NOT_FOUND"},
		PublishFailed:   {"version_edited", "version_edited", "nothing", "version_edited", "version_edited", "publication_started", "deletion_started", "deletion_started", "NOT_FOUND"},
		Published:       {"version_edited", wrong, "nothing", wrong, wrong, wrong, "deletion_started", "NOT_ALLOWED", "use_registered"},
		Deleting:        {wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong},
		Deleted:         {"NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND"},
	} {
		s := fold(inState(status)...)
		if v, ok := s.Version(v1); ok && v.Status != status {
			t.Fatalf("the history of %s folds to %s", status, v.Status)
		}
		for i, c := range []struct {
			name   string
			decide es.Decide[State]
		}{
			{"ALG-12_edit_description", editDescription},
			{"ALG-12_edit_image", editImage},
			{"ALG-12_edit_nothing", editNothing},
			{"ALG-12_edit_source", editSource},
			{"ALG-03_edit_by_copy", editByCopy},
			{"ALG-12_publish", publish},
			{"ALG-12_delete", deleteOne},
			{"ALG-08_delete_in_batch", deleteInBatch},
			{"ALG-08_use", use},
		} {
			t.Run(c.name+"_when_"+string(status), func(t *testing.T) {
				if got := outcome(c.decide(s)); got != want[i] {
					t.Errorf("came to %s, want %s", got, want[i])
				}
			})
		}
	}
}

// TestWhoMay holds who changes what: the owner and tenant admins; others are
// told that it is not theirs, or nothing at all.
func TestWhoMay(t *testing.T) {
	for name, c := range map[string]struct {
		user           uuid.UUID
		hidden, public string // of a version of alice's, of one published to the project
	}{
		"ALG-12_the_owner":                              {alice, "version_edited", "version_edited"},
		"ALG-12_a_tenant_admin":                         {admin, "version_edited", "version_edited"},
		"ALG-12_an_admin_of_the_project_may_not":        {bob, "NOT_FOUND", "FORBIDDEN"},
		"ALG-05_who_is_not_in_the_group_sees_none":      {carol, "NOT_FOUND", "NOT_FOUND"},
		"TEN-02_an_auditor_changes_nothing":             {audra, "FORBIDDEN", "FORBIDDEN"},
		"TEN-01_another_tenant_is_told_it_is_not_there": {mallory, "NOT_FOUND", "NOT_FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			decide := decideEdit(people[c.user], edit{ref: VersionRef{Version: v1}, fields: Fields{Description: patch.To("new")}})
			if got := outcome(decide(fold(inState(Created)...))); got != c.hidden {
				t.Errorf("before publication %s, want %s", got, c.hidden)
			}
			if got := outcome(decide(fold(inState(Published)...))); got != c.public {
				t.Errorf("afterwards %s, want %s", got, c.public)
			}
		})
	}
}

func TestExpectedVersion(t *testing.T) {
	right, wrong := 1, 7
	for name, c := range map[string]struct {
		decide func(*int) es.Decide[State]
		then   string
	}{
		"edit": {func(n *int) es.Decide[State] {
			return decideEdit(people[alice], edit{ref: VersionRef{Version: v1}, fields: Fields{Description: patch.To("new")}, expected: n})
		}, "version_edited"},
		"publish": {func(n *int) es.Decide[State] {
			return decidePublish(people[alice], PublishInput{VersionRef: VersionRef{Version: v1}, Visibility: access.Global, Expected: n}, publishing{id: op2})
		}, "publication_started"},
		"delete": {func(n *int) es.Decide[State] { return decideDelete(people[alice], v1, op2, n, false) }, "version_deleted deleted"},
	} {
		t.Run("GEN-04_"+name, func(t *testing.T) {
			s := fold(inState(Created)...)
			if got := outcome(c.decide(&right)(s)); got != c.then {
				t.Errorf("the right one came to %s", got)
			}
			if got := outcome(c.decide(&wrong)(s)); got != "VERSION_CONFLICT" {
				t.Errorf("the wrong one came to %s", got)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	add := func(label string) es.Decide[State] {
		return decideAddVersion(people[alice], newVersion{id: v2, label: label, settings: settings()})
	}
	t.Run("ALG-01_labels_are_unique_among_the_living", func(t *testing.T) {
		if got := outcome(add("1")(fold(inState(Published)...))); got != "VERSION_TAKEN" {
			t.Error(got)
		}
		s := fold(append(inState(Created), VersionAdded{OfVersion: OfVersion{v2}, Label: "2", Settings: settings()}, VersionDeleted{OfVersion{v1}, "1", Created})...)
		if got := outcome(decideAddVersion(people[alice], newVersion{id: op1, label: "1", settings: settings()})(s)); got != "version_added" {
			t.Error(got)
		}
	})
	t.Run("ALG-08_the_algorithm_goes_with_its_last_version", func(t *testing.T) {
		s := fold(append(inState(Created), VersionAdded{OfVersion: OfVersion{v2}, Label: "2", Settings: settings()})...)
		if got := outcome(deleteOne(s)); got != "version_deleted" {
			t.Error(got)
		}
		if got := outcome(add("3")(fold(inState(Deleted)...))); got != "NOT_FOUND" {
			t.Error(got)
		}
	})
	t.Run("ALG-08_what_is_used_stays_and_by_whom_is_told", func(t *testing.T) {
		s := fold(append(inState(Published), UseRegistered{OfVersion{v1}, Use{es.Ref{Kind: "workflow", ID: op1}, "nightly"}})...)
		_, err := deleteOne(s)
		if got := outcome(nil, err); got != "IN_USE" || err.Error() != "IN_USE: This version is used by workflow nightly; remove it there first." {
			t.Error(err)
		}
		if got := outcome(use(s)); got != "nothing" {
			t.Errorf("used twice: %s", got)
		}
		if got := outcome(decideRelease(VersionRef{Version: v1}, es.Ref{Kind: "workflow", ID: op1})(s)); got != "use_released" {
			t.Error(got)
		}
		if got := outcome(decideRelease(VersionRef{Version: v1}, es.Ref{Kind: "workflow", ID: op2})(s)); got != "nothing" {
			t.Error(got)
		}
	})
	t.Run("ALG-05_a_command_is_published_at_once", func(t *testing.T) {
		s := fold(inState(Created)...)
		s.Versions[0].Settings.Source = Source{Command: "ls"}
		events, err := publish(s)
		if got := outcome(events, err); got != "published" {
			t.Fatal(got)
		}
		if ev := events[0].(VersionPublished); ev.Fingerprint != FingerprintOf(s.Versions[0].Settings, "") || ev.Files != nil || ev.By != alice {
			t.Errorf("%+v", ev)
		}
	})
	t.Run("ALG-05_the_fingerprint_is_of_settings_and_files", func(t *testing.T) {
		base := FingerprintOf(settings(), "f")
		described, moved, other := settings(), settings(), settings()
		described.Description = "else"
		moved.Source.Script = &Script{Space: op1, Directory: "elsewhere", Script: "main.py"}
		other.Image.Reference = "pytorch:2.7"
		if FingerprintOf(described, "f") != base || FingerprintOf(moved, "f") != base {
			t.Error("description or place count")
		}
		if FingerprintOf(other, "f") == base || FingerprintOf(settings(), "g") == base {
			t.Error("image or files do not count")
		}
		if settings().Source.Script.Directory != "code" {
			t.Error("the settings were changed")
		}
	})
	t.Run("ALG-12_an_edit_says_what_it_changed", func(t *testing.T) {
		events, err := editSource(fold(inState(CreateFailed)...))
		if err != nil {
			t.Fatal(err)
		}
		list := events[0].Changes()
		if len(list) != 2 || list[0].Field != "source" || string(list[1].From)+string(list[1].To) != `"CREATE_FAILED""CREATED"` {
			t.Errorf("%s", es.ValueOf(list))
		}
	})
	t.Run("ALG-12_an_own_source_ends_a_failed_copy", func(t *testing.T) {
		events, err := editSource(fold(inState(CreateFailed)...))
		if err != nil {
			t.Fatal(err)
		}
		v, _ := fold(append(inState(CreateFailed), events...)...).Version(v1)
		if v.Status != Created || v.Problem != "" || v.Operation != uuid.Nil {
			t.Errorf("%+v", v)
		}
		v, _ = fold(append(inState(CreateFailed), VersionEdited{OfVersion: OfVersion{v1}, From: CreateFailed, Set: Fields{Description: patch.To("x")}})...).Version(v1)
		if v.Status != CreateFailed || v.Problem == "" {
			t.Errorf("a description ends it too: %+v", v)
		}
	})
}
