package model

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/model"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/problem"
)

// answer is what the payloads of this feature are made of.
type answer struct {
	model   *gqlmodel.Model
	version *gqlmodel.ModelVersion
	errors  []*gqlmodel.UserError
	receipt *gqlmodel.Receipt
}

// run carries out a mutation: its command, the domain's method, and the entity
// as the command left it.
func (a *API) run(ctx context.Context, key, reason graphql.Omittable[*string], do func(context.Context, es.Command, *fault.List) (es.Result[model.Refs], error)) (answer, error) {
	var out answer
	cmd, err := a.Commands.Begin(ctx, command.Options{Key: key.Value(), Reason: reason.Value()})
	if cmd.ID == uuid.Nil {
		return out, err
	}
	var res es.Result[model.Refs]
	if err != nil {
		res, err = a.refuse(ctx, cmd, err)
	} else {
		var faults fault.List
		res, err = do(ctx, cmd, &faults)
	}
	if err == nil && res.Refs.Model != uuid.Nil {
		if out.model, out.version, err = a.after(ctx, cmd, res.Refs); err != nil {
			return out, err
		}
	}
	out.receipt, out.errors, err = command.Answer(ctx, a.Commands, res, err)
	return out, err
}

// refuse hands faults that the input alone tells to the domain's record of refusals.
func (a *API) refuse(ctx context.Context, cmd es.Command, faults error) (es.Result[model.Refs], error) {
	return command.Refuse[model.Refs](ctx, a.Runtime, cmd, faults)
}

// after gives the entities as they were right after a command, so that a
// repeated key gives an equal answer.
func (a *API) after(ctx context.Context, cmd es.Command, refs model.Refs) (*gqlmodel.Model, *gqlmodel.ModelVersion, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, nil, err
	}
	load := func() (es.Loaded[model.State], error) {
		if refs.At < 0 {
			return es.Load(ctx, a.Runtime, model.Aggregate, cmd.Tenant, refs.Model)
		}
		return es.LoadRevision(ctx, a.Runtime, model.Aggregate, cmd.Tenant, refs.Model, refs.At)
	}
	l, err := load()
	if err != nil {
		return nil, nil, err
	}
	return ShowPast(l.State, v.Grants), ShowPastVersion(l.State, refs.Version, v.Grants), nil
}

