package main

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/model"
	"tallyard/domain/operation"
	"tallyard/domain/project"
	"tallyard/domain/user"
	projalgorithm "tallyard/projections/algorithm"
	projdataset "tallyard/projections/dataset"
	projimage "tallyard/projections/image"
	projmodel "tallyard/projections/model"
	projoperation "tallyard/projections/operation"
	"tallyard/projections/runner"
)

// belongings tells what users and projects have, of every feature. There is no
// stream of all that somebody owns, so the read models are asked, once they have
// all that the log has.
type belongings struct {
	log        es.Log
	reader     *runner.Reader
	algorithms projalgorithm.Queries
	models     projmodel.Queries
	operations projoperation.Queries
	dataSets   projdataset.Queries
	images     projimage.Queries
}

func newBelongings(log es.Log, reader *runner.Reader) belongings {
	return belongings{
		log, reader,
		projalgorithm.Queries{Reader: reader},
		projmodel.Queries{Reader: reader},
		projoperation.Queries{Reader: reader},
		projdataset.Queries{Reader: reader},
		projimage.Queries{Reader: reader},
	}
}

// Of implements user.Belongings.
func (b belongings) Of(ctx context.Context, tenant, owner uuid.UUID) ([]user.Belonging, error) {
	if err := b.current(ctx); err != nil {
		return nil, err
	}
	algorithms, err := b.algorithms.OwnedBy(ctx, tenant, owner)
	if err != nil {
		return nil, err
	}
	models, err := b.models.OwnedBy(ctx, tenant, owner)
	if err != nil {
		return nil, err
	}
	operations, err := b.operations.Unfinished(ctx, tenant, owner)
	if err != nil {
		return nil, err
	}
	dataSets, err := b.dataSets.OwnedBy(ctx, tenant, owner)
	if err != nil {
		return nil, err
	}
	images, err := b.images.OwnedBy(ctx, tenant, owner)
	if err != nil {
		return nil, err
	}
	list := make([]user.Belonging, 0, len(algorithms)+len(models)+len(operations)+len(dataSets)+len(images))
	for _, s := range dataSets {
		list = append(list, user.Belonging{Ref: s.Ref(), Project: s.Project, Name: s.Name})
	}
	for _, s := range images {
		list = append(list, user.Belonging{Ref: s.Ref(), Project: s.Project, Name: s.Name})
	}
	for _, s := range algorithms {
		list = append(list, user.Belonging{Ref: es.Ref{Kind: algorithm.Category, ID: s.ID}, Project: s.Project, Name: s.Name})
	}
	for _, s := range models {
		list = append(list, user.Belonging{Ref: es.Ref{Kind: model.Category, ID: s.ID}, Project: s.Project, Name: s.Name})
	}
	for _, s := range operations {
		list = append(list, user.Belonging{Ref: es.Ref{Kind: operation.Category, ID: s.ID}, Project: s.Project, Name: string(s.Kind), Running: true})
	}
	return list, nil
}

// In implements project.Contents.
func (b belongings) In(ctx context.Context, tenant, id uuid.UUID) ([]project.Content, error) {
	if err := b.current(ctx); err != nil {
		return nil, err
	}
	algorithms, err := b.algorithms.InProject(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	dataSets, err := b.dataSets.InProject(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	images, err := b.images.InProject(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	models, err := b.models.InProject(ctx, tenant, id)
	list := make([]project.Content, 0, len(algorithms)+len(models)+len(dataSets)+len(images))
	for _, s := range algorithms {
		list = append(list, project.Content{Ref: es.Ref{Kind: algorithm.Category, ID: s.ID}, Name: s.Name})
	}
	for _, s := range dataSets {
		list = append(list, project.Content{Ref: s.Ref(), Name: s.Name})
	}
	for _, s := range images {
		list = append(list, project.Content{Ref: s.Ref(), Name: s.Name})
	}
	for _, s := range models {
		list = append(list, project.Content{Ref: es.Ref{Kind: model.Category, ID: s.ID}, Name: s.Name})
	}
	return list, err
}

// Using implements model.Users.
func (b belongings) Using(ctx context.Context, tenant, id uuid.UUID) ([]model.Use, error) {
	if err := b.current(ctx); err != nil {
		return nil, err
	}
	names, err := b.algorithms.StartingFrom(ctx, tenant, id)
	uses := make([]model.Use, len(names))
	for i, name := range names {
		uses[i] = model.Use{Kind: algorithm.Category, Name: name}
	}
	return uses, err
}

// current waits until the read models have all that the log has now.
func (b belongings) current(ctx context.Context) error {
	for rec, err := range b.log.ReadAll(ctx, es.StartPosition, es.Backward, 1) {
		if err != nil {
			return err
		}
		err = b.reader.WaitFor(ctx, rec.Position, projalgorithm.Projection.Name, projmodel.Projection.Name, projoperation.Projection.Name,
			projdataset.Projection.Name, projimage.Projection.Name)
		if errors.Is(err, runner.ErrStale) {
			return fault.New(fault.Unavailable, fault.CodeUnavailable, "What there is is not known completely at this moment; try again.")
		}
		return err
	}
	return nil
}
