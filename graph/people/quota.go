package people

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
)

// Quota is what all that runs for a person may hold, for themselves and for who
// reads everything of the tenant.
func (a *API) Quota(ctx context.Context, obj *gqlmodel.User) (*gqlmodel.UserQuota, error) {
	v, err := authn.Must(ctx)
	if err != nil || !Reads(v, obj.UserID) {
		return nil, err
	}
	if obj.Quota != nil {
		return obj.Quota, nil // as a command left it, or as it was
	}
	p, err := loader.From(ctx).Powers.Load(ctx, obj.UserID)
	if err != nil {
		return nil, err
	}
	return showQuota(p.Quota), nil
}

func showQuota(q user.Quota) *gqlmodel.UserQuota {
	out := &gqlmodel.UserQuota{CPUMillis: q.CPUMillis, MemoryBytes: q.MemoryBytes, Accelerators: []*gqlmodel.AcceleratorQuota{}}
	for _, t := range q.Types() {
		out.Accelerators = append(out.Accelerators, &gqlmodel.AcceleratorQuota{Type: t, Count: q.Accelerators[t]})
	}
	return out
}

// SetUserQuota is setUserQuota.
func (a *API) SetUserQuota(ctx context.Context, in gqlmodel.SetUserQuotaInput) (*gqlmodel.SetUserQuotaPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.User, &in.UserID, &faults, "userId")
	quota := user.NewQuota{CPUMillis: field(in.CPUMillis), MemoryBytes: field(in.MemoryBytes), Accelerators: cards(in.Accelerators)}
	r, err := a.onUser(ctx, reasoned(in.IdempotencyKey, in.Reason), faults, func(ctx context.Context, cmd es.Command) (es.Result[user.Refs], error) {
		return a.Users.SetQuota(ctx, cmd, id, quota)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.SetUserQuotaPayload{User: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

func cards(in graphql.Omittable[[]*gqlmodel.AcceleratorQuotaInput]) patch.Field[[]user.AcceleratorQuota] {
	given, ok := in.ValueOK()
	switch {
	case !ok:
		return patch.Keep[[]user.AcceleratorQuota]()
	case given == nil:
		return patch.Clear[[]user.AcceleratorQuota]()
	}
	list := make([]user.AcceleratorQuota, len(given))
	for i, a := range given {
		list[i] = user.AcceleratorQuota{Type: a.Type, Count: a.Count}
	}
	return patch.To(list)
}
