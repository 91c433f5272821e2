package user

import (
	"context"
	"errors"
	"io"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// NameKind is the kind of the reservations of login names.
const NameKind = "user"

// Projects tells which projects a tenant has.
type Projects interface {
	Exists(ctx context.Context, tenant, id uuid.UUID) (bool, error)
}

// Handler carries out the commands on users. It is the access.Source of all others.
type Handler struct {
	Runtime  *es.Runtime
	Projects Projects
	Keys     PersonKeys
	// Belongings tells what keeps users from being removed.
	Belongings Belongings
	// Random is the source of secrets and nonces: crypto/rand.Reader.
	Random io.Reader
}

// Refs is what a command on one user answers from.
type Refs struct {
	User uuid.UUID `json:"user"`
}

// Load gives a user as it stands in the log; a missing one does not Exist.
func (h *Handler) Load(ctx context.Context, tenant, id uuid.UUID) (State, error) {
	l, err := es.Load(ctx, h.Runtime, Aggregate, tenant, id)
	return l.State, err
}

// Grants implements access.Source, by the head of the user's stream.
func (h *Handler) Grants(ctx context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	s, err := h.Load(ctx, tenant, user)
	return s.Grants(tenant, user), err
}

// Find gives the id of the tenant's user with a login name.
func (h *Handler) Find(ctx context.Context, tenant uuid.UUID, login string) (uuid.UUID, bool, error) {
	holder, ok, err := h.Runtime.Holder(ctx, tenant, LoginName(login))
	if err != nil || !ok {
		return uuid.Nil, false, err
	}
	id, err := holder.UUID()
	return id, err == nil, err
}

// LoginName is the reservation of a login name; case does not count.
func LoginName(login string) es.Name { return es.Name{Kind: NameKind, Value: fold(login)} }

// Create is `createUser`. The personal data is sealed into the person's stream
// before there is a user: a user whom nobody can name never shows.
func (h *Handler) Create(ctx context.Context, cmd es.Command, in Person) (es.Result[Refs], error) {
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		if err := h.may(ctx, cmd, mustGovern); err != nil {
			return Refs{}, err
		}
		in, err := in.clean()
		if err != nil {
			return Refs{}, err
		}
		ids := cmd.NewIDs(2)
		id, person := ids[0], ids[1]
		if err := h.enrol(ctx, cmd, id, person, in); err != nil {
			return Refs{}, h.unmade(ctx, cmd, id, in, err)
		}
		return Refs{User: id}, nil
	})
}

// enrol takes the names, seals what the person is called and makes the user.
func (h *Handler) enrol(ctx context.Context, cmd es.Command, id, person uuid.UUID, in Person) error {
	if err := h.reserve(ctx, cmd, in.LoginName, id); err != nil {
		return err
	}
	if in.Outside != (Outside{}) {
		if err := h.Runtime.Reserve(ctx, cmd, in.Outside.name(), Aggregate.Stream(cmd.Tenant, id)); err != nil {
			return err
		}
	}
	if err := h.describe(ctx, cmd, id, person, in); err != nil {
		return err
	}
	_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, create(person))
	return err
}

// unmade frees the names of a user who is refused for good, so that others may
// have them at once. After a mishap they stay: the command may come again.
func (h *Handler) unmade(ctx context.Context, cmd es.Command, id uuid.UUID, in Person, refusal error) error {
	if _, refused := fault.All(refusal); !refused {
		return refusal
	}
	s, err := h.Load(ctx, cmd.Tenant, id)
	if err != nil {
		return err
	}
	if s.Exists() {
		return refusal
	}
	names := []es.Name{LoginName(in.LoginName)}
	if in.Outside != (Outside{}) {
		names = append(names, in.Outside.name())
	}
	for _, name := range names {
		if err := h.Runtime.ReleaseOwn(ctx, cmd, name, Aggregate.Stream(cmd.Tenant, id)); err != nil {
			return err
		}
	}
	return refusal
}

func (h *Handler) reserve(ctx context.Context, cmd es.Command, login string, id uuid.UUID) error {
	err := h.Runtime.Reserve(ctx, cmd, LoginName(login), Aggregate.Stream(cmd.Tenant, id))
	var f *fault.Fault
	if errors.As(err, &f) {
		return f.At("loginName")
	}
	return err
}

func (h *Handler) describe(ctx context.Context, cmd es.Command, id, person uuid.UUID, p Person) error {
	key, err := h.Keys.Create(ctx, cmd.Tenant, person)
	if err != nil {
		return err
	}
	sealed, err := seal(key, persons.Stream(cmd.Tenant, person), id, p, h.Random)
	if err != nil {
		return err
	}
	_, err = es.Execute(ctx, h.Runtime, cmd, persons, person, func(personState) ([]es.Event, error) {
		return []es.Event{sealed}, nil
	})
	return err
}

// GrantRole is `grantRole`.
func (h *Handler) GrantRole(ctx context.Context, cmd es.Command, id uuid.UUID, g Grant) (es.Result[Refs], error) {
	return h.changeRole(ctx, cmd, id, g, grant(g))
}

// RevokeRole is `revokeRole`.
func (h *Handler) RevokeRole(ctx context.Context, cmd es.Command, id uuid.UUID, g Grant) (es.Result[Refs], error) {
	return h.changeRole(ctx, cmd, id, g, revoke(g))
}

func (h *Handler) changeRole(ctx context.Context, cmd es.Command, id uuid.UUID, g Grant, decide es.Decide[State]) (es.Result[Refs], error) {
	cmd.Subject, cmd.Project = es.Ref{Kind: Category, ID: id}, g.Project
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		if err := g.check(); err != nil {
			return Refs{}, err
		}
		if err := h.may(ctx, cmd, func(by access.Grants) error { return mustGrant(by, g) }); err != nil {
			return Refs{}, err
		}
		reason, err := cleanReason(cmd.Reason)
		if err != nil {
			return Refs{}, err
		}
		cmd.Reason = reason
		if g.Role.OfProject() {
			ok, err := h.Projects.Exists(ctx, cmd.Tenant, g.Project)
			if err != nil {
				return Refs{}, err
			}
			if !ok {
				return Refs{}, access.Missing().At("projectId")
			}
		}
		return Refs{User: id}, h.change(ctx, cmd, id, decide)
	})
}

// Suspend is `suspendUser`.
func (h *Handler) Suspend(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Result[Refs], error) {
	return h.changeState(ctx, cmd, id, suspend)
}

// Reinstate is `reinstateUser`.
func (h *Handler) Reinstate(ctx context.Context, cmd es.Command, id uuid.UUID) (es.Result[Refs], error) {
	return h.changeState(ctx, cmd, id, reinstate)
}

func (h *Handler) changeState(ctx context.Context, cmd es.Command, id uuid.UUID, decide es.Decide[State]) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		if err := h.may(ctx, cmd, mustGovern); err != nil {
			return Refs{}, err
		}
		reason, err := cleanReason(cmd.Reason)
		if err != nil {
			return Refs{}, err
		}
		cmd.Reason = reason
		return Refs{User: id}, h.change(ctx, cmd, id, decide)
	})
}

// may checks who acts against the log. Parts of the system act by the code that
// gave them the command.
func (h *Handler) may(ctx context.Context, cmd es.Command, rule func(access.Grants) error) error {
	if cmd.Actor.Kind == es.ActorSystem {
		return nil
	}
	g, err := h.Grants(ctx, cmd.Tenant, cmd.Actor.User)
	if err != nil {
		return err
	}
	return rule(g)
}
