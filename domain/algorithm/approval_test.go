package algorithm

import (
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/patch"
)

// TestApproval holds ALG-05 with the setting on: what waits is published by the
// yes to its own request alone, and as it was asked for.
func TestApproval(t *testing.T) {
	waiting := fold(inState(ApprovalPending)...)
	ask := decidePublish(people[alice], PublishInput{VersionRef: VersionRef{Version: v1}, Visibility: access.Global}, publishing{id: op1, approval: true})
	back := append(inState(ApprovalPending), ApprovalEnded{OfVersion{v1}, op1, "Publishing was rejected: too early"})
	failed := append(inState(ApprovalPending),
		PublicationStarted{OfVersion{v1}, access.Global, op2, ApprovalPending}, PublicationFailed{OfVersion{v1}, "gone"})
	edited := append(failed, VersionEdited{OfVersion: OfVersion{v1}, From: PublishFailed, Set: Fields{Description: patch.To("other")}})
	for name, c := range map[string]struct {
		s      State
		decide es.Decide[State]
		want   string
	}{
		"ALG-05_asks":                                {fold(inState(Created)...), ask, "approval_requested"},
		"ALG-05_asks_after_a_failure":                {fold(inState(PublishFailed)...), ask, "approval_requested"},
		"ALG-05_asks_once":                           {waiting, ask, "INVALID_STATE"},
		"APR-02_asks_again_after_a_no":               {fold(back...), ask, "approval_requested"},
		"APR-04_yes":                                 {waiting, decideApproved(v1, op1, op2), "publication_started"},
		"APR-04_yes_twice":                           {fold(failed...), decideApproved(v1, op1, op2), "nothing"},
		"APR-05_yes_to_another_request":              {waiting, decideApproved(v1, v2, op2), "nothing"},
		"APR-05_yes_for_what_is_gone":                {fold(inState(Deleted)...), decideApproved(v1, op1, op2), "nothing"},
		"APR-01_no":                                  {waiting, decideNotApproved(v1, op1, "p"), "approval_ended"},
		"APR-01_no_to_another_request":               {waiting, decideNotApproved(v1, v2, "p"), "nothing"},
		"APR-04_retry_needs_no_second_yes":           {fold(failed...), decideRetry(people[alice], v1, op2, 1, Publish), "publication_retried"},
		"APR-05_retry_of_what_changed_since_the_yes": {fold(edited...), decideRetry(people[alice], v1, op2, 1, Publish), "INVALID_STATE"},
		"APR-05_another_publication_forgets_the_yes": {fold(failed...), decidePublish(people[alice], PublishInput{VersionRef: VersionRef{Version: v1}, Visibility: access.Group}, publishing{id: op1}), "publication_started"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(c.decide(c.s)); got != c.want {
				t.Errorf("came to %s, want %s", got, c.want)
			}
		})
	}
	if v, _ := fold(back...).Version(v1); v.Problem == "" || v.Status != Created || v.Wanted != "" {
		t.Errorf("after a no it is %+v", v)
	}
	if waiting.Awaited(v1, op1) == "" || waiting.Awaited(v1, v2) != "" || waiting.Awaited(uuid.New(), op1) != "" {
		t.Error("what is awaited is not told apart")
	}
	again := fold(append(failed, PublicationStarted{OfVersion{v1}, access.Group, op1, PublishFailed})...)
	if v, _ := again.Version(v1); v.Approval != nil {
		t.Error("a publication that needed no approval has one")
	}
}
