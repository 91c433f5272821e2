package operation

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// Subjects brings the thing that an operation is done for back into the state
// in which it waits for the operation, or refuses. It is called before the
// operation is queued again, with the user's command; calling it twice with the
// same command changes nothing more.
type Subjects interface {
	Retry(ctx context.Context, cmd es.Command, op State) error
	// MayRetry tells how Retry would decide for somebody, and changes nothing.
	MayRetry(ctx context.Context, g access.Grants, op State) error
}

// SubjectsByKind asks whoever knows the things that operations of a kind are
// done for.
type SubjectsByKind map[Kind]Subjects

// Retry implements Subjects.
func (s SubjectsByKind) Retry(ctx context.Context, cmd es.Command, op State) error {
	knows, err := s.of(op.Kind)
	if err != nil {
		return err
	}
	return knows.Retry(ctx, cmd, op)
}

// MayRetry implements Subjects.
func (s SubjectsByKind) MayRetry(ctx context.Context, g access.Grants, op State) error {
	knows, err := s.of(op.Kind)
	if err != nil {
		return err
	}
	return knows.MayRetry(ctx, g, op)
}

func (s SubjectsByKind) of(kind Kind) (Subjects, error) {
	knows, ok := s[kind]
	if !ok {
		return nil, fmt.Errorf("an operation of kind %q, which nobody knows the subjects of", kind)
	}
	return knows, nil
}

// Handler carries out the commands on operations.
type Handler struct {
	Runtime  *es.Runtime
	Access   access.Source
	Subjects Subjects
}

// Refs is what a command on one operation answers from.
type Refs struct {
	Operation uuid.UUID `json:"operation"`
}

// maxBatch bounds what one command may name (GEN-02's page size).
const maxBatch = 100

// Load gives an operation as it stands in the log; a missing one is no error,
// its state does not Exist.
func (h *Handler) Load(ctx context.Context, tenant, id uuid.UUID) (State, error) {
	l, err := es.Load(ctx, h.Runtime, Aggregate, tenant, id)
	return l.State, err
}

// Queue opens an operation for a command of another feature. The id comes from
// that command, so that queueing twice makes one operation.
func (h *Handler) Queue(ctx context.Context, cmd es.Command, id uuid.UUID, spec Spec) (es.Outcome[State], error) {
	return es.Execute(ctx, h.Runtime, cmd, Aggregate, id, queue(spec))
}

// Start is the worker's: QUEUED becomes RUNNING. Whatever else it is stays; the
// state tells.
func (h *Handler) Start(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Outcome[State], error) {
	return es.Execute(ctx, h.Runtime, cmd, Aggregate, id, start)
}

// Succeed is the worker's end of an attempt. When the operation still runs
// afterwards its cancellation was asked for: see [Handler.EndCancelled].
func (h *Handler) Succeed(ctx context.Context, cmd es.Command, id uuid.UUID, attempt int, result Result, amount Amount) (es.Outcome[State], error) {
	return es.Execute(ctx, h.Runtime, cmd, Aggregate, id, succeed(attempt, result, amount))
}

// Fail is the worker's other end of an attempt, with the same rule as [Handler.Succeed].
func (h *Handler) Fail(ctx context.Context, cmd es.Command, id uuid.UUID, attempt int, failure Failure, amount Amount) (es.Outcome[State], error) {
	return es.Execute(ctx, h.Runtime, cmd, Aggregate, id, fail(attempt, failure, amount))
}

// Abandon fails an operation even when its cancellation was asked for: the
// worker could not remove what it would leave behind.
func (h *Handler) Abandon(ctx context.Context, cmd es.Command, id uuid.UUID, attempt int, failure Failure, amount Amount) (es.Outcome[State], error) {
	return es.Execute(ctx, h.Runtime, cmd, Aggregate, id, abandon(attempt, failure, amount))
}

// EndCancelled is the worker's: the running operation is given up and nothing of it is left.
func (h *Handler) EndCancelled(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Outcome[State], error) {
	return es.Execute(ctx, h.Runtime, cmd, Aggregate, id, endCancelled)
}

// Withdraw ends an operation whose subject is gone and leaves nothing of it.
func (h *Handler) Withdraw(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Outcome[State], error) {
	return es.Execute(ctx, h.Runtime, cmd, Aggregate, id, withdraw)
}

