package approval

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/algorithm"
	"tallyard/domain/approval"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
)

// subjects maps the kinds of references to the names that the schema has for
// what a request can be about.
var subjects = map[string]gqlmodel.ApprovalSubjectKind{
	algorithm.VersionKind: gqlmodel.ApprovalSubjectKindAlgorithmVersion,
}

// kindOf is the kind of references that the schema's name stands for.
func kindOf(name gqlmodel.ApprovalSubjectKind) string {
	for kind, n := range subjects {
		if n == name {
			return kind
		}
	}
	return ""
}

// Show is a request of the read model, or as it was folded from the log.
func Show(s approval.State) *gqlmodel.Approval {
	return &gqlmodel.Approval{
		ID: relay.Of(relay.Approval, s.ID), Action: gqlmodel.ApprovalAction(s.Subject.Action), SubjectKind: subjects[s.Subject.Kind],
		Reason: words(s.Reason), State: gqlmodel.ApprovalState(s.Status), RequestedAt: s.Requested, ExpiresAt: s.Expires,
		EndedAt: moment(s.Ended), Answer: words(s.Answer), Folded: s,
	}
}

// showPast is a request as it was at a moment that is over.
func showPast(s approval.State) *gqlmodel.Approval {
	m := Show(s)
	m.Past = true
	return m
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func words(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// ByID is a request that the viewer sees, by the loaders; nil for the nil id.
func (a *API) ByID(ctx context.Context, id uuid.UUID) (*gqlmodel.Approval, error) {
	if id == uuid.Nil {
		return nil, nil
	}
	s, err := loader.From(ctx).Approvals.Load(ctx, id)
	if err != nil || s == nil {
		return nil, err
	}
	return Show(*s), nil
}

// Of is the request that a version of an algorithm waits or waited for.
func (a *API) Of(ctx context.Context, obj *gqlmodel.AlgorithmVersion) (*gqlmodel.Approval, error) {
	if obj.Row.Approval == nil {
		return nil, nil
	}
	return a.ByID(ctx, obj.Row.Approval.Request)
}

// CanDecide tells whether the viewer may approve or reject a request as it stands.
func (a *API) CanDecide(ctx context.Context, obj *gqlmodel.Approval) (bool, error) {
	v, err := authn.Must(ctx)
	return err == nil && !obj.Past && obj.Folded.Awaits(v.Grants), err
}

// CanWithdraw tells whether the viewer may withdraw a request as it stands.
func (a *API) CanWithdraw(ctx context.Context, obj *gqlmodel.Approval) (bool, error) {
	v, err := authn.Must(ctx)
	return err == nil && !obj.Past && obj.Folded.Status == approval.Pending && obj.Folded.Requester == v.User() && v.Grants.Writes(), err
}

// HistoryOf is what happened to a request.
func (a *API) HistoryOf(ctx context.Context, obj *gqlmodel.Approval, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	return a.History.Of(ctx, approval.Aggregate.Stream(obj.Folded.Tenant, obj.Folded.ID), first, after, nil)
}
