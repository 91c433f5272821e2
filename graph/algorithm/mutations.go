package algorithm

import (
	"context"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/problem"
	"tallyard/graph/relay"
)

// answer is what the payloads of this feature are made of.
type answer struct {
	algorithm *gqlmodel.Algorithm
	version   *gqlmodel.AlgorithmVersion
	errors    []*gqlmodel.UserError
	receipt   *gqlmodel.Receipt
}

// run carries out a mutation: its command, what the input says, the domain's
// method, and the entity as the command left it.
func (a *API) run(ctx context.Context, key, reason graphql.Omittable[*string], do func(context.Context, es.Command, *fault.List) (es.Result[algorithm.Refs], error)) (answer, error) {
	var out answer
	cmd, err := a.Commands.Begin(ctx, command.Options{Key: key.Value(), Reason: reason.Value()})
	if cmd.ID == uuid.Nil {
		return out, err
	}
	var res es.Result[algorithm.Refs]
	if err != nil {
		res, err = refuse(ctx, a.Runtime, cmd, err)
	} else {
		var faults fault.List
		res, err = do(ctx, cmd, &faults)
	}
	if err == nil && res.Refs.Algorithm != uuid.Nil {
		if out.algorithm, out.version, err = a.after(ctx, cmd, res.Refs); err != nil {
			return out, err
		}
	}
	out.receipt, out.errors, err = command.Answer(ctx, a.Commands, res, err)
	return out, err
}

// refuse hands faults that the input alone tells to the domain's record of refusals.
func refuse(ctx context.Context, rt *es.Runtime, cmd es.Command, faults error) (es.Result[algorithm.Refs], error) {
	return command.Refuse[algorithm.Refs](ctx, rt, cmd, faults)
}

// after gives the entities as they were right after a command, so that a
// repeated key gives an equal answer.
func (a *API) after(ctx context.Context, cmd es.Command, refs algorithm.Refs) (*gqlmodel.Algorithm, *gqlmodel.AlgorithmVersion, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := a.at(ctx, cmd.Tenant, refs.Algorithm, refs.At)
	if err != nil {
		return nil, nil, err
	}
	return ShowPast(s, v.Grants), ShowPastVersion(s, refs.Version, v.Grants), nil
}

// at folds an algorithm up to a revision; below zero: all of it.
func (a *API) at(ctx context.Context, tenant, id uuid.UUID, until es.Revision) (algorithm.State, error) {
	if until < 0 {
		l, err := es.Load(ctx, a.Runtime, algorithm.Aggregate, tenant, id)
		return l.State, err
	}
	l, err := es.LoadRevision(ctx, a.Runtime, algorithm.Aggregate, tenant, id, until)
	return l.State, err
}

