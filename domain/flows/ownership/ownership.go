// Package ownership moves what somebody owns to somebody else, across all
// features (TEN-05).
package ownership

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/text"
	"tallyard/domain/user"
)

// Mover gives one kind of things another owner.
type Mover interface {
	// Transfer moves a thing; one that is not the old owner's any more, or gone,
	// is left as it is, and false.
	Transfer(ctx context.Context, cmd es.Command, id, from, to uuid.UUID) (bool, error)
}

// Flow moves ownership.
type Flow struct {
	Runtime *es.Runtime
	Users   *user.Handler
	// Movers by the kinds of the things that they move.
	Movers map[string]Mover
}

// Refs is what a transfer answers from.
type Refs struct {
	From  uuid.UUID `json:"from"`
	To    uuid.UUID `json:"to"`
	Moved int       `json:"moved"`
}

// Transfer is `transferOwnership`: one command moves all that a user owns. What
// runs stays with who started it, and ends there. Each thing is moved by an
// event of its own; cut off half way, the command goes on when it comes again.
func (f *Flow) Transfer(ctx context.Context, cmd es.Command, from, to uuid.UUID) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: user.Category, ID: from}
	return es.Run(ctx, f.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		if err := f.may(ctx, cmd, from, to); err != nil {
			return Refs{}, err
		}
		rule := text.Reason
		rule.Min, rule.Says = 1, "the reason, it is kept in the audit"
		reason, bad := rule.Clean(cmd.Reason, "reason")
		if bad != nil {
			return Refs{}, bad
		}
		cmd.Reason = reason
		list, err := f.Users.Belongings.Of(ctx, cmd.Tenant, from)
		if err != nil {
			return Refs{}, err
		}
		refs := Refs{From: from, To: to}
		for _, b := range list {
			mover, ok := f.Movers[b.Ref.Kind]
			if b.Running || !ok {
				continue
			}
			one := cmd
			one.Project = b.Project
			moved, err := mover.Transfer(ctx, one, b.Ref.ID, from, to)
			if err != nil {
				return refs, err
			}
			if moved {
				refs.Moved++
			}
		}
		return refs, nil
	})
}

// may refuses everybody but tenant admins, and a new owner who could do nothing
// with what they get.
func (f *Flow) may(ctx context.Context, cmd es.Command, from, to uuid.UUID) error {
	if cmd.Actor.Kind != es.ActorSystem {
		g, err := f.Users.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		switch {
		case err != nil:
			return err
		case !g.Active:
			return access.Missing()
		case !g.Writes():
			return access.ReadOnly()
		case !g.Admin():
			return fault.New(fault.Forbidden, fault.CodeForbidden, "Only tenant admins may do this; ask one of them.")
		}
	}
	old, err := f.Users.Load(ctx, cmd.Tenant, from)
	if err != nil {
		return err
	}
	next, err := f.Users.Load(ctx, cmd.Tenant, to)
	if err != nil {
		return err
	}
	var faults fault.List
	if !old.Exists() {
		faults.Add(access.Missing().At("fromUserId"))
	}
	switch g := next.Grants(cmd.Tenant, to); {
	case !next.Exists():
		faults.Add(access.Missing().At("toUserId"))
	case from == to:
		faults.Add(fault.New(fault.Invalid, fault.CodeInvalidValue, "The things are theirs already; name somebody else.").At("toUserId"))
	case !g.Writes():
		faults.Add(fault.New(fault.State, fault.CodeInvalidState, "This person can change nothing, so that nothing can be theirs; name somebody else.").At("toUserId"))
	}
	return faults.Err()
}
