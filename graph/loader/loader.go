// Package loader gathers the look-ups of one request, so that a list of a
// hundred rows asks the database once per kind of nested thing. Loaders live
// as long as one response and see what the viewer sees.
package loader

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
	"github.com/vikstrous/dataloadgen"

	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/approval"
	"tallyard/domain/dataset"
	"tallyard/domain/image"
	"tallyard/domain/model"
	"tallyard/domain/operation"
	"tallyard/domain/storage"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	projaccess "tallyard/projections/access"
	projalgorithm "tallyard/projections/algorithm"
	projapproval "tallyard/projections/approval"
	projaudit "tallyard/projections/audit"
	projdataset "tallyard/projections/dataset"
	projimage "tallyard/projections/image"
	projmodel "tallyard/projections/model"
	projoperation "tallyard/projections/operation"
	"tallyard/projections/page"
	projpeople "tallyard/projections/people"
	projstorage "tallyard/projections/storage"
)

// wait is how long a loader gathers keys. The executor resolves the fields of
// a list at once, so that a moment is enough.
const wait = 500 * time.Microsecond

// Queries are the read sides that loaders ask.
type Queries struct {
	Algorithms projalgorithm.Queries
	Models     projmodel.Queries
	Approvals  projapproval.Queries
	Operations projoperation.Queries
	People     projpeople.Queries
	Audit      projaudit.Queries
	Access     projaccess.Queries
	Storage    projstorage.Queries
	DataSets   projdataset.Queries
	Images     projimage.Queries
	Progress   ProgressSource
	Usage      UsageSource
}

// UsageSource tells how much spaces hold.
type UsageSource interface {
	Find(ctx context.Context, tenant uuid.UUID, spaces []uuid.UUID) (map[uuid.UUID]Usage, error)
}

// Usage is what a space holds.
type Usage struct {
	Bytes     int64
	CountedAt time.Time
}

// ProgressSource tells how far running operations are.
type ProgressSource interface {
	Find(ctx context.Context, tenant uuid.UUID, operations []uuid.UUID) (map[uuid.UUID]Progress, error)
}

// Progress is how far a running operation is.
type Progress struct{ DoneBytes, TotalBytes, DoneFiles, TotalFiles int64 }

// ByID loads things by their ids; what is not found or not seen is nil.
type ByID[V any] = *dataloadgen.Loader[uuid.UUID, *V]

// Loaders are the loaders of one response.
type Loaders struct {
	Tenants    ByID[projpeople.Tenant]
	Users      ByID[projpeople.User]
	Roles      *dataloadgen.Loader[uuid.UUID, []user.Grant]
	Powers     *dataloadgen.Loader[uuid.UUID, projaccess.Powers]
	Projects   ByID[projpeople.Project]
	Spaces     ByID[storage.State]
	Algorithms *dataloadgen.Loader[uuid.UUID, *algorithm.State]
	Versions   *dataloadgen.Loader[uuid.UUID, *projalgorithm.Version]
	Latest     *dataloadgen.Loader[uuid.UUID, *projalgorithm.Version]
	VersionsOf *dataloadgen.Loader[PageOf, page.Rows[projalgorithm.Version]]
	MembersOf  *dataloadgen.Loader[PageOf, page.Rows[projpeople.Member]]
	Favorites  *dataloadgen.Loader[uuid.UUID, bool]
	Approvals  *dataloadgen.Loader[uuid.UUID, *approval.State]
	Operations *dataloadgen.Loader[uuid.UUID, *operation.State]
	Progress   *dataloadgen.Loader[uuid.UUID, *Progress]
	Usage      ByID[Usage]
	DataSets   *dataloadgen.Loader[uuid.UUID, *dataset.State]
	Images     *dataloadgen.Loader[uuid.UUID, *image.State]
	Filter     projaccess.Filter
	Models     ByID[model.State]
	// ModelVersions, LatestOfModel and VersionsOfModel are those of models.
	ModelVersions   ByID[projmodel.Version]
	LatestOfModel   ByID[projmodel.Version]
	VersionsOfModel *dataloadgen.Loader[PageOf, page.Rows[projmodel.Version]]
}

type loadersKey struct{}

// From gives the loaders of the response that is being made.
func From(ctx context.Context) *Loaders {
	l, _ := ctx.Value(loadersKey{}).(*Loaders)
	return l
}

// Extension gives each response loaders of its own.
type Extension struct{ Queries Queries }

var _ graphql.ResponseInterceptor = Extension{}

// ExtensionName implements graphql.HandlerExtension.
func (Extension) ExtensionName() string { return "Loaders" }

// Validate implements graphql.HandlerExtension.
func (Extension) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptResponse implements graphql.ResponseInterceptor; it is called for
// every item of a subscription, too.
func (e Extension) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	return next(e.Queries.With(ctx))
}

// With puts new loaders into a context.
func (q Queries) With(ctx context.Context) context.Context {
	v, _ := authn.From(ctx) // without a viewer the filter lets nothing through
	return context.WithValue(ctx, loadersKey{}, q.loaders(v.Grants))
}

