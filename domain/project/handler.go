package project

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/internal/naming"
)

// NameKind is the kind of the reservations of projects' names.
const NameKind = "project"

// Handler carries out the commands on projects.
type Handler struct {
	Runtime *es.Runtime
	Access  access.Source
	// Contents tells what keeps projects from being closed.
	Contents Contents
}

// Refs is what a command on one project answers from.
type Refs struct {
	Project uuid.UUID `json:"project"`
}

// Load gives a project as it stands in the log; a missing one does not Exist.
func (h *Handler) Load(ctx context.Context, tenant, id uuid.UUID) (State, error) {
	l, err := es.Load(ctx, h.Runtime, Aggregate, tenant, id)
	return l.State, err
}

// Exists tells whether the tenant has the project, and it is not closed.
func (h *Handler) Exists(ctx context.Context, tenant, id uuid.UUID) (bool, error) {
	s, err := h.Load(ctx, tenant, id)
	return s.Open(), err
}

// Find gives the id of the tenant's project with a name.
func (h *Handler) Find(ctx context.Context, tenant uuid.UUID, name string) (uuid.UUID, bool, error) {
	holder, ok, err := h.Runtime.Holder(ctx, tenant, reservation(name))
	if err != nil || !ok {
		return uuid.Nil, false, err
	}
	id, err := holder.UUID()
	return id, err == nil, err
}

// Create is `createProject`.
func (h *Handler) Create(ctx context.Context, cmd es.Command, in Create) (es.Result[Refs], error) {
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		if err := h.may(ctx, cmd, mustAdminister); err != nil {
			return Refs{}, err
		}
		in, err := in.clean()
		if err != nil {
			return Refs{}, err
		}
		id := cmd.NewIDs(1)[0]
		cmd.Project = id
		if err := h.Runtime.Reserve(ctx, cmd, reservation(in.Name), Aggregate.Stream(cmd.Tenant, id)); err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, create(in))
		return Refs{Project: id}, err
	})
}

// Update is `updateProject`.
func (h *Handler) Update(ctx context.Context, cmd es.Command, id uuid.UUID, in Update) (es.Result[Refs], error) {
	cmd.Subject, cmd.Project = es.Ref{Kind: Category, ID: id}, id
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		rule := func(g access.Grants) error { return mustChange(g, id) }
		if err := h.may(ctx, cmd, rule); err != nil {
			return Refs{}, err
		}
		old, err := h.Load(ctx, cmd.Tenant, id)
		if err != nil {
			return Refs{}, err
		}
		if !old.Exists() {
			return Refs{}, access.Missing()
		}
		in, err := in.clean()
		if err != nil {
			return Refs{}, err
		}
		execute := func() error {
			_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, update(in))
			return err
		}
		if !in.Name.Given {
			return Refs{Project: id}, execute()
		}
		return Refs{Project: id}, h.mover().To(ctx, cmd, Aggregate.Stream(cmd.Tenant, id), in.Name.Or(""), execute)
	})
}

func (h *Handler) mover() naming.Mover {
	return naming.Mover{
		Runtime: h.Runtime, Name: reservation,
		Current: func(ctx context.Context, stream es.StreamID) (string, error) {
			id, err := stream.UUID()
			if err != nil {
				return "", err
			}
			s, err := h.Load(ctx, stream.Tenant, id)
			return s.Name, err
		},
		Left: func(e es.Event) (string, bool) {
			if u, ok := e.(Updated); ok && u.Name != nil {
				return u.Name.From, true
			}
			return "", false
		},
	}
}

// Bearer tells the repair of names which ones projects bear.
func (h *Handler) Bearer() es.Bearer { return h.mover().Bearer("project.updated.v1") }

// may checks who acts against the log. Parts of the system act by the code that
// gave them the command.
func (h *Handler) may(ctx context.Context, cmd es.Command, rule func(access.Grants) error) error {
	if cmd.Actor.Kind == es.ActorSystem {
		return nil
	}
	g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
	if err != nil {
		return err
	}
	return rule(g)
}

func reservation(name string) es.Name { return es.Name{Kind: NameKind, Value: name} }
