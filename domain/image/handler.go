package image

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// NameKind is the kind of the reservations of names.
const NameKind = "image"

// Projects tells which projects a tenant has.
type Projects interface {
	Exists(ctx context.Context, tenant, id uuid.UUID) (bool, error)
}

// Users tells what uses images, those that name one by its reference included.
type Users interface {
	Using(ctx context.Context, tenant uuid.UUID, image State) ([]Use, error)
}

// Handler carries out the commands on images.
type Handler struct {
	Runtime  *es.Runtime
	Access   access.Source
	Projects Projects
	Users    Users
}

// Refs is what a command on an image answers from.
type Refs struct {
	Image uuid.UUID `json:"image"`
}

// Load gives an image as it stands in the log.
func (h *Handler) Load(ctx context.Context, tenant, id uuid.UUID) (State, error) {
	l, err := es.Load(ctx, h.Runtime, Aggregate, tenant, id)
	return l.State, err
}

// Register is `registerImage`.
func (h *Handler) Register(ctx context.Context, cmd es.Command, in Register) (es.Result[Refs], error) {
	cmd.Project = in.Project
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		if err != nil {
			return Refs{}, err
		}
		if err := mayRegister(g, in); err != nil {
			return Refs{}, err
		}
		if in.Project != uuid.Nil && !g.In(in.Project) {
			there, err := h.Projects.Exists(ctx, cmd.Tenant, in.Project)
			if err != nil {
				return Refs{}, err
			}
			if !there {
				return Refs{}, access.Missing().At("projectId")
			}
		}
		in, err := in.clean()
		if err != nil {
			return Refs{}, err
		}
		id := cmd.NewIDs(1)[0]
		if err := h.Runtime.Reserve(ctx, cmd, reservation(in.Name), Aggregate.Stream(cmd.Tenant, id)); err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, register(Registered{Project: in.Project, Owner: g.User, Settings: in.Settings}))
		return Refs{Image: id}, err
	})
}

// Remove is `deleteImage`. The name is free for another one then.
func (h *Handler) Remove(ctx context.Context, cmd es.Command, id uuid.UUID, expected *int) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		if err != nil {
			return Refs{}, err
		}
		s, err := h.Load(ctx, cmd.Tenant, id)
		if err != nil {
			return Refs{}, err
		}
		cmd.In(s.Project)
		var uses []Use
		if s.Exists() {
			if uses, err = h.Users.Using(ctx, cmd.Tenant, s); err != nil {
				return Refs{}, err
			}
		}
		if _, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, remove(g, expected, uses)); err != nil {
			return Refs{}, err
		}
		return Refs{Image: id}, h.release(ctx, cmd, id)
	})
}

// release frees the name that the image had, read from the log, so that a
// command that is finished after a crash frees it, too.
func (h *Handler) release(ctx context.Context, cmd es.Command, id uuid.UUID) error {
	stream := Aggregate.Stream(cmd.Tenant, id)
	for env, err := range es.Events(ctx, h.Runtime, stream, 0) {
		if err != nil {
			return err
		}
		if e, ok := env.Event.(Removed); ok {
			return h.Runtime.Release(ctx, cmd, reservation(e.Name), stream)
		}
	}
	return nil
}

// Bearer tells the repair of names which ones images bear.
func (h *Handler) Bearer() es.Bearer {
	return es.Bearer{
		Bears: func(ctx context.Context, holder es.StreamID) (es.Name, bool, error) {
			id, err := holder.UUID()
			if err != nil {
				return es.Name{}, false, err
			}
			s, err := h.Load(ctx, holder.Tenant, id)
			return reservation(s.Name), s.Exists(), err
		},
		Left: map[string]func(es.Envelope) (es.Name, bool){
			"image.removed.v1": func(env es.Envelope) (es.Name, bool) {
				e, ok := env.Event.(Removed)
				return reservation(e.Name), ok
			},
		},
	}
}

func reservation(name string) es.Name { return es.Name{Kind: NameKind, Value: name} }
