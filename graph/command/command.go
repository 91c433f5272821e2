// Package command is the way from a mutation to the domain and back: who asks,
// with which key and input, and what receipt they get.
package command

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/text"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	"tallyard/graph/transport"
	"tallyard/projections/runner"
)

// Origins keeps from where requests came, apart from the events (AUD-06).
type Origins interface {
	Record(ctx context.Context, request, tenant uuid.UUID, address, userAgent string, at time.Time) error
}

// Waiter waits for the read models.
type Waiter interface {
	WaitFor(ctx context.Context, p es.Position, projections ...string) error
	ProjectionsFor(events ...string) []string
}

// Gateway makes commands of mutations and receipts of results.
type Gateway struct {
	IDs     es.IDs
	Clock   es.Clock
	Origins Origins
	Waiter  Waiter
	Sealer  *relay.Sealer
	// Projections are the read models that a query with atLeast waits for.
	Projections []string
}

// Options of a mutation's input that every command has.
type Options struct {
	Key    *string
	Reason *string
	// RequireReason: the rules want a reason for this command.
	RequireReason bool
}

// Begin makes the command of the mutation that is being resolved.
func (g *Gateway) Begin(ctx context.Context, o Options) (es.Command, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return es.Command{}, err
	}
	field := graphql.GetFieldContext(ctx).Field
	cmd := es.Command{ID: g.IDs.New(), Action: field.Name, Tenant: v.Tenant, Actor: v.Actor, Correlation: g.IDs.New(), NeedsReason: o.RequireReason}
	if cmd.Request, err = g.origin(ctx, v.Tenant); err != nil {
		return cmd, err
	}
	var faults fault.List
	reason := text.Reason
	if o.RequireReason {
		reason.Min = 1
	}
	clean, bad := reason.Clean(gqlmodel.Deref(o.Reason), "reason")
	faults.Add(bad)
	cmd.Reason = clean
	if o.Key != nil {
		cmd.Key, bad = text.Line(1, 200).Clean(*o.Key, "idempotencyKey")
		faults.Add(bad)
		cmd.Digest, err = digest(field.ArgumentMap(graphql.GetOperationContext(ctx).Variables))
		if err != nil {
			return cmd, err
		}
	}
	return cmd, faults.Err()
}

// origin records from where the request came, before anything is done, and
// gives its id.
func (g *Gateway) origin(ctx context.Context, tenant uuid.UUID) (string, error) {
	info := transport.RequestInfoFrom(ctx)
	id, err := uuid.Parse(info.RequestID)
	if err != nil {
		return "", fmt.Errorf("request without an id of ours: %w", err)
	}
	return id.String(), g.Origins.Record(ctx, id, tenant, info.RemoteAddr, info.UserAgent, g.Clock.Now())
}

// digest tells inputs apart; the key itself does not count.
func digest(args map[string]any) ([]byte, error) {
	if in, ok := args["input"].(map[string]any); ok {
		rest := make(map[string]any, len(in))
		for k, v := range in {
			if k != "idempotencyKey" {
				rest[k] = v
			}
		}
		args = map[string]any{"input": rest}
	}
	b, err := json.Marshal(args) // keys come sorted
	if err != nil {
		return nil, fmt.Errorf("digest of an input: %w", err)
	}
	sum := sha256.Sum256(b)
	return sum[:], nil
}

// Done is what a command's receipt is made of.
type Done struct {
	Command  uuid.UUID
	Position es.Position
	Events   []string
	Replayed bool
}

// Receipt waits until the read models that the command's events go to have
// them, at most two seconds, and makes the receipt.
func (g *Gateway) Receipt(ctx context.Context, d Done) (*gqlmodel.Receipt, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	r := &gqlmodel.Receipt{CommandID: relay.Of(relay.Command, d.Command), Replayed: d.Replayed}
	if d.Position == es.StartPosition {
		return r, nil
	}
	sealed := g.Sealer.Position(v.Tenant, d.Position)
	r.Position = &sealed
	// What is done is done: whatever keeps the read models away, the answer is
	// that they are behind, never an error that looks like a failure.
	r.Pending = g.Waiter.WaitFor(ctx, d.Position, g.Waiter.ProjectionsFor(d.Events...)...) != nil
	return r, nil
}

// AtLeast waits for a position that a query asks for.
func (g *Gateway) AtLeast(ctx context.Context, sealed *string) error {
	p, err := g.position(ctx, sealed)
	if err != nil || p == es.StartPosition {
		return err
	}
	err = g.Waiter.WaitFor(ctx, p, g.Projections...)
	if errors.Is(err, runner.ErrStale) {
		return stale()
	}
	return err
}

// Follower follows the log for subscriptions.
type Follower interface {
	// Reach waits until it has come to a position.
	Reach(ctx context.Context, p es.Position) error
}

// LiveAtLeast is AtLeast for subscriptions, which begin where the follower is.
func (g *Gateway) LiveAtLeast(ctx context.Context, sealed *string, f Follower) error {
	p, err := g.position(ctx, sealed)
	if err != nil || p == es.StartPosition {
		return err
	}
	if err := g.AtLeast(ctx, sealed); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, runner.WaitLimit)
	defer cancel()
	if err := f.Reach(limited, p); err != nil && ctx.Err() == nil {
		return stale()
	}
	return ctx.Err()
}

func stale() *fault.Fault {
	return fault.New(fault.Stale, fault.CodeStaleRead, "The read models do not have this position yet; ask again in a moment.")
}

// position opens the position that somebody asks for, if any.
func (g *Gateway) position(ctx context.Context, sealed *string) (es.Position, error) {
	if sealed == nil {
		return es.StartPosition, nil
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return es.StartPosition, err
	}
	p, bad := g.Sealer.OpenPosition(v.Tenant, *sealed)
	if bad != nil {
		return es.StartPosition, bad.At("atLeast")
	}
	return p, nil
}
