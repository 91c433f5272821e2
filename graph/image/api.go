// Package image is between the schema of images and what serves it.
package image

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/image"
	"tallyard/domain/text"
	"tallyard/domain/workload"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/history"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	projaccess "tallyard/projections/access"
	proj "tallyard/projections/image"
	"tallyard/projections/page"
)

// API serves the schema of images.
type API struct {
	Runtime  *es.Runtime
	Handler  *image.Handler
	Queries  proj.Queries
	Commands *command.Gateway
	Sealer   *relay.Sealer
	History  *history.Reader
}

// Show is an image of the read model, or as it was folded from the log.
func Show(s image.State) *gqlmodel.RegisteredImage {
	m := &gqlmodel.RegisteredImage{
		ID: relay.Of(relay.Image, s.ID), Kind: gqlmodel.ImageKind(s.Kind), Name: s.Name, Framework: gqlmodel.Framework(s.Framework),
		Reference: s.Reference, AcceleratorTypes: s.Accelerators, Scope: gqlmodel.Visibility(s.Scope), Description: s.Description,
		DeploymentTypes: []gqlmodel.DeploymentType{}, Version: int32(s.Version), CreatedAt: s.Created, Folded: s, //nolint:gosec // far below 2^31
	}
	if m.AcceleratorTypes == nil {
		m.AcceleratorTypes = []string{}
	}
	for _, d := range workload.Allowed(s.Framework) {
		m.DeploymentTypes = append(m.DeploymentTypes, gqlmodel.DeploymentType(d))
	}
	if s.FrameworkVersion != "" {
		m.FrameworkVersion = &s.FrameworkVersion
	}
	if s.Scenario != "" {
		scenario := gqlmodel.ImageScenario(s.Scenario)
		m.Scenario = &scenario
	}
	return m
}

// ByID is an image that the viewer sees, by the loaders.
func (a *API) ByID(ctx context.Context, id uuid.UUID) (*gqlmodel.RegisteredImage, error) {
	s, err := loader.From(ctx).Images.Load(ctx, id)
	if err != nil || s == nil {
		return nil, err
	}
	return Show(*s), nil
}

// CanDelete tells whether the viewer may delete an image.
func (a *API) CanDelete(ctx context.Context, obj *gqlmodel.RegisteredImage) (bool, error) {
	v, err := authn.Must(ctx)
	return err == nil && v.Grants.Changes(obj.Folded.Thing()), err
}

// HistoryOf is what happened to an image.
func (a *API) HistoryOf(ctx context.Context, obj *gqlmodel.RegisteredImage, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	return a.History.Of(ctx, image.Aggregate.Stream(obj.Folded.Tenant, obj.Folded.ID), first, after, nil)
}

// Get is the query image. Who sees it today sees its past.
func (a *API) Get(ctx context.Context, id string, atLeast *string, asOf *time.Time, asOfPosition *string) (*gqlmodel.RegisteredImage, error) {
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
	if !ok || parsed.Kind != relay.Image {
		return nil, nil
	}
	if !past {
		return a.ByID(ctx, parsed.UUID)
	}
	now, err := a.Handler.Load(ctx, v.Tenant, parsed.UUID)
	if err != nil || !now.Exists() || access.MustSee(v.Grants, now.Thing()) != nil {
		return nil, err
	}
	l, err := es.LoadUntil(ctx, a.Runtime, image.Aggregate, v.Tenant, parsed.UUID, at)
	if err != nil || !l.State.Exists() {
		return nil, err
	}
	return Show(l.State), nil
}

// List is the query images.
func (a *API) List(ctx context.Context, in *gqlmodel.ImageFilter, orderBy *gqlmodel.ImageOrder, args relay.Args, atLeast *string) (*gqlmodel.RegisteredImageConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	f, err := filter(in)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, atLeast); err != nil {
		return nil, err
	}
	o := order(orderBy)
	list, err := relay.NewList(a.Sealer, v.Tenant, "images", f, o)
	if err != nil {
		return nil, err
	}
	p, err := list.Page(args)
	if err != nil {
		return nil, err
	}
	viewer := projaccess.FilterOf(v.Grants)
	rows, err := a.Queries.List(ctx, viewer, f, o, p)
	if err != nil {
		return nil, err
	}
	c := &gqlmodel.RegisteredImageConnection{Count: func(ctx context.Context) (int, error) { return a.Queries.Count(ctx, viewer, f) }}
	c.Edges, c.Nodes, c.PageInfo = relay.Connection(list, args, rows,
		func(s image.State) page.Key { return proj.Key(o.Column, s) }, Show,
		func(cursor string, n *gqlmodel.RegisteredImage) *gqlmodel.RegisteredImageEdge {
			return &gqlmodel.RegisteredImageEdge{Cursor: cursor, Node: n}
		})
	return c, nil
}

func order(in *gqlmodel.ImageOrder) page.Order {
	o := page.Order{Column: proj.ByCreated, IDColumn: "t.id", Descending: true}
	if in == nil {
		return o
	}
	if in.Field == gqlmodel.ImageOrderFieldName {
		o.Column = proj.ByName
	}
	o.Descending = in.Direction == gqlmodel.OrderDirectionDesc
	return o
}

func filter(in *gqlmodel.ImageFilter) (proj.Filter, error) {
	if in == nil {
		return proj.Filter{}, nil
	}
	var faults fault.List
	f := proj.Filter{
		Kinds: texts(in.Kinds.Value()), Frameworks: texts(in.Frameworks.Value()), Scenarios: texts(in.Scenarios.Value()),
	}
	for _, t := range []struct {
		given *string
		to    *string
		name  string
	}{{in.AcceleratorType.Value(), &f.Accelerator, "acceleratorType"}, {in.Search.Value(), &f.Search, "search"}} {
		if t.given != nil {
			clean, bad := text.Line(0, 100).Clean(*t.given, "filter", t.name)
			faults.Add(bad)
			*t.to = clean
		}
	}
	return f, faults.Err()
}

func texts[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}
