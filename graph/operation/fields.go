package operation

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/fault"
	"tallyard/domain/operation"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
)

// Show is an operation of the read model, or as it was folded from the log.
func Show(s operation.State) *gqlmodel.Operation {
	m := &gqlmodel.Operation{
		ID: relay.Of(relay.Operation, s.ID), Kind: gqlmodel.OperationKind(s.Kind), State: gqlmodel.OperationState(s.Status),
		CancelRequested: s.CancelRequested, Attempt: int32(s.Attempt), //nolint:gosec // far below 2^31
		QueuedAt: s.Queued, StartedAt: moment(s.Started), EndedAt: moment(s.Ended), Folded: s,
	}
	if s.Failure != nil {
		m.Error = &gqlmodel.OperationError{Code: gqlmodel.ErrorCode(s.Failure.Code), Message: s.Failure.Message}
	}
	return m
}

// showPast is an operation as it was at a moment that is over.
func showPast(s operation.State) *gqlmodel.Operation {
	m := Show(s)
	m.Past = true
	return m
}

// showProgress is a running operation with how far it is.
func showProgress(s operation.State, p loader.Progress) *gqlmodel.Operation {
	m := Show(s)
	m.DoneBytes, m.TotalBytes, m.DoneFiles, m.TotalFiles = &p.DoneBytes, &p.TotalBytes, &p.DoneFiles, &p.TotalFiles
	return m
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// ByID is an operation that the viewer sees, by the loaders; nil for the nil id.
func (a *API) ByID(ctx context.Context, id uuid.UUID) (*gqlmodel.Operation, error) {
	if id == uuid.Nil {
		return nil, nil
	}
	s, err := loader.From(ctx).Operations.Load(ctx, id)
	if err != nil || s == nil {
		return nil, err
	}
	return Show(*s), nil
}

// DoneBytes tells how many bytes are done.
func (a *API) DoneBytes(ctx context.Context, obj *gqlmodel.Operation) (*int64, error) {
	return amount(ctx, obj, obj.DoneBytes, func(p loader.Progress) int64 { return p.DoneBytes }, func(s operation.State) (int64, bool) {
		return s.Amount.DoneBytes, s.Status.Ended()
	})
}

// TotalBytes tells how many bytes there are. One that failed before they were
// counted has none to tell.
func (a *API) TotalBytes(ctx context.Context, obj *gqlmodel.Operation) (*int64, error) {
	return amount(ctx, obj, obj.TotalBytes, func(p loader.Progress) int64 { return p.TotalBytes }, func(s operation.State) (int64, bool) {
		return s.Amount.TotalBytes, s.Status == operation.Succeeded || (s.Status.Ended() && s.Amount.TotalBytes > 0)
	})
}

// DoneFiles tells how many files are done.
func (a *API) DoneFiles(ctx context.Context, obj *gqlmodel.Operation) (*int64, error) {
	return amount(ctx, obj, obj.DoneFiles, func(p loader.Progress) int64 { return p.DoneFiles }, files)
}

// TotalFiles tells how many files there are.
func (a *API) TotalFiles(ctx context.Context, obj *gqlmodel.Operation) (*int64, error) {
	return amount(ctx, obj, obj.TotalFiles, func(p loader.Progress) int64 { return p.TotalFiles }, files)
}

func files(s operation.State) (int64, bool) { return s.Result.Files, s.Status == operation.Succeeded }

// amount is a number of an operation: what its object carries, what the newest
// sample of a running one says, or what its events left when it ended.
func amount(ctx context.Context, obj *gqlmodel.Operation, carried *int64, sample func(loader.Progress) int64, ended func(operation.State) (int64, bool)) (*int64, error) {
	if carried != nil {
		return carried, nil
	}
	if n, known := ended(obj.Folded); known {
		return &n, nil
	}
	if obj.Past || obj.Folded.Status != operation.Running {
		return nil, nil
	}
	p, err := loader.From(ctx).Progress.Load(ctx, obj.Folded.ID)
	if err != nil || p == nil {
		return nil, err
	}
	n := sample(*p)
	return &n, nil
}

// CanCancel tells whether the viewer may cancel an operation as it stands (OPS-03).
func (a *API) CanCancel(ctx context.Context, obj *gqlmodel.Operation) (bool, error) {
	s := obj.Folded
	cancellable := s.Status == operation.Queued ||
		(s.Status == operation.Running && !s.CancelRequested && s.Work.Kind.Undoable())
	return changes(ctx, obj, cancellable)
}

// CanRetry tells whether the viewer may retry an operation as it stands: what
// retryOperation would decide, on the operation and on what it was done for.
func (a *API) CanRetry(ctx context.Context, obj *gqlmodel.Operation) (bool, error) {
	v, err := authn.Must(ctx)
	if err != nil || obj.Past {
		return false, err
	}
	err = a.Handler.MayRetry(ctx, v.Grants, obj.Folded)
	if _, refused := fault.All(err); refused {
		return false, nil
	}
	return err == nil, err
}

func changes(ctx context.Context, obj *gqlmodel.Operation, possible bool) (bool, error) {
	v, err := authn.Must(ctx)
	return possible && !obj.Past && v.Grants.Changes(obj.Folded.Thing()), err
}

// HistoryOf is what happened to an operation.
func (a *API) HistoryOf(ctx context.Context, obj *gqlmodel.Operation, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	return a.History.Of(ctx, operation.Aggregate.Stream(obj.Folded.Tenant, obj.Folded.ID), first, after, nil)
}