// Create is createAlgorithm.
func (a *API) Create(ctx context.Context, in gqlmodel.CreateAlgorithmInput) (*gqlmodel.CreateAlgorithmPayload, error) {
	r, err := a.run(ctx, in.IdempotencyKey, in.Reason, func(ctx context.Context, cmd es.Command, faults *fault.List) (es.Result[algorithm.Refs], error) {
		input := createInput(in, faults)
		if len(*faults) > 0 {
			return refuse(ctx, a.Runtime, cmd, *faults)
		}
		return a.Handler.Create(ctx, cmd, input)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.CreateAlgorithmPayload{Algorithm: r.algorithm, AlgorithmVersion: r.version, UserErrors: r.errors, Receipt: r.receipt}, nil
}

// CreateVersion is createAlgorithmVersion.
func (a *API) CreateVersion(ctx context.Context, in gqlmodel.CreateAlgorithmVersionInput) (*gqlmodel.CreateAlgorithmVersionPayload, error) {
	r, err := a.run(ctx, in.IdempotencyKey, in.Reason, func(ctx context.Context, cmd es.Command, faults *fault.List) (es.Result[algorithm.Refs], error) {
		id, bad := relay.Expect(relay.Algorithm, in.AlgorithmID, "algorithmId")
		faults.Add(bad)
		input := versionInput(in, faults)
		if len(*faults) > 0 {
			return refuse(ctx, a.Runtime, cmd, *faults)
		}
		return a.Handler.CreateVersion(ctx, cmd, id.UUID, input)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.CreateAlgorithmVersionPayload{AlgorithmVersion: r.version, UserErrors: r.errors, Receipt: r.receipt}, nil
}

// UpdateVersion is updateAlgorithmVersion.
func (a *API) UpdateVersion(ctx context.Context, in gqlmodel.UpdateAlgorithmVersionInput) (*gqlmodel.UpdateAlgorithmVersionPayload, error) {
	r, err := a.run(ctx, in.IdempotencyKey, in.Reason, func(ctx context.Context, cmd es.Command, faults *fault.List) (es.Result[algorithm.Refs], error) {
		input := updateInput(in, faults)
		if len(*faults) > 0 {
			return refuse(ctx, a.Runtime, cmd, *faults)
		}
		return a.Handler.UpdateVersion(ctx, cmd, input)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.UpdateAlgorithmVersionPayload{AlgorithmVersion: r.version, UserErrors: r.errors, Receipt: r.receipt}, nil
}

// PublishVersion is publishAlgorithmVersion.
func (a *API) PublishVersion(ctx context.Context, in gqlmodel.PublishAlgorithmVersionInput) (*gqlmodel.PublishAlgorithmVersionPayload, error) {
	r, err := a.run(ctx, in.IdempotencyKey, in.Reason, func(ctx context.Context, cmd es.Command, faults *fault.List) (es.Result[algorithm.Refs], error) {
		input := algorithm.PublishInput{VersionRef: versionRef(in.ID, faults, "id"), Visibility: visibility(in.Visibility), Expected: number(in.ExpectedVersion)}
		if len(*faults) > 0 {
			return refuse(ctx, a.Runtime, cmd, *faults)
		}
		return a.Handler.PublishVersion(ctx, cmd, input)
	})
	if err != nil {
		return nil, err
	}
	return &gqlmodel.PublishAlgorithmVersionPayload{AlgorithmVersion: r.version, UserErrors: r.errors, Receipt: r.receipt}, nil
}

// DeleteVersion is deleteAlgorithmVersion.
func (a *API) DeleteVersion(ctx context.Context, in gqlmodel.DeleteAlgorithmVersionInput) (*gqlmodel.DeleteAlgorithmVersionPayload, error) {
	r, err := a.run(ctx, in.IdempotencyKey, in.Reason, func(ctx context.Context, cmd es.Command, faults *fault.List) (es.Result[algorithm.Refs], error) {
		ref := versionRef(in.ID, faults, "id")
		if len(*faults) > 0 {
			return refuse(ctx, a.Runtime, cmd, *faults)
		}
		return a.Handler.DeleteVersion(ctx, cmd, ref, number(in.ExpectedVersion))
	})
	if err != nil {
		return nil, err
	}
	out := &gqlmodel.DeleteAlgorithmVersionPayload{AlgorithmVersion: r.version, UserErrors: r.errors, Receipt: r.receipt}
	if len(r.errors) == 0 {
		out.DeletedID = &in.ID
	}
	return out, nil
}

// DeleteVersions is deleteAlgorithmVersions: every item is a command of its own.
func (a *API) DeleteVersions(ctx context.Context, in gqlmodel.DeleteAlgorithmVersionsInput) (*gqlmodel.DeleteAlgorithmVersionsPayload, error) {
	out := &gqlmodel.DeleteAlgorithmVersionsPayload{Results: []*gqlmodel.DeleteAlgorithmVersionResult{}}
	cmd, err := a.Commands.Begin(ctx, command.Options{Key: in.IdempotencyKey.Value(), Reason: in.Reason.Value()})
	if cmd.ID == uuid.Nil {
		return nil, err
	}
	if err != nil {
		res, err := refuse(ctx, a.Runtime, cmd, err)
		out.Receipt, out.UserErrors, err = command.Answer(ctx, a.Commands, res, err)
		return out, err
	}
	gate, err := command.Gate(ctx, a.Runtime, cmd, func() error { return command.BatchSize(len(in.Ids), "ids") })
	if err != nil {
		out.Receipt, out.UserErrors, err = command.Answer(ctx, a.Commands, gate, err)
		return out, err
	}
	done := command.Done{Command: gate.Command, Replayed: true}
	for i, id := range in.Ids {
		item, res, err := a.deleteItem(ctx, cmd.Item(i), i, id)
		if err != nil {
			return nil, err
		}
		out.Results = append(out.Results, item)
		done.Position = max(done.Position, res.Position)
		done.Events = append(done.Events, res.Events...)
		done.Replayed = done.Replayed && res.Replayed
	}
	out.UserErrors = []*gqlmodel.UserError{}
	out.Receipt, err = a.Commands.Receipt(ctx, done)
	return out, err
}

func (a *API) deleteItem(ctx context.Context, cmd es.Command, i int, id string) (*gqlmodel.DeleteAlgorithmVersionResult, es.Result[algorithm.Refs], error) {
	item := &gqlmodel.DeleteAlgorithmVersionResult{ID: id}
	// What can't be read becomes the nil id, which nothing has: it is answered,
	// recorded and kept under the item's key like any that does not exist.
	res, err := a.Handler.DeleteInBatch(ctx, cmd, versionRef(id, &fault.List{}, "ids"))
	if err == nil {
		item.DeletedID = &id
		if _, item.AlgorithmVersion, err = a.after(ctx, cmd, res.Refs); err != nil {
			return nil, res, err
		}
	}
	item.UserErrors, err = problem.UserErrors(err)
	for _, e := range item.UserErrors {
		e.Field = []string{"ids", strconv.Itoa(i)}
	}
	return item, res, err
}

// Like is favoriteAlgorithm.
func (a *API) Like(ctx context.Context, in gqlmodel.FavoriteAlgorithmInput) (*gqlmodel.FavoriteAlgorithmPayload, error) {
	r, err := a.favorite(ctx, in.ID, in.IdempotencyKey, true)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.FavoriteAlgorithmPayload{Algorithm: r.algorithm, UserErrors: r.errors, Receipt: r.receipt}, nil
}

// Unlike is unfavoriteAlgorithm.
func (a *API) Unlike(ctx context.Context, in gqlmodel.UnfavoriteAlgorithmInput) (*gqlmodel.UnfavoriteAlgorithmPayload, error) {
	r, err := a.favorite(ctx, in.ID, in.IdempotencyKey, false)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.UnfavoriteAlgorithmPayload{Algorithm: r.algorithm, UserErrors: r.errors, Receipt: r.receipt}, nil
}

func (a *API) favorite(ctx context.Context, id string, key graphql.Omittable[*string], like bool) (answer, error) {
	return a.run(ctx, key, graphql.Omittable[*string]{}, func(ctx context.Context, cmd es.Command, faults *fault.List) (es.Result[algorithm.Refs], error) {
		parsed, bad := relay.Expect(relay.Algorithm, id, "id")
		faults.Add(bad)
		if len(*faults) > 0 {
			return refuse(ctx, a.Runtime, cmd, *faults)
		}
		return a.Handler.Favorite(ctx, cmd, parsed.UUID, like)
	})
}
