// Package publication joins approvals and what is published: a thing that waits
// for an approval gets a request, and what is decided about the request carries
// the thing on.
package publication

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/algorithm"
	"tallyard/domain/approval"
	"tallyard/domain/es"
)

// Name is the process's name; its checkpoint hangs on it.
const Name = "publications"

// Publisher is what a kind of things does about its requests. Each method is
// called again after a crash and changes nothing the second time.
type Publisher interface {
	// Digest tells what is to be published as it stands; empty when the thing does
	// not wait for the request any more.
	Digest(ctx context.Context, tenant, request uuid.UUID, of es.Ref) (string, error)
	// Approved starts the publication (APR-04).
	Approved(ctx context.Context, cmd es.Command, request uuid.UUID, of es.Ref) error
	// NotApproved brings the thing back, with the words that its owner is told.
	NotApproved(ctx context.Context, cmd es.Command, request uuid.UUID, of es.Ref, problem string) error
}

// Flow is the process and what it gives commands to.
type Flow struct {
	Runtime   *es.Runtime
	Approvals *approval.Handler
	// Publishers are the things that can be published, by the kind of their references.
	Publishers map[string]Publisher
}

// Process is the flow as the driver runs it. A kind that joins adds the events
// by which its things begin to wait and stop waiting.
func (f *Flow) Process() es.Process {
	return es.Process{Name: Name, On: map[string]func(context.Context, es.Envelope) error{
		"algorithm.approval_requested.v1": f.onAlgorithmAsks,
		"algorithm.approval_ended.v1":     f.onAlgorithmEnds,
		"approval.approved.v1":            f.onApproved,
		"approval.rejected.v1":            f.onRejected,
		"approval.withdrawn.v1":           f.onWithdrawn,
		"approval.expired.v1":             f.onExpired,
	}}
}

func (f *Flow) onAlgorithmAsks(ctx context.Context, e es.Envelope) error {
	ev := e.Event.(algorithm.ApprovalRequested)
	return f.ask(ctx, e, ev.Request, ev.Digest)
}

func (f *Flow) onAlgorithmEnds(ctx context.Context, e es.Envelope) error {
	return f.forget(ctx, e, e.Event.(algorithm.ApprovalEnded).Request)
}

// ask makes the request that a thing waits for, in the name of who asked and
// with their reason.
func (f *Flow) ask(ctx context.Context, e es.Envelope, request uuid.UUID, digest string) error {
	cmd := es.Caused(Name, "requestApproval", e)
	cmd.Reason = e.Meta.Reason
	return f.Approvals.Open(ctx, cmd, approval.New{
		ID: request, Requester: e.Meta.Actor.User, Project: e.Meta.Project,
		Subject: approval.Subject{Ref: e.Subject(), Action: approval.Publish, Digest: digest},
	})
}

// forget ends the request of a thing that waits no more; one that was decided
// stays as it is.
func (f *Flow) forget(ctx context.Context, e es.Envelope, request uuid.UUID) error {
	return f.Approvals.Lapse(ctx, es.Caused(Name, "withdrawApproval", e), request)
}

func (f *Flow) onApproved(ctx context.Context, e es.Envelope) error {
	return f.decided(ctx, e, func(p Publisher, of es.Ref) error {
		return p.Approved(ctx, es.Caused(Name, "publish", e), e.Root().ID, of)
	})
}

func (f *Flow) onRejected(ctx context.Context, e es.Envelope) error {
	return f.back(ctx, e, "Publishing was rejected: "+e.Meta.Reason)
}

func (f *Flow) onWithdrawn(ctx context.Context, e es.Envelope) error { return f.back(ctx, e, "") }

func (f *Flow) onExpired(ctx context.Context, e es.Envelope) error {
	return f.back(ctx, e, "Nobody decided about publishing it in time; publish it again to ask once more.")
}

func (f *Flow) back(ctx context.Context, e es.Envelope, problem string) error {
	return f.decided(ctx, e, func(p Publisher, of es.Ref) error {
		return p.NotApproved(ctx, es.Caused(Name, "returnFromApproval", e), e.Root().ID, of, problem)
	})
}

func (f *Flow) decided(ctx context.Context, e es.Envelope, carryOn func(Publisher, es.Ref) error) error {
	s, err := f.Approvals.Load(ctx, e.Meta.Tenant, e.Root().ID)
	if err != nil {
		return err
	}
	p, ok := f.Publishers[s.Subject.Kind]
	if s.Subject.Action != approval.Publish || !ok {
		return fmt.Errorf("request %s is about %s of a %q, which no flow knows", s.ID, s.Subject.Action, s.Subject.Kind)
	}
	return carryOn(p, s.Subject.Ref)
}

// Digest implements approval.Subjects.
func (f *Flow) Digest(ctx context.Context, tenant, request uuid.UUID, of approval.Subject) (string, error) {
	p, ok := f.Publishers[of.Kind]
	if !ok {
		return "", fmt.Errorf("a request about a %q, which no flow knows", of.Kind)
	}
	return p.Digest(ctx, tenant, request, of.Ref)
}
