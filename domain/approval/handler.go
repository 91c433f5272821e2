package approval

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Subjects tells what requests of a kind are about, as it stands now.
type Subjects interface {
	// Digest is the digest that a request made now would carry; empty when the
	// thing is gone or does not wait for the request.
	Digest(ctx context.Context, tenant uuid.UUID, request uuid.UUID, of Subject) (string, error)
}

// Admins tells about the admins of a tenant.
type Admins interface {
	// OnlyAdmin tells whether the user is the only admin of the tenant.
	OnlyAdmin(ctx context.Context, tenant, user uuid.UUID) (bool, error)
}

// Settings tells how long requests wait.
type Settings interface {
	ApprovalExpiry(ctx context.Context, tenant uuid.UUID) (time.Duration, error)
}

// Handler carries out the commands on requests.
type Handler struct {
	Runtime  *es.Runtime
	Access   access.Source
	Admins   Admins
	Settings Settings
	Subjects Subjects
}

// Refs is what a command on one request answers from.
type Refs struct {
	Approval uuid.UUID `json:"approval"`
}

// New is a request to be made.
type New struct {
	ID        uuid.UUID
	Subject   Subject
	Requester uuid.UUID
	Project   uuid.UUID
}

// Load gives a request as it stands in the log; a missing one is no error, its
// state does not Exist.
func (h *Handler) Load(ctx context.Context, tenant, id uuid.UUID) (State, error) {
	l, err := es.Load(ctx, h.Runtime, Aggregate, tenant, id)
	return l.State, err
}

// Open makes a request for a flow, under an id that comes from the event that
// asked for it, so that opening twice makes one.
func (h *Handler) Open(ctx context.Context, cmd es.Command, n New) error {
	wait, err := h.Settings.ApprovalExpiry(ctx, cmd.Tenant)
	if err != nil {
		return err
	}
	_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, n.ID, open(Requested{
		Subject: n.Subject, Requester: n.Requester, Project: n.Project, Expires: h.Runtime.Now().Add(wait),
	}))
	return err
}

// Lapse ends a request for a flow, when what it was for is gone.
func (h *Handler) Lapse(ctx context.Context, cmd es.Command, id uuid.UUID) error {
	_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, lapse)
	return err
}

// Expire ends a request whose time has come; any other is left alone (APR-01).
func (h *Handler) Expire(ctx context.Context, cmd es.Command, id uuid.UUID) error {
	_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, expire(h.Runtime.Now()))
	return err
}

// Approve is `approveRequest`.
func (h *Handler) Approve(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Result[Refs], error) {
	return h.decide(ctx, cmd, id, approve)
}

// Reject is `rejectRequest`; the command's reason is what the requester is told.
func (h *Handler) Reject(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Result[Refs], error) {
	return h.decide(ctx, cmd, id, reject)
}

func (h *Handler) decide(ctx context.Context, cmd es.Command, id uuid.UUID, with func(access.Grants, facts) es.Decide[State]) (es.Result[Refs], error) {
	return h.run(ctx, cmd, id, func(ctx context.Context, cmd es.Command, g access.Grants, s State) (es.Decide[State], error) {
		f := facts{now: h.Runtime.Now()}
		if !s.Awaits(g) {
			// Refused below, with or without the facts; but who asks for their own
			// is told whether anybody else could.
			var err error
			if s.Requester == g.User && g.Admin() {
				f.alone, err = h.Admins.OnlyAdmin(ctx, cmd.Tenant, g.User)
			}
			return with(g, f), err
		}
		var err error
		f.current, err = h.Subjects.Digest(ctx, cmd.Tenant, id, s.Subject)
		return with(g, f), err
	})
}

// Withdraw is `withdrawRequest`.
func (h *Handler) Withdraw(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Result[Refs], error) {
	return h.run(ctx, cmd, id, func(_ context.Context, _ es.Command, g access.Grants, _ State) (es.Decide[State], error) {
		return withdraw(g), nil
	})
}

func (h *Handler) run(ctx context.Context, cmd es.Command, id uuid.UUID,
	choose func(context.Context, es.Command, access.Grants, State) (es.Decide[State], error),
) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		if err != nil {
			return Refs{}, err
		}
		if _, done, err := es.Carried(ctx, h.Runtime, cmd, Aggregate, id); err != nil || done {
			// The subject may have moved on since, because of this very decision.
			return Refs{Approval: id}, err
		}
		s, err := h.Load(ctx, cmd.Tenant, id)
		if err != nil {
			return Refs{}, err
		}
		cmd.In(s.Project)
		decide, err := choose(ctx, cmd, g, s)
		if err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, decide)
		return Refs{Approval: id}, err
	})
}