// Requeue puts an operation that failed or was cancelled in line again; any
// other is left alone. A process that gives the order because of an event names
// the attempt that the new one follows, so that an order that is repeated late
// starts nothing; 0 stands for whichever was the last.
func (h *Handler) Requeue(ctx context.Context, cmd es.Command, id uuid.UUID, after int) (es.Outcome[State], error) {
	return es.Execute(ctx, h.Runtime, cmd, Aggregate, id, requeue(after))
}

// Cancel is `cancelOperation`.
func (h *Handler) Cancel(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.grants(ctx, cmd)
		if err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, inProject(cmd, cancel(g)))
		return Refs{Operation: id}, err
	})
}

// Retry is `retryOperation`: first the subject takes its waiting state again,
// or refuses, then the operation is put in line. Were the order the other way
// round, the worker could end before its subject waits for it.
func (h *Handler) Retry(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.grants(ctx, cmd)
		if err != nil {
			return Refs{}, err
		}
		s, done, err := h.retriedBy(ctx, cmd, id)
		if err != nil || done {
			return Refs{Operation: id}, err
		}
		cmd.In(s.Project)
		if err := mayRetry(g, s); err != nil {
			return Refs{}, err
		}
		if err := h.Subjects.Retry(ctx, cmd, s); err != nil {
			return Refs{}, err
		}
		_, err = h.Requeue(ctx, cmd, id, s.Attempt)
		return Refs{Operation: id}, err
	})
}

// MayRetry tells whether Retry would be carried out: it decides as that does, on
// the operation as it is given and on its subject as it stands in the log.
func (h *Handler) MayRetry(ctx context.Context, g access.Grants, s State) error {
	if err := mayRetry(g, s); err != nil {
		return err
	}
	return h.Subjects.MayRetry(ctx, g, s)
}

// retriedBy folds the operation and tells whether this very command put it in
// line already, before a crash; the state alone can't tell that.
func (h *Handler) retriedBy(ctx context.Context, cmd es.Command, id uuid.UUID) (State, bool, error) {
	var s State
	done := false
	for env, err := range es.Events(ctx, h.Runtime, Aggregate.Stream(cmd.Tenant, id), 0) {
		if err != nil {
			return s, false, err
		}
		s = evolve(s, env)
		done = done || env.Meta.Command == cmd.ID
	}
	return s, done, nil
}

// DismissItem is what became of one operation of a batch: Err holds faults, or is nil.
type DismissItem struct {
	ID  uuid.UUID
	Err error
	// Position is where its effects lie in the log.
	Position es.Position
}

// DismissResult is the answer to a batch.
type DismissResult struct {
	Items    []DismissItem // in the order asked
	Position es.Position
	Replayed bool // every item was carried out earlier with the same key
}

// Dismiss is `dismissOperations`: each item succeeds or fails on its own. An
// error that is no fault ends the batch; the same key goes on where it ended.
func (h *Handler) Dismiss(ctx context.Context, cmd es.Command, ids []uuid.UUID) (DismissResult, error) {
	if f := batchSize(len(ids)); f != nil {
		// Through Run, so that the refusal is recorded like any other.
		_, err := es.Run(ctx, h.Runtime, cmd, func(context.Context, es.Command) (Refs, error) { return Refs{}, f })
		return DismissResult{}, err
	}
	out := DismissResult{Items: make([]DismissItem, len(ids)), Replayed: true}
	for i, id := range ids {
		r, err := h.dismissOne(ctx, cmd.Item(i), id)
		if _, isFault := fault.All(err); err != nil && !isFault {
			return out, fmt.Errorf("dismiss item %d: %w", i, err)
		}
		out.Items[i] = DismissItem{ID: id, Err: err, Position: r.Position}
		out.Position = max(out.Position, r.Position)
		out.Replayed = out.Replayed && r.Replayed
	}
	return out, nil
}

func (h *Handler) dismissOne(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.grants(ctx, cmd)
		if err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, inProject(cmd, dismiss(g)))
		return Refs{Operation: id}, err
	})
}

// inProject is a decision that also tells the command the operation's project, so that
// what comes of it, a refusal too, is on record there.
func inProject(cmd es.Command, decide es.Decide[State]) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		cmd.In(s.Project)
		return decide(s)
	}
}

func batchSize(n int) *fault.Fault {
	switch {
	case n == 0:
		return fault.New(fault.Invalid, fault.CodeRequired, "Name at least one operation.").At("ids")
	case n > maxBatch:
		return fault.New(fault.Invalid, fault.CodeTooMany, fmt.Sprintf("Name at most %d operations at once.", maxBatch)).At("ids")
	}
	return nil
}

func (h *Handler) grants(ctx context.Context, cmd es.Command) (access.Grants, error) {
	return h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
}
