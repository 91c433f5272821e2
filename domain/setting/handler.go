package setting

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Projects tells which projects a tenant has.
type Projects interface {
	Exists(ctx context.Context, tenant, id uuid.UUID) (bool, error)
}

// Handler carries out the commands on settings, and answers others what holds.
type Handler struct {
	Runtime  *es.Runtime
	Access   access.Source
	Projects Projects
}

// Refs is what a command on settings answers from.
type Refs struct {
	Scope Scope     `json:"scope"`
	ID    uuid.UUID `json:"id"`
}

// Update is `updateSettings`.
func (h *Handler) Update(ctx context.Context, cmd es.Command, t Target, in Update) (es.Result[Refs], error) {
	cmd.Subject = es.Ref{Kind: Category, ID: t.ID}
	return es.Run(ctx, h.Runtime, cmd, func(ctx context.Context, cmd es.Command) (Refs, error) {
		if err := h.may(ctx, &cmd, t); err != nil {
			return Refs{}, err
		}
		reason, err := cleanReason(cmd.Reason)
		if err != nil {
			return Refs{}, err
		}
		cmd.Reason = reason
		if err := in.clean(t.Scope); err != nil {
			return Refs{}, err
		}
		_, err = es.Execute(ctx, h.Runtime, cmd, Aggregate, t.ID, update(t.Scope, in))
		return Refs(t), err
	})
}

// may checks who acts and what they act on, and moves a command on the platform
// to where its settings live.
func (h *Handler) may(ctx context.Context, cmd *es.Command, t Target) error {
	if cmd.Actor.Kind != es.ActorSystem {
		g, err := h.Access.Grants(ctx, cmd.Tenant, cmd.Actor.User)
		if err != nil {
			return err
		}
		if err := mustChange(g, t); err != nil {
			return err
		}
	}
	cmd.Tenant = home(cmd.Tenant, t)
	if t.Scope != Project {
		return nil
	}
	ok, err := h.Projects.Exists(ctx, cmd.Tenant, t.ID)
	if err == nil && !ok {
		return access.Missing()
	}
	cmd.In(t.ID)
	return err
}

// Levels are the settings that bear on a target, as they stand in the log. The
// tenant is the one that the target is or lies in.
func (h *Handler) Levels(ctx context.Context, tenant uuid.UUID, t Target) (Levels, error) {
	return levels(tenant, t, func(in, id uuid.UUID) (State, error) {
		l, err := es.Load(ctx, h.Runtime, Aggregate, in, id)
		return l.State, err
	})
}

// LevelsAt is [Handler.Levels] as of a position of the log.
func (h *Handler) LevelsAt(ctx context.Context, tenant uuid.UUID, t Target, at es.Position) (Levels, error) {
	return levels(tenant, t, func(in, id uuid.UUID) (State, error) {
		l, err := es.LoadUntil(ctx, h.Runtime, Aggregate, in, id, at)
		return l.State, err
	})
}

func levels(tenant uuid.UUID, t Target, load func(tenant, id uuid.UUID) (State, error)) (Levels, error) {
	chain := []Target{OfPlatform()}
	if t.Scope != Platform {
		chain = append(chain, OfTenant(tenant))
	}
	if t.Scope == Project {
		chain = append(chain, t)
	}
	out := make(Levels, len(chain))
	for i, w := range chain {
		s, err := load(home(tenant, w), w.ID)
		if err != nil {
			return nil, err
		}
		out[i] = Level{w.Scope, s}
	}
	return out, nil
}

// home is the tenant in whose streams the settings of a target stand.
func home(tenant uuid.UUID, t Target) uuid.UUID {
	if t.Scope == Platform {
		return es.PlatformTenant
	}
	return tenant
}

// Stream is where the settings of a target stand; the tenant is the one that
// the target is or lies in.
func Stream(tenant uuid.UUID, t Target) es.StreamID {
	return Aggregate.Stream(home(tenant, t), t.ID)
}
