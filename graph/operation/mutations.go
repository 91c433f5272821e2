package operation

import (
	"context"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/operation"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/problem"
	"tallyard/graph/relay"
)

// dismissed are the events of dismissals, for the read models that a receipt waits for.
var dismissed = []string{"operation.cancelled.v1", "operation.dismissed.v1"}

// Retry is retryOperation.
func (a *API) Retry(ctx context.Context, in gqlmodel.RetryOperationInput) (*gqlmodel.RetryOperationPayload, error) {
	r, err := a.carry(ctx, in.ID, in.IdempotencyKey, in.Reason, a.Handler.Retry)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.RetryOperationPayload{Operation: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// Cancel is cancelOperation.
func (a *API) Cancel(ctx context.Context, in gqlmodel.CancelOperationInput) (*gqlmodel.CancelOperationPayload, error) {
	r, err := a.carry(ctx, in.ID, in.IdempotencyKey, in.Reason, a.Handler.Cancel)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.CancelOperationPayload{Operation: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// carry carries out a command on one operation and gives it as the command left
// it, so that a repeated key gives an equal answer.
func (a *API) carry(ctx context.Context, text string, key, reason graphql.Omittable[*string],
	do func(context.Context, es.Command, uuid.UUID) (es.Result[operation.Refs], error),
) (command.Answered[*gqlmodel.Operation], error) {
	var faults fault.List
	id, bad := relay.Expect(relay.Operation, text, "id")
	faults.Add(bad)
	return command.Carry(ctx, a.Commands, a.Runtime, command.Options{Key: key.Value(), Reason: reason.Value()}, faults,
		func(ctx context.Context, cmd es.Command) (es.Result[operation.Refs], error) {
			return do(ctx, cmd, id.UUID)
		},
		func(ctx context.Context, res es.Result[operation.Refs]) (*gqlmodel.Operation, error) {
			return a.left(ctx, res.Refs.Operation, res.Position)
		})
}

// left is an operation as a command left it.
func (a *API) left(ctx context.Context, id uuid.UUID, p es.Position) (*gqlmodel.Operation, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	s, err := a.at(ctx, v.Tenant, id, p)
	if err != nil || !s.Exists() || !v.Grants.Sees(s.Thing()) {
		return nil, err
	}
	return Show(s), nil
}

// Dismiss is dismissOperations: every item is a command of its own.
func (a *API) Dismiss(ctx context.Context, in gqlmodel.DismissOperationsInput) (*gqlmodel.DismissOperationsPayload, error) {
	out := &gqlmodel.DismissOperationsPayload{Results: []*gqlmodel.DismissOperationResult{}}
	cmd, err := a.Commands.Begin(ctx, command.Options{Key: in.IdempotencyKey.Value()})
	if cmd.ID == uuid.Nil {
		return nil, err
	}
	if err != nil {
		res, err := command.Refuse[operation.Refs](ctx, a.Runtime, cmd, err)
		out.Receipt, out.UserErrors, err = command.Answer(ctx, a.Commands, res, err)
		return out, err
	}
	gate, err := command.Gate(ctx, a.Runtime, cmd, func() error { return command.BatchSize(len(in.Ids), "ids") })
	if err != nil {
		out.Receipt, out.UserErrors, err = command.Answer(ctx, a.Commands, gate, err)
		return out, err
	}
	ids := make([]uuid.UUID, len(in.Ids))
	for i, text := range in.Ids {
		// What can't be read becomes the nil id, which nothing has: it is
		// answered, and recorded, like any that does not exist.
		id, _ := relay.Expect(relay.Operation, text)
		ids[i] = id.UUID
	}
	res, err := a.Handler.Dismiss(ctx, cmd, ids)
	if err != nil {
		return nil, err
	}
	for i, item := range res.Items {
		r, err := a.dismissedItem(ctx, in.Ids[i], i, item)
		if err != nil {
			return nil, err
		}
		out.Results = append(out.Results, r)
	}
	out.UserErrors = []*gqlmodel.UserError{}
	out.Receipt, err = a.Commands.Receipt(ctx, command.Done{Command: gate.Command, Position: res.Position, Events: dismissed, Replayed: res.Replayed})
	return out, err
}

func (a *API) dismissedItem(ctx context.Context, id string, i int, item operation.DismissItem) (*gqlmodel.DismissOperationResult, error) {
	r := &gqlmodel.DismissOperationResult{ID: id}
	var err error
	if item.Err == nil {
		if r.Operation, err = a.left(ctx, item.ID, item.Position); err != nil {
			return nil, err
		}
	}
	if r.UserErrors, err = problem.UserErrors(item.Err); err != nil {
		return nil, err
	}
	for _, e := range r.UserErrors {
		e.Field = []string{"ids", strconv.Itoa(i)}
	}
	return r, nil
}