// Import is importModel.
func (a *API) Import(ctx context.Context, in gqlmodel.ImportModelInput) (*gqlmodel.ImportModelPayload, error) {
	r, err := a.run(ctx, in.IdempotencyKey, in.Reason, func(ctx context.Context, cmd es.Command, faults *fault.List) (es.Result[model.Refs], error) {
		input := importInput(in, faults)
		if len(*faults) > 0 {
			return a.refuse(ctx, cmd, *faults)
		}
		return a.Handler.Import(ctx, cmd, input)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.ImportModelPayload{Model: r.model, ModelVersion: r.version, UserErrors: r.errors, Receipt: r.receipt}, nil
}

// UpdateVersion is updateModelVersion.
func (a *API) UpdateVersion(ctx context.Context, in gqlmodel.UpdateModelVersionInput) (*gqlmodel.UpdateModelVersionPayload, error) {
	r, err := a.run(ctx, in.IdempotencyKey, in.Reason, func(ctx context.Context, cmd es.Command, faults *fault.List) (es.Result[model.Refs], error) {
		input := updateInput(in, faults)
		if len(*faults) > 0 {
			return a.refuse(ctx, cmd, *faults)
		}
		return a.Handler.UpdateVersion(ctx, cmd, input)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.UpdateModelVersionPayload{ModelVersion: r.version, UserErrors: r.errors, Receipt: r.receipt}, nil
}

// Share is shareModels.
func (a *API) Share(ctx context.Context, in gqlmodel.ShareModelsInput) (*gqlmodel.ShareModelsPayload, error) {
	out := &gqlmodel.ShareModelsPayload{Results: []*gqlmodel.ShareModelResult{}}
	var err error
	out.UserErrors, out.Receipt, err = a.batch(ctx, in.Ids, in.IdempotencyKey, in.Reason,
		func(ctx context.Context, cmd es.Command, ref model.VersionRef) (es.Result[model.Refs], error) {
			return a.Handler.Share(ctx, cmd, ref, access.Visibility(in.Visibility))
		},
		func(id string, v *gqlmodel.ModelVersion, errors []*gqlmodel.UserError) {
			out.Results = append(out.Results, &gqlmodel.ShareModelResult{ID: id, ModelVersion: v, UserErrors: errors})
		})
	return out, err
}

// Unshare is unshareModels.
func (a *API) Unshare(ctx context.Context, in gqlmodel.UnshareModelsInput) (*gqlmodel.UnshareModelsPayload, error) {
	out := &gqlmodel.UnshareModelsPayload{Results: []*gqlmodel.UnshareModelResult{}}
	var err error
	out.UserErrors, out.Receipt, err = a.batch(ctx, in.Ids, in.IdempotencyKey, in.Reason, a.Handler.Unshare,
		func(id string, v *gqlmodel.ModelVersion, errors []*gqlmodel.UserError) {
			out.Results = append(out.Results, &gqlmodel.UnshareModelResult{ID: id, ModelVersion: v, UserErrors: errors})
		})
	return out, err
}

// Delete is deleteModels.
func (a *API) Delete(ctx context.Context, in gqlmodel.DeleteModelsInput) (*gqlmodel.DeleteModelsPayload, error) {
	out := &gqlmodel.DeleteModelsPayload{Results: []*gqlmodel.DeleteModelResult{}}
	var err error
	out.UserErrors, out.Receipt, err = a.batch(ctx, in.Ids, in.IdempotencyKey, in.Reason, a.Handler.Delete,
		func(id string, _ *gqlmodel.ModelVersion, errors []*gqlmodel.UserError) {
			item := &gqlmodel.DeleteModelResult{ID: id, UserErrors: errors}
			if len(errors) == 0 {
				item.DeletedID = &id
			}
			out.Results = append(out.Results, item)
		})
	return out, err
}

// batch carries out a mutation on several versions: every item is a command of
// its own.
func (a *API) batch(
	ctx context.Context, ids []string, key, reason graphql.Omittable[*string],
	do func(context.Context, es.Command, model.VersionRef) (es.Result[model.Refs], error),
	add func(id string, v *gqlmodel.ModelVersion, errors []*gqlmodel.UserError),
) ([]*gqlmodel.UserError, *gqlmodel.Receipt, error) {
	cmd, err := a.Commands.Begin(ctx, command.Options{Key: key.Value(), Reason: reason.Value()})
	if cmd.ID == uuid.Nil {
		return nil, nil, err
	}
	if err != nil {
		res, err := a.refuse(ctx, cmd, err)
		receipt, errors, err := command.Answer(ctx, a.Commands, res, err)
		return errors, receipt, err
	}
	gate, err := command.Gate(ctx, a.Runtime, cmd, func() error { return command.BatchSize(len(ids), "ids") })
	if err != nil {
		receipt, errors, err := command.Answer(ctx, a.Commands, gate, err)
		return errors, receipt, err
	}
	done := command.Done{Command: gate.Command, Replayed: true}
	for i, id := range ids {
		item := cmd.Item(i)
		var faults fault.List
		ref := versionRef(id, &faults, "ids")
		var res es.Result[model.Refs]
		if len(faults) > 0 {
			res, err = a.refuse(ctx, item, faults)
		} else {
			res, err = do(ctx, item, ref)
		}
		var v *gqlmodel.ModelVersion
		if err == nil {
			if _, v, err = a.after(ctx, item, res.Refs); err != nil {
				return nil, nil, err
			}
		}
		errors, err := problem.UserErrors(err)
		if err != nil {
			return nil, nil, err
		}
		add(id, v, errors)
		done.Position = max(done.Position, res.Position)
		done.Events = append(done.Events, res.Events...)
		done.Replayed = done.Replayed && res.Replayed
	}
	receipt, err := a.Commands.Receipt(ctx, done)
	return []*gqlmodel.UserError{}, receipt, err
}
