package algorithm

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/text"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/history"
	"tallyard/graph/live"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/algorithm"
	"tallyard/projections/page"
)

// API serves the schema of algorithms.
type API struct {
	Runtime  *es.Runtime
	Handler  *algorithm.Handler
	Queries  proj.Queries
	Commands *command.Gateway
	Sealer   *relay.Sealer
	History  *history.Reader
	Live     *live.Hub
}

// List is the query algorithms.
func (a *API) List(ctx context.Context, in *gqlmodel.AlgorithmFilter, orderBy *gqlmodel.AlgorithmOrder, args relay.Args, atLeast *string) (*gqlmodel.AlgorithmConnection, error) {
	viewer, err := a.viewer(ctx, atLeast)
	if err != nil {
		return nil, err
	}
	f, err := algorithmFilter(in)
	if err != nil {
		return nil, err
	}
	o := order(orderBy)
	list, err := relay.NewList(a.Sealer, viewer.Tenant, "algorithms", f, o)
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
	c := &gqlmodel.AlgorithmConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.Count(ctx, viewer, f) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows,
		func(s algorithm.State) page.Key { return proj.Key(o.Column, s) }, Show,
		func(cursor string, n *gqlmodel.Algorithm) *gqlmodel.AlgorithmEdge {
			return &gqlmodel.AlgorithmEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

// Versions is the query algorithmVersions.
func (a *API) Versions(ctx context.Context, in *gqlmodel.AlgorithmVersionFilter, orderBy *gqlmodel.AlgorithmOrder, args relay.Args, atLeast *string) (*gqlmodel.AlgorithmVersionConnection, error) {
	viewer, err := a.viewer(ctx, atLeast)
	if err != nil {
		return nil, err
	}
	f, err := versionFilter(in)
	if err != nil {
		return nil, err
	}
	o := order(orderBy)
	list, err := relay.NewList(a.Sealer, viewer.Tenant, "algorithmVersions", f, o)
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	rows, err := a.Queries.Versions(ctx, viewer, f, o, p)
	if err != nil {
		return nil, err
	}
	c := versionConnection(list, args, rows, o.Column)
	c.Count = func(ctx context.Context) (int, error) { return a.Queries.CountVersions(ctx, viewer, f) }
	return c, nil
}

func versionConnection(list relay.List, args relay.Args, rows page.Rows[proj.Version], c page.Column) *gqlmodel.AlgorithmVersionConnection {
	out := &gqlmodel.AlgorithmVersionConnection{}
	out.Edges, out.Nodes, out.PageInfo = relay.Connection(list, args, rows,
		func(v proj.Version) page.Key { return proj.VersionKey(c, v) }, ShowVersion,
		func(cursor string, n *gqlmodel.AlgorithmVersion) *gqlmodel.AlgorithmVersionEdge {
			return &gqlmodel.AlgorithmVersionEdge{Cursor: cursor, Node: n}
		})
	return out
}

// Get is the query algorithm.
func (a *API) Get(ctx context.Context, id string, atLeast *string, asOf *time.Time, asOfPosition *string) (*gqlmodel.Algorithm, error) {
	parsed, ok := relay.Parse(id)
	if !ok || parsed.Kind != relay.Algorithm {
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

// GetVersion is the query algorithmVersion.
func (a *API) GetVersion(ctx context.Context, id string, atLeast *string, asOf *time.Time, asOfPosition *string) (*gqlmodel.AlgorithmVersion, error) {
	parsed, ok := relay.Parse(id)
	if !ok || parsed.Kind != relay.AlgorithmVersion {
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

// past folds an algorithm as it was; false when no moment was named. What a
// viewer sees of the past is what they might see today of what it was then.
func (a *API) past(ctx context.Context, id uuid.UUID, asOf *time.Time, asOfPosition *string) (algorithm.State, bool, error) {
	p, past, err := a.History.Moment(ctx, asOf, asOfPosition)
	if err != nil || !past {
		return algorithm.State{}, false, err
	}
	v, err := authn.Must(ctx)
	if err != nil {
		return algorithm.State{}, false, err
	}
	l, err := es.LoadUntil(ctx, a.Runtime, algorithm.Aggregate, v.Tenant, id, p)
	return l.State, true, err
}

// ByID is an algorithm that the viewer sees, by the loaders.
func (a *API) ByID(ctx context.Context, id uuid.UUID) (*gqlmodel.Algorithm, error) {
	s, err := loader.From(ctx).Algorithms.Load(ctx, id)
	if err != nil || s == nil {
		return nil, err
	}
	return Show(*s), nil
}

// VersionByID is a version that the viewer sees, by the loaders.
func (a *API) VersionByID(ctx context.Context, id uuid.UUID) (*gqlmodel.AlgorithmVersion, error) {
	v, err := loader.From(ctx).Versions.Load(ctx, id)
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

func algorithmFilter(in *gqlmodel.AlgorithmFilter) (proj.Filter, error) {
	if in == nil {
		return proj.Filter{}, nil
	}
	var faults fault.List
	f := proj.Filter{
		Scope: proj.Scope(gqlmodel.Deref(in.Scope.Value())), Favorites: gqlmodel.Deref(in.Favorites.Value()),
		Project: relay.Optional(relay.Project, in.ProjectID.Value(), &faults, "filter", "projectId"), Owner: relay.Optional(relay.User, in.OwnerID.Value(), &faults, "filter", "ownerId"),
	}
	return f, faults.Err()
}

func versionFilter(in *gqlmodel.AlgorithmVersionFilter) (proj.Filter, error) {
	if in == nil {
		return proj.Filter{}, nil
	}
	var faults fault.List
	f := proj.Filter{
		Scope: proj.Scope(gqlmodel.Deref(in.Scope.Value())), Favorites: gqlmodel.Deref(in.Favorites.Value()),
		Project: relay.Optional(relay.Project, in.ProjectID.Value(), &faults, "filter", "projectId"), Owner: relay.Optional(relay.User, in.OwnerID.Value(), &faults, "filter", "ownerId"),
		From: gqlmodel.Deref(in.UpdatedFrom.Value()), To: gqlmodel.Deref(in.UpdatedTo.Value()),
	}
	for _, s := range in.States.Value() {
		f.Statuses = append(f.Statuses, algorithm.Status(s))
	}
	search, bad := text.Line(0, 100).Clean(gqlmodel.Deref(in.Search.Value()), "filter", "search")
	faults.Add(bad)
	f.Search = search
	return f, faults.Err()
}

func order(in *gqlmodel.AlgorithmOrder) page.Order {
	o := page.Order{Column: proj.ByUpdated, IDColumn: "t.id", Descending: true}
	if in == nil {
		return o
	}
	switch in.Field {
	case gqlmodel.AlgorithmOrderFieldCreatedAt:
		o.Column = proj.ByCreated
	case gqlmodel.AlgorithmOrderFieldName:
		o.Column = proj.ByName
	}
	o.Descending = in.Direction == gqlmodel.OrderDirectionDesc
	return o
}
