package algorithm

import (
	"slices"
	"testing"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/patch"
)

// TestSteps: what the end of an operation does, in the state that waits for it
// and nowhere else, by the operation that it waits for and by no other.
func TestSteps(t *testing.T) {
	for name, c := range map[string]struct {
		status Status
		step   func(op byte) es.Decide[State]
		then   string
		left   Status
	}{
		"ALG-03_prepared":           {Creating, func(o byte) es.Decide[State] { return decidePrepared(v1, fixed(o)) }, "version_prepared", Created},
		"ALG-11_preparation_failed": {Creating, func(o byte) es.Decide[State] { return decidePreparationFailed(v1, fixed(o), "p") }, "preparation_failed", CreateFailed},
		"ALG-05_published":          {Publishing, func(o byte) es.Decide[State] { return decidePublished(v1, fixed(o), bob, Files{"f", 1, 2}) }, "published", Published},
		"ALG-11_publication_failed": {Publishing, func(o byte) es.Decide[State] { return decidePublicationFailed(v1, fixed(o), "p") }, "publication_failed", PublishFailed},
		"OPS-02_publication_undone": {Publishing, func(o byte) es.Decide[State] { return decidePublicationCancelled(v1, fixed(o)) }, "publication_cancelled", Created},
		"ALG-08_removed":            {Deleting, func(o byte) es.Decide[State] { return decideRemoved(v1, fixed(o)) }, "version_deleted deleted", Deleted},
		"ALG-12_deletion_goes_back": {Deleting, func(o byte) es.Decide[State] { return decideDeletionFailed(v1, fixed(o), "p") }, "deletion_failed", Published},
	} {
		t.Run(name, func(t *testing.T) {
			mine, other := byte(31), byte(32) // op1, op2
			if c.status == Deleting {
				mine, other = other, mine
			}
			s := fold(inState(c.status)...)
			events, err := c.step(mine)(s)
			if got := outcome(events, err); got != c.then {
				t.Fatalf("came to %s", got)
			}
			s = fold(append(inState(c.status), events...)...)
			if v, ok := s.Version(v1); ok && v.Status != c.left || !ok && c.left != Deleted {
				t.Errorf("left %s", v.Status)
			}
			if got := outcome(c.step(mine)(s)); got != "nothing" {
				t.Errorf("a second time: %s", got)
			}
			if got := outcome(c.step(other)(fold(inState(c.status)...))); got != "nothing" {
				t.Errorf("of another operation: %s", got)
			}
			for _, status := range []Status{Creating, CreateFailed, Created, Publishing, PublishFailed, Published, Deleting, Deleted} {
				if status == c.status {
					continue
				}
				if got := outcome(c.step(mine)(fold(inState(status)...))); got != "nothing" {
					t.Errorf("in %s: %s", status, got)
				}
			}
		})
	}
	t.Run("ALG-05_published_as_asked_and_by_whom", func(t *testing.T) {
		events, _ := decidePublished(v1, op1, alice, Files{"f", 1, 2})(fold(inState(Publishing)...))
		ev := events[0].(VersionPublished)
		if ev.Visibility != access.Group || ev.By != alice || ev.Fingerprint != FingerprintOf(settings(), "f") || *ev.Files != (Files{"f", 1, 2}) {
			t.Errorf("%+v", ev)
		}
	})
}

func TestRetry(t *testing.T) {
	failedDeletion := slices.Clip(append(inState(Deleting), DeletionFailed{OfVersion{v1}, "p", Published}))
	for name, c := range map[string]struct {
		given   []es.Event
		by      access.Grants
		op      byte
		purpose Purpose
		then    string
	}{
		"ALG-11_preparation":                           {inState(CreateFailed), people[alice], 31, Prepare, "preparation_retried"},
		"ALG-11_publication":                           {inState(PublishFailed), people[alice], 31, Publish, "publication_retried"},
		"ALG-11_deletion":                              {failedDeletion, people[alice], 32, Remove, "deletion_retried"},
		"ALG-11_by_a_tenant_admin":                     {inState(PublishFailed), people[admin], 31, Publish, "publication_retried"},
		"ALG-12_not_by_others":                         {inState(PublishFailed), people[bob], 31, Publish, "NOT_FOUND"},
		"TEN-02_not_by_an_auditor":                     {inState(PublishFailed), people[audra], 31, Publish, "FORBIDDEN"},
		"ALG-11_begun_already":                         {inState(Publishing), people[alice], 31, Publish, "nothing"},
		"ALG-11_not_by_an_older_operation":             {inState(PublishFailed), people[alice], 32, Publish, "INVALID_STATE"},
		"ALG-11_not_what_succeeded":                    {inState(Published), people[alice], 31, Publish, "INVALID_STATE"},
		"ALG-11_not_what_is_gone":                      {inState(Deleted), people[alice], 31, Publish, "INVALID_STATE"},
		"ALG-11_not_for_another_purpose":               {inState(PublishFailed), people[alice], 31, Prepare, "INVALID_STATE"},
		"ALG-11_not_after_the_source_was_changed":      {append(inState(PublishFailed), VersionEdited{OfVersion: OfVersion{v1}, From: PublishFailed, Set: Fields{Source: patch.To(Source{Command: "ls"})}}), people[alice], 31, Publish, "INVALID_STATE"},
		"ALG-11_but_after_another_edit":                {append(inState(PublishFailed), VersionEdited{OfVersion: OfVersion{v1}, From: PublishFailed, Set: Fields{Description: patch.To("x")}}), people[alice], 31, Publish, "publication_retried"},
		"ALG-08_not_a_deletion_of_what_came_into_use":  {append(failedDeletion, UseRegistered{OfVersion{v1}, Use{es.Ref{Kind: "workflow", ID: op1}, "w"}}), people[alice], 32, Remove, "IN_USE"},
		"OPS-02_not_a_publication_that_was_taken_back": {append(inState(Publishing), PublicationCancelled{OfVersion{v1}}), people[alice], 31, Publish, "INVALID_STATE"},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := decideRetry(c.by, v1, fixed(c.op), 3, c.purpose)(fold(c.given...))
			if got := outcome(events, err); got != c.then {
				t.Fatalf("came to %s, want %s", got, c.then)
			}
			if len(events) == 1 {
				if v, _ := fold(slices.Concat(c.given, events)...).Version(v1); v.Status != c.purpose.during() || v.Problem != "" {
					t.Errorf("left %+v", v)
				}
			}
		})
	}
}
