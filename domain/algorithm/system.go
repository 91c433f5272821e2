package algorithm

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// The methods of this file are for the platform itself: processes that carry
// on what a person began, and other features through domain/flows.

// Step is the end of an operation on a version's files.
type Step struct {
	VersionRef
	Operation uuid.UUID
	By        uuid.UUID // who began it
	Files     Files     // of a publication
	Problem   string    // of a failure
}

// Succeeded carries a version on after its operation succeeded.
func (h *Handler) Succeeded(ctx context.Context, cmd es.Command, p Purpose, st Step) error {
	switch p {
	case Prepare:
		return h.step(ctx, cmd, st, decidePrepared(st.Version, st.Operation))
	case Publish:
		return h.step(ctx, cmd, st, decidePublished(st.Version, st.Operation, st.By, st.Files))
	default:
		return h.step(ctx, cmd, st, decideRemoved(st.Version, st.Operation))
	}
}

// Failed carries a version on after its operation failed.
func (h *Handler) Failed(ctx context.Context, cmd es.Command, p Purpose, st Step) error {
	switch p {
	case Prepare:
		return h.step(ctx, cmd, st, decidePreparationFailed(st.Version, st.Operation, st.Problem))
	case Publish:
		return h.step(ctx, cmd, st, decidePublicationFailed(st.Version, st.Operation, st.Problem))
	default:
		return h.step(ctx, cmd, st, decideDeletionFailed(st.Version, st.Operation, st.Problem))
	}
}

// Cancelled carries a version on after its operation was cancelled and cleaned up.
func (h *Handler) Cancelled(ctx context.Context, cmd es.Command, p Purpose, st Step) error {
	if p == Publish {
		return h.step(ctx, cmd, st, decidePublicationCancelled(st.Version, st.Operation))
	}
	return h.Failed(ctx, cmd, p, st)
}

// Retry moves a version back to where its operation goes on (ALG-11). It is
// asked for by a person, through operations, and runs inside their command;
// after is the operation's attempt that is to be followed by another one.
func (h *Handler) Retry(ctx context.Context, cmd es.Command, p Purpose, ref VersionRef, operation uuid.UUID, after int) error {
	g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
	if err != nil {
		return err
	}
	return h.step(ctx, cmd, Step{VersionRef: ref}, decideRetry(g, ref.Version, operation, after, p))
}

// MayRetry tells whether Retry would be carried out for somebody, on the version
// as it stands.
func (h *Handler) MayRetry(ctx context.Context, g access.Grants, p Purpose, ref VersionRef, operation uuid.UUID, after int) error {
	l, err := es.Load(ctx, h.Runtime, Aggregate, g.Tenant, ref.Algorithm)
	if err != nil {
		return err
	}
	_, err = decideRetry(g, ref.Version, operation, after, p)(l.State)
	return err
}

func (h *Handler) step(ctx context.Context, cmd es.Command, st Step, decide es.Decide[State]) error {
	out, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, st.Algorithm, decide)
	if err != nil {
		return err
	}
	return h.releaseName(ctx, cmd, out.State)
}

// ReleaseName frees the name of a deleted algorithm.
func (h *Handler) ReleaseName(ctx context.Context, cmd es.Command, id uuid.UUID, name string, project uuid.UUID) error {
	return h.Runtime.Release(ctx, cmd, nameOf(name, project), Aggregate.Stream(cmd.Tenant, id))
}

// RegisterUse notes that something needs a published version; from then on it
// can't be deleted (ALG-08). The grants are those of the one who makes the use.
func (h *Handler) RegisterUse(ctx context.Context, cmd es.Command, g access.Grants, ref VersionRef, use Use) error {
	_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, ref.Algorithm, decideUse(g, ref, use))
	return err
}

// ReleaseUse takes the note back.
func (h *Handler) ReleaseUse(ctx context.Context, cmd es.Command, ref VersionRef, by es.Ref) error {
	_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, ref.Algorithm, decideRelease(ref, by))
	return err
}
