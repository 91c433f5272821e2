package tenant

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/internal/naming"
)

// NameKind is the kind of the reservations of tenants' names.
const NameKind = "tenant"

// Handler carries out the commands on tenants.
type Handler struct {
	Runtime *es.Runtime
	Access  access.Source
}

// Refs is what a command on one tenant answers from.
type Refs struct {
	Tenant uuid.UUID `json:"tenant"`
}

// Load gives a tenant as it stands in the log; a missing one does not Exist.
func (h *Handler) Load(ctx context.Context, id uuid.UUID) (State, error) {
	l, err := es.Load(ctx, h.Runtime, Aggregate, es.PlatformTenant, id)
	return l.State, err
}

// Find gives the id of the tenant with a name.
func (h *Handler) Find(ctx context.Context, name string) (uuid.UUID, bool, error) {
	holder, ok, err := h.Runtime.Holder(ctx, es.PlatformTenant, reservation(name))
	if err != nil || !ok {
		return uuid.Nil, false, err
	}
	id, err := holder.UUID()
	return id, err == nil, err
}

// EverNamed tells whether a tenant ever had a name.
func (h *Handler) EverNamed(ctx context.Context, name string) (bool, error) {
	return h.Runtime.EverReserved(ctx, es.PlatformTenant, reservation(name))
}

// Create is `createTenant`.
func (h *Handler) Create(ctx context.Context, cmd es.Command, name string) (es.Result[Refs], error) {
	return h.CreateWith(ctx, cmd, name, func() error { return nil })
}

// CreateWith is Create for a tenant that more is made with; check tells what is
// wrong with that, before anything is done.
func (h *Handler) CreateWith(ctx context.Context, cmd es.Command, name string, check func() error) (es.Result[Refs], error) {
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		cmd, err := h.enter(ctx, cmd)
		if err != nil {
			return Refs{}, err
		}
		var faults fault.List
		name, bad := NameRule.Clean(name, "name")
		faults.Add(bad)
		if err := check(); err != nil {
			more, ok := fault.All(err)
			if !ok {
				return Refs{}, err
			}
			faults.Add(more...)
		}
		if err := faults.Err(); err != nil {
			return Refs{}, err
		}
		id := cmd.NewIDs(1)[0]
		if err := h.Runtime.Reserve(ctx, cmd, reservation(name), Aggregate.Stream(es.PlatformTenant, id)); err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, id, create(name))
		return Refs{Tenant: id}, err
	})
}

// Update is what an update of a tenant asks for; what is nil stays.
type Update struct {
	Name            *string
	ExpectedVersion *int
}

// Update is `updateTenant`.
func (h *Handler) Update(ctx context.Context, cmd es.Command, id uuid.UUID, in Update) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: id}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		cmd, err := h.enter(ctx, cmd)
		if err != nil {
			return Refs{}, err
		}
		old, err := h.Load(ctx, id)
		if err != nil {
			return Refs{}, err
		}
		decide, name, err := update(old, in)
		if err != nil {
			return Refs{}, err
		}
		execute := func() error {
			_, err := es.Execute(ctx, h.Runtime, cmd, Aggregate, id, decide)
			return err
		}
		if name == "" {
			return Refs{Tenant: id}, execute()
		}
		return Refs{Tenant: id}, h.mover().To(ctx, cmd, Aggregate.Stream(es.PlatformTenant, id), name, execute)
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
			s, err := h.Load(ctx, id)
			return s.Name, err
		},
		Left: func(e es.Event) (string, bool) {
			r, ok := e.(Renamed)
			return r.From, ok
		},
	}
}

// Bearer tells the repair of names which ones tenants bear.
func (h *Handler) Bearer() es.Bearer { return h.mover().Bearer("tenant.renamed.v1") }

// enter checks who acts and moves the command to the platform, where tenants live.
func (h *Handler) enter(ctx context.Context, cmd es.Command) (es.Command, error) {
	if cmd.Actor.Kind != es.ActorSystem {
		g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		if err != nil {
			return cmd, err
		}
		if err := mustOperate(g); err != nil {
			return cmd, err
		}
	}
	cmd.Tenant = es.PlatformTenant
	return cmd, nil
}

func reservation(name string) es.Name { return es.Name{Kind: NameKind, Value: name} }
