package command

import (
	"context"

	"tallyard/domain/es"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/problem"
)

// Answer finishes a command: its receipt, and its faults as user errors. The
// last error is one that the whole answer fails with.
func Answer[R any](ctx context.Context, g *Gateway, res es.Result[R], err error) (*gqlmodel.Receipt, []*gqlmodel.UserError, error) {
	userErrors, err := problem.UserErrors(err)
	if err != nil {
		return nil, nil, err
	}
	receipt, err := g.Receipt(ctx, Done{Command: res.Command, Position: res.Position, Events: res.Events, Replayed: res.Replayed})
	return receipt, userErrors, err
}

// Refuse hands faults that the input alone tells to the domain's record of
// refusals. An input that is not even well-formed is not kept under its
// idempotency key: mended, it may come with the same key.
func Refuse[R any](ctx context.Context, rt *es.Runtime, cmd es.Command, faults error) (es.Result[R], error) {
	cmd.Key = ""
	return es.Run(ctx, rt, cmd, func(context.Context, es.Command) (R, error) {
		var none R
		return none, faults
	})
}
