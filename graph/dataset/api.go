// Package dataset is between the schema of data sets and what serves it: the
// domain's handler for mutations, the read model for queries, the log for the past.
package dataset

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/dataset"
	"tallyard/domain/es"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/history"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	proj "tallyard/projections/dataset"
)

// API serves the schema of data sets.
type API struct {
	Runtime  *es.Runtime
	Handler  *dataset.Handler
	Queries  proj.Queries
	Commands *command.Gateway
	Sealer   *relay.Sealer
	History  *history.Reader
}

// Show is a data set of the read model, or as it was folded from the log.
func Show(s dataset.State) *gqlmodel.DataSet {
	c := &gqlmodel.DataSetCache{
		Ready: s.Cache.Ready, Step: step(s.Cache.Step), LastStep: step(s.Cache.Last), FileCount: s.Cache.Files, SizeBytes: s.Cache.Bytes,
		OperationID: s.Cache.Operation,
	}
	if s.Cache.Problem != "" {
		c.Problem = &s.Cache.Problem
	}
	if !s.Cache.Filled.IsZero() {
		c.FilledAt = &s.Cache.Filled
	}
	return &gqlmodel.DataSet{
		ID: relay.Of(relay.DataSet, s.ID), Name: s.Name, Description: s.Description, Directory: s.Content.Directory,
		Visibility: gqlmodel.Visibility(s.Visibility), FileCount: s.Content.Files, SizeBytes: s.Content.Bytes,
		Version: int32(s.Version), CreatedAt: s.Created, UpdatedAt: s.Updated, Cache: c, Folded: s, //nolint:gosec // far below 2^31
	}
}

func step(s dataset.Step) *gqlmodel.DataSetCacheStep {
	if s == "" {
		return nil
	}
	shown := gqlmodel.DataSetCacheStep(s)
	return &shown
}

// ByID is a data set that the viewer sees, by the loaders.
func (a *API) ByID(ctx context.Context, id uuid.UUID) (*gqlmodel.DataSet, error) {
	s, err := loader.From(ctx).DataSets.Load(ctx, id)
	if err != nil || s == nil {
		return nil, err
	}
	return Show(*s), nil
}

// CanEdit tells whether the viewer may edit and delete a data set.
func (a *API) CanEdit(ctx context.Context, obj *gqlmodel.DataSet) (bool, error) {
	v, err := authn.Must(ctx)
	return err == nil && !obj.Past && v.Grants.Changes(obj.Folded.Thing()), err
}

// HistoryOf is what happened to a data set.
func (a *API) HistoryOf(ctx context.Context, obj *gqlmodel.DataSet, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	return a.History.Of(ctx, dataset.Aggregate.Stream(obj.Folded.Tenant, obj.Folded.ID), first, after, nil)
}

// Get is the query dataSet. Who sees it today sees its past.
func (a *API) Get(ctx context.Context, id string, atLeast *string, asOf *time.Time, asOfPosition *string) (*gqlmodel.DataSet, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	at, past, err := a.History.Moment(ctx, asOf, asOfPosition)
	if err != nil {
		return nil, err
	}
	parsed, ok := relay.Parse(id)
	if !ok || parsed.Kind != relay.DataSet {
		return nil, nil
	}
	if !past {
		return a.ByID(ctx, parsed.UUID)
	}
	now, err := a.Handler.Load(ctx, v.Tenant, parsed.UUID)
	if err != nil || !now.Exists() || access.MustSee(v.Grants, now.Thing()) != nil {
		return nil, err
	}
	l, err := es.LoadUntil(ctx, a.Runtime, dataset.Aggregate, v.Tenant, parsed.UUID, at)
	if err != nil || !l.State.Exists() {
		return nil, err
	}
	m := Show(l.State)
	m.Past = true
	return m, nil
}