func (q Queries) loaders(g access.Grants) *Loaders {
	f := projaccess.FilterOf(g)
	return &Loaders{
		Filter: f,
		Tenants: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projpeople.Tenant, error) {
			return q.People.TenantsByID(ctx, g, ids)
		}),
		Spaces: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]storage.State, error) {
			return q.Storage.ByIDs(ctx, f, ids)
		}),
		Roles: each(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID][]user.Grant, error) {
			return q.Access.RolesOf(ctx, g, ids)
		}),
		Powers: each(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projaccess.Powers, error) {
			return q.Access.PowersOf(ctx, g, ids)
		}),
		Users: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projpeople.User, error) {
			return q.People.UsersByID(ctx, g, ids)
		}),
		Projects: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projpeople.Project, error) {
			return q.People.ProjectsByID(ctx, g, ids)
		}),
		Algorithms: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]algorithm.State, error) {
			return q.Algorithms.ByIDs(ctx, f, ids)
		}),
		Versions: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projalgorithm.Version, error) {
			return q.Algorithms.VersionsByIDs(ctx, f, ids)
		}),
		Latest: dataloadgen.NewLoader(q.latest(f), dataloadgen.WithWait(wait)),
		VersionsOf: pages(func(ctx context.Context, of PageOf, ids []uuid.UUID) (map[uuid.UUID]page.Rows[projalgorithm.Version], error) {
			return q.Algorithms.VersionsOf(ctx, f, ids, of.Published, of.page())
		}),
		Models: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]model.State, error) {
			return q.Models.ByIDs(ctx, f, ids)
		}),
		ModelVersions: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projmodel.Version, error) {
			return q.Models.VersionsByIDs(ctx, f, ids)
		}),
		LatestOfModel: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]projmodel.Version, error) {
			rows, err := q.Models.VersionsOf(ctx, f, ids, page.Page{First: 1})
			latest := make(map[uuid.UUID]projmodel.Version, len(rows))
			for id, r := range rows {
				if len(r.Items) > 0 {
					latest[id] = r.Items[0]
				}
			}
			return latest, err
		}),
		VersionsOfModel: pages(func(ctx context.Context, of PageOf, ids []uuid.UUID) (map[uuid.UUID]page.Rows[projmodel.Version], error) {
			return q.Models.VersionsOf(ctx, f, ids, of.page())
		}),
		MembersOf: pages(func(ctx context.Context, of PageOf, ids []uuid.UUID) (map[uuid.UUID]page.Rows[projpeople.Member], error) {
			return q.People.MembersOf(ctx, g, ids, of.At, of.page())
		}),
		Favorites: each(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]bool, error) {
			return q.Algorithms.FavoritesOf(ctx, f, ids)
		}),
		Approvals: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]approval.State, error) {
			return q.Approvals.ByIDs(ctx, f, ids)
		}),
		Operations: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]operation.State, error) {
			return q.Operations.ByIDs(ctx, f, ids)
		}),
		DataSets: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]dataset.State, error) {
			return q.DataSets.ByIDs(ctx, f, ids)
		}),
		Images: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]image.State, error) {
			return q.Images.ByIDs(ctx, f, ids)
		}),
		Usage: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]Usage, error) {
			return q.Usage.Find(ctx, f.Tenant, ids)
		}),
		Progress: one(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]Progress, error) {
			return q.Progress.Find(ctx, f.Tenant, ids)
		}),
	}
}

func (q Queries) latest(f projaccess.Filter) func(context.Context, []uuid.UUID) ([]*projalgorithm.Version, []error) {
	return func(ctx context.Context, ids []uuid.UUID) ([]*projalgorithm.Version, []error) {
		rows, err := q.Algorithms.VersionsOf(ctx, f, ids, false, page.Page{First: 1})
		list := make([]*projalgorithm.Version, len(ids))
		for i, id := range ids {
			if r := rows[id]; len(r.Items) > 0 {
				list[i] = &r.Items[0]
			}
		}
		return list, all(err)
	}
}

// one makes a loader from a look-up by ids; what is not found is nil.
func one[V any](find func(context.Context, []uuid.UUID) (map[uuid.UUID]V, error)) *dataloadgen.Loader[uuid.UUID, *V] {
	return dataloadgen.NewLoader(func(ctx context.Context, ids []uuid.UUID) ([]*V, []error) {
		found, err := find(ctx, ids)
		list := make([]*V, len(ids))
		for i, id := range ids {
			if v, ok := found[id]; ok {
				list[i] = &v
			}
		}
		return list, all(err)
	}, dataloadgen.WithWait(wait))
}

// each makes a loader from a look-up by ids; what is not found is the zero value.
func each[V any](find func(context.Context, []uuid.UUID) (map[uuid.UUID]V, error)) *dataloadgen.Loader[uuid.UUID, V] {
	return dataloadgen.NewLoader(func(ctx context.Context, ids []uuid.UUID) ([]V, []error) {
		found, err := find(ctx, ids)
		list := make([]V, len(ids))
		for i, id := range ids {
			list[i] = found[id]
		}
		return list, all(err)
	}, dataloadgen.WithWait(wait))
}

// all is the error of every key of a batch.
func all(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}
