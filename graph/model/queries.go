package model

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/model"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/history"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/model"
	"tallyard/projections/page"
)

// API serves the schema of models.
type API struct {
	Runtime  *es.Runtime
	Handler  *model.Handler
	Queries  proj.Queries
	Commands *command.Gateway
	Sealer   *relay.Sealer
	History  *history.Reader
}

// List is the query models.
func (a *API) List(ctx context.Context, in *gqlmodel.ModelFilter, orderBy *gqlmodel.ModelOrder, args relay.Args, atLeast *string) (*gqlmodel.ModelConnection, error) {
	viewer, err := a.viewer(ctx, atLeast)
	if err != nil {
		return nil, err
	}
	f, err := filter(in)
	if err != nil {
		return nil, err
	}
	o := order(orderBy)
	list, err := relay.NewList(a.Sealer, viewer.Tenant, "models", f, o)
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	rows, err := a.Queries.List(ctx, viewer, f, o, p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.ModelConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.Count(ctx, viewer, f) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows, proj.Key, Show,
		func(cursor string, n *gqlmodel.Model) *gqlmodel.ModelEdge {
			return &gqlmodel.ModelEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

// Get is the query model.
func (a *API) Get(ctx context.Context, id string, atLeast *string, asOf *time.Time, asOfPosition *string) (*gqlmodel.Model, error) {
	parsed, ok := relay.Parse(id)
	if !ok || parsed.Kind != relay.Model {
		return nil, nil
	}
	if _, err := a.viewer(ctx, atLeast); err != nil {
		return nil, err
	}
	s, past, err := a.past(ctx, parsed.UUID, asOf, asOfPosition)
	if err != nil {
		return nil, err
	}
	if past {
		v, err := authn.Must(ctx)
		return ShowPast(s, v.Grants), err
	}
	return a.ByID(ctx, parsed.UUID)
}

// GetVersion is the query modelVersion.
func (a *API) GetVersion(ctx context.Context, id string, atLeast *string, asOf *time.Time, asOfPosition *string) (*gqlmodel.ModelVersion, error) {
	parsed, ok := relay.Parse(id)
	if !ok || parsed.Kind != relay.ModelVersion {
		return nil, nil
	}
	if _, err := a.viewer(ctx, atLeast); err != nil {
		return nil, err
	}
	s, past, err := a.past(ctx, parsed.Parent, asOf, asOfPosition)
	if err != nil {
		return nil, err
	}
	if past {
		v, err := authn.Must(ctx)
		return ShowPastVersion(s, parsed.UUID, v.Grants), err
	}
	return a.VersionByID(ctx, parsed.UUID)
}

// past folds a model as it was; false when no moment was named. What a viewer
// sees of the past is what they might see today of what it was then.
func (a *API) past(ctx context.Context, id uuid.UUID, asOf *time.Time, asOfPosition *string) (model.State, bool, error) {
	p, past, err := a.History.Moment(ctx, asOf, asOfPosition)
	if err != nil || !past {
		return model.State{}, false, err
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return model.State{}, false, err
	}
	l, err := es.LoadUntil(ctx, a.Runtime, model.Aggregate, v.Tenant, id, p)
	return l.State, true, err
}

// ByID is a model that the viewer sees, by the loaders.
func (a *API) ByID(ctx context.Context, id uuid.UUID) (*gqlmodel.Model, error) {
	s, err := loader.From(ctx).Models.Load(ctx, id)
	if err != nil || s == nil {
		return nil, err
	}
	return Show(*s), nil
}

// VersionByID is a version that the viewer sees, by the loaders.
func (a *API) VersionByID(ctx context.Context, id uuid.UUID) (*gqlmodel.ModelVersion, error) {
	v, err := loader.From(ctx).ModelVersions.Load(ctx, id)
	if err != nil || v == nil {
		return nil, err
	}
	return ShowVersion(*v), nil
}

// viewer waits for the position asked for and gives the filter of who asks.
func (a *API) viewer(ctx context.Context, atLeast *string) (projaccess.Filter, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return projaccess.Filter{}, err
	}
	return projaccess.TrainingFilterOf(v.Grants), a.Commands.AtLeast(ctx, atLeast)
}

func versionConnection(list relay.List, args relay.Args, rows page.Rows[proj.Version]) *gqlmodel.ModelVersionConnection {
	out := &gqlmodel.ModelVersionConnection{}
	out.Edges, out.Nodes, out.PageInfo = relay.Connection(list, args, rows, proj.VersionKey, ShowVersion,
		func(cursor string, n *gqlmodel.ModelVersion) *gqlmodel.ModelVersionEdge {
			return &gqlmodel.ModelVersionEdge{Cursor: cursor, Node: n}
		})
	return out
}
