package command

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/gqlmodel"
)

// Answered is what the payload of a mutation is made of.
type Answered[N any] struct {
	Entity     N
	UserErrors []*gqlmodel.UserError
	Receipt    *gqlmodel.Receipt
}

// Carry carries out a mutation: its command, the domain's method, and the entity
// as the command left it. Faults are what the input alone told; with any of them
// the method is not asked, and the refusal goes on record all the same.
func Carry[R, N any](ctx context.Context, g *Gateway, rt *es.Runtime, o Options, faults fault.List,
	do func(context.Context, es.Command) (es.Result[R], error), show func(context.Context, es.Result[R]) (N, error),
) (Answered[N], error) {
	var out Answered[N]
	cmd, err := g.Begin(ctx, o)
	if cmd.ID == uuid.Nil {
		return out, err
	}
	res, err := carried(ctx, rt, cmd, err, faults, do)
	if err == nil {
		if out.Entity, err = show(ctx, res); err != nil {
			return out, err
		}
	}
	out.Receipt, out.UserErrors, err = Answer(ctx, g, res, err)
	return out, err
}

func carried[R any](ctx context.Context, rt *es.Runtime, cmd es.Command, begun error, faults fault.List, do func(context.Context, es.Command) (es.Result[R], error)) (es.Result[R], error) {
	if begun == nil && len(faults) == 0 {
		return do(ctx, cmd)
	}
	if more, ok := fault.All(begun); ok {
		begun = append(append(fault.List{}, more...), faults...)
	} else if begun == nil {
		begun = faults
	}
	return Refuse[R](ctx, rt, cmd, begun)
}

// Gate opens a batch. Every item is a command of its own under a key of its own;
// the gate holds the batch's key, so that another input with the same key does
// nothing at all, and the batch keeps its id when it is repeated. What check
// refuses is refused for the whole.
func Gate(ctx context.Context, rt *es.Runtime, cmd es.Command, check func() error) (es.Result[struct{}], error) {
	return es.Run(ctx, rt, cmd, func(context.Context, es.Command) (struct{}, error) { return struct{}{}, check() })
}

// MaxBatch is how many items a batch may have.
const MaxBatch = 100

// BatchSize refuses batches of no items and of too many.
func BatchSize(n int, field string) error {
	switch {
	case n == 0:
		return fault.New(fault.Invalid, fault.CodeRequired, "Name at least one item.").At(field)
	case n > MaxBatch:
		return fault.New(fault.Invalid, fault.CodeTooMany, fmt.Sprintf("Name at most %d items at once.", MaxBatch)).At(field)
	}
	return nil
}
