package dataset

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/dataset"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
)

// queued is what a step of a cache writes beside, for the read models that a
// receipt waits for.
const queued = "operation.queued.v1"

type answer = command.Answered[*gqlmodel.DataSet]

// carry carries out a command and shows the data set as it left it.
func (a *API) carry(ctx context.Context, key, reason graphql.Omittable[*string], faults fault.List, do func(context.Context, es.Command) (es.Result[dataset.Refs], error)) (answer, error) {
	return command.Carry(ctx, a.Commands, a.Runtime, command.Options{Key: key.Value(), Reason: reason.Value()}, faults, do,
		func(ctx context.Context, res es.Result[dataset.Refs]) (*gqlmodel.DataSet, error) {
			v, err := authn.Must(ctx)
			if err != nil {
				return nil, err
			}
			l, err := es.LoadUntil(ctx, a.Runtime, dataset.Aggregate, v.Tenant, res.Refs.DataSet, res.Position)
			if err != nil || !l.State.Exists() {
				return nil, err
			}
			return Show(l.State), nil
		})
}

// Register is registerDataSet.
func (a *API) Register(ctx context.Context, in gqlmodel.RegisterDataSetInput) (*gqlmodel.RegisterDataSetPayload, error) {
	var faults fault.List
	input := dataset.Register{
		Project: relay.Optional(relay.Project, &in.ProjectID, &faults, "projectId"), Name: in.Name, Description: gqlmodel.Or(in.Description.Value(), ""),
		Visibility: access.Visibility(gqlmodel.Or(in.Visibility.Value(), gqlmodel.VisibilityPrivate)),
		Space:      relay.Optional(relay.StorageSpace, in.SpaceID.Value(), &faults, "spaceId"), Directory: in.Directory,
	}
	r, err := a.carry(ctx, in.IdempotencyKey, in.Reason, faults, func(ctx context.Context, cmd es.Command) (es.Result[dataset.Refs], error) {
		return a.Handler.Register(ctx, cmd, input)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.RegisterDataSetPayload{DataSet: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// Update is updateDataSet.
func (a *API) Update(ctx context.Context, in gqlmodel.UpdateDataSetInput) (*gqlmodel.UpdateDataSetPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.DataSet, &in.ID, &faults, "id")
	input := dataset.Update{
		Name: field(in.Name, same), Description: field(in.Description, same), Directory: field(in.Directory, same),
		Visibility:      field(in.Visibility, func(v gqlmodel.Visibility) access.Visibility { return access.Visibility(v) }),
		ExpectedVersion: number(in.ExpectedVersion),
	}
	r, err := a.carry(ctx, in.IdempotencyKey, in.Reason, faults, func(ctx context.Context, cmd es.Command) (es.Result[dataset.Refs], error) {
		return a.Handler.Update(ctx, cmd, id, input)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.UpdateDataSetPayload{DataSet: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// Delete is deleteDataSet.
func (a *API) Delete(ctx context.Context, in gqlmodel.DeleteDataSetInput) (*gqlmodel.DeleteDataSetPayload, error) {
	var faults fault.List
	id := relay.Optional(relay.DataSet, &in.ID, &faults, "id")
	r, err := a.carry(ctx, in.IdempotencyKey, in.Reason, faults, func(ctx context.Context, cmd es.Command) (es.Result[dataset.Refs], error) {
		return a.Handler.Remove(ctx, cmd, id, number(in.ExpectedVersion))
	})
	if err != nil {
		return nil, err
	}
	out := &gqlmodel.DeleteDataSetPayload{UserErrors: r.UserErrors, Receipt: r.Receipt}
	if len(r.UserErrors) == 0 {
		out.DeletedID = relay.Maybe(relay.DataSet, id)
	}
	return out, nil
}

func (a *API) begin(ctx context.Context, id string, key, reason graphql.Omittable[*string], step dataset.Step) (answer, error) {
	var faults fault.List
	of := relay.Optional(relay.DataSet, &id, &faults, "id")
	return a.carry(ctx, key, reason, faults, func(ctx context.Context, cmd es.Command) (es.Result[dataset.Refs], error) {
		res, err := a.Handler.Begin(ctx, cmd, of, step)
		if res.Refs.Operation != uuid.Nil {
			res.Events = append(res.Events, queued) // by this command, or by the process that was faster
		}
		return res, err
	})
}

// Cache is cacheDataSet.
func (a *API) Cache(ctx context.Context, in gqlmodel.CacheDataSetInput) (*gqlmodel.CacheDataSetPayload, error) {
	r, err := a.begin(ctx, in.ID, in.IdempotencyKey, in.Reason, dataset.Fill)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.CacheDataSetPayload{DataSet: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// Refresh is refreshDataSet.
func (a *API) Refresh(ctx context.Context, in gqlmodel.RefreshDataSetInput) (*gqlmodel.RefreshDataSetPayload, error) {
	r, err := a.begin(ctx, in.ID, in.IdempotencyKey, in.Reason, dataset.Refresh)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.RefreshDataSetPayload{DataSet: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

// Unzip is unzipDataSet.
func (a *API) Unzip(ctx context.Context, in gqlmodel.UnzipDataSetInput) (*gqlmodel.UnzipDataSetPayload, error) {
	r, err := a.begin(ctx, in.ID, in.IdempotencyKey, in.Reason, dataset.Unzip)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.UnzipDataSetPayload{DataSet: r.Entity, UserErrors: r.UserErrors, Receipt: r.Receipt}, nil
}

func number(n graphql.Omittable[*int32]) *int {
	if n.Value() == nil {
		return nil
	}
	v := int(*n.Value())
	return &v
}

func same(s string) string { return s }

// field is the three-way value of an update.
func field[G, D any](in graphql.Omittable[*G], to func(G) D) patch.Field[D] {
	v, given := in.ValueOK()
	switch {
	case !given:
		return patch.Keep[D]()
	case v == nil:
		return patch.Clear[D]()
	}
	return patch.To(to(*v))
}
