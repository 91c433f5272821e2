package access

import (
	"slices"

	"tallyard/domain/fault"
)

// Permission is a named right beside the roles, off until a tenant admin grants
// it (TEN-04).
type Permission string

// Permissions.
const (
	// PublishModels lets somebody publish models, where the tenant's switch for
	// that is on.
	PublishModels Permission = "PUBLISH_MODELS"
	// SubmitUrgentJobs lets somebody put urgent jobs into a queue.
	SubmitUrgentJobs Permission = "SUBMIT_URGENT_JOBS"
)

// Valid tells whether the permission exists.
func (p Permission) Valid() bool { return p == PublishModels || p == SubmitUrgentJobs }

// BusinessScope is which part of the platform somebody works with (TEN-08).
type BusinessScope string

// Business scopes. Who was never given one works with everything.
const (
	Training             BusinessScope = "TRAINING"
	Inference            BusinessScope = "INFERENCE"
	TrainingAndInference BusinessScope = "TRAINING_AND_INFERENCE"
)

// Valid tells whether the scope exists.
func (s BusinessScope) Valid() bool {
	return s == Training || s == Inference || s == TrainingAndInference
}

// May tells whether the user has a permission. Who changes nothing has none.
func (g Grants) May(p Permission) bool { return g.Writes() && slices.Contains(g.Permissions, p) }

// Trains tells whether training is in the user's business scope.
func (g Grants) Trains() bool { return g.Active && g.Scope != Inference }

// Infers tells whether inference is in the user's business scope.
func (g Grants) Infers() bool { return g.Active && g.Scope != Training }

// MustTrain refuses who has no training in their business scope. It comes after
// the question of what they see: it tells nothing about any thing.
func MustTrain(g Grants) error {
	if g.Active && !g.Trains() {
		return fault.New(fault.Forbidden, fault.CodeScopeNotEnabled,
			"Training is not in your business scope; ask a tenant admin to set it.")
	}
	return nil
}

// MustHave refuses who lacks a permission.
func MustHave(g Grants, p Permission) error {
	switch {
	case !g.Active:
		return Missing()
	case !g.Writes():
		return ReadOnly()
	case !g.May(p):
		return fault.New(fault.Forbidden, fault.CodeForbidden,
			"This needs the permission "+string(p)+"; ask a tenant admin to grant it.").With("permission", string(p))
	}
	return nil
}
