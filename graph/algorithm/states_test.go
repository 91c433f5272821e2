package algorithm_test

import (
	"slices"
	"testing"

	"tallyard/domain/algorithm"
	"tallyard/graph/gqlmodel"
)

// The schema's states are a list of their own; a state that is missing there
// would fail a whole answer.
func TestStates(t *testing.T) {
	domain := []algorithm.Status{
		algorithm.Creating, algorithm.CreateFailed, algorithm.Created, algorithm.ApprovalPending, algorithm.Publishing,
		algorithm.PublishFailed, algorithm.Published, algorithm.Deleting, algorithm.Deleted,
	}
	t.Run("ALG-04_the_schema_has_the_states_of_the_domain_and_no_others", func(t *testing.T) {
		for _, s := range domain {
			if !gqlmodel.AlgorithmVersionState(s).IsValid() {
				t.Errorf("the schema has no %s", s)
			}
		}
		for _, s := range gqlmodel.AllAlgorithmVersionState {
			if !slices.Contains(domain, algorithm.Status(s)) {
				t.Errorf("the domain has no %s", s)
			}
		}
	})
	t.Run("ALG-04_what_an_operation_carries_is_passed_through", func(t *testing.T) {
		passed := []algorithm.Status{algorithm.Creating, algorithm.Publishing, algorithm.Deleting}
		for _, s := range domain {
			if s.Transitional() != slices.Contains(passed, s) {
				t.Errorf("%s: transitional %v", s, s.Transitional())
			}
		}
	})
}
