package people

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/history"
	"tallyard/graph/relay"
	proj "tallyard/projections/people"
)

// When is the moment that a query of one thing asks for: now, when neither AsOf
// nor AsOfPosition is given.
type When struct {
	AtLeast      *string
	AsOf         *time.Time
	AsOfPosition *string
}

// GetUser is the query user.
func (a *API) GetUser(ctx context.Context, id string, w When) (*gqlmodel.User, error) {
	return get(ctx, a, relay.User, id, w, a.User, a.userAt)
}

// GetProject is the query project.
func (a *API) GetProject(ctx context.Context, id string, w When) (*gqlmodel.Project, error) {
	return get(ctx, a, relay.Project, id, w, a.Project, a.projectAt)
}

// GetTenant is the query tenant.
func (a *API) GetTenant(ctx context.Context, id string, w When) (*gqlmodel.Tenant, error) {
	return get(ctx, a, relay.Tenant, id, w, a.Tenant,
		func(ctx context.Context, _, id uuid.UUID, at es.Position) (*gqlmodel.Tenant, error) {
			return a.tenantAt(ctx, id, at)
		})
}

// get answers a query of one thing. Its past is for who sees it today: what a
// viewer does not see now was never there for them.
func get[N any](ctx context.Context, a *API, kind relay.Kind, id string, w When,
	now func(context.Context, uuid.UUID) (*N, error), at func(ctx context.Context, tenant, id uuid.UUID, at es.Position) (*N, error),
) (*N, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.Commands.AtLeast(ctx, w.AtLeast); err != nil {
		return nil, err
	}
	moment, past, err := a.History.Moment(ctx, w.AsOf, w.AsOfPosition)
	if err != nil {
		return nil, err
	}
	parsed, ok := relay.Parse(id)
	if !ok || parsed.Kind != kind {
		return nil, nil
	}
	n, err := now(ctx, parsed.UUID)
	if err != nil || n == nil || !past {
		return n, err
	}
	return at(ctx, v.Tenant, parsed.UUID, moment)
}

// newest is a position behind all that there are.
const newest = es.Position(math.MaxUint64)

// userAt is a person as the log had them at a position; nil when there was none.
// What they were called comes from their own stream as of then, while it can be
// read: who is erased has no name at any moment.
func (a *API) userAt(ctx context.Context, tenant, id uuid.UUID, at es.Position) (*gqlmodel.User, error) {
	s, _, err := foldAt(ctx, a.Runtime, user.Aggregate, tenant, id, at)
	if err != nil || !s.Exists() {
		return nil, err
	}
	p, err := a.Users.PersonAt(ctx, tenant, s.Person, at)
	if err != nil {
		return nil, err
	}
	row := proj.User{ID: id, LoginName: p.LoginName, DisplayName: p.DisplayName, Email: p.Email, State: s.Status}
	if p.Erased {
		row.LoginName = user.ErasedName
	}
	u := ShowUser(row)
	u.Roles, u.Permissions = showRoles(s.Roles), showPermissions(s.Permissions)
	scope := scopeOf(s.Scope)
	u.BusinessScope, u.Quota = &scope, showQuota(s.Quota)
	return u, nil
}

// projectAt is a project as the log had it at a position; nil when there was none.
func (a *API) projectAt(ctx context.Context, tenant, id uuid.UUID, at es.Position) (*gqlmodel.Project, error) {
	s, created, err := foldAt(ctx, a.Runtime, project.Aggregate, tenant, id, at)
	if err != nil || !s.Exists() {
		return nil, err
	}
	p := ShowProject(proj.Project{ID: id, Name: s.Name, Description: s.Description, Version: s.Version, Created: created})
	p.At, p.State = at, projectState(s.Closed)
	return p, nil
}

// tenantAt is a tenant as the log had it at a position; nil when there was none.
func (a *API) tenantAt(ctx context.Context, id uuid.UUID, at es.Position) (*gqlmodel.Tenant, error) {
	s, created, err := foldAt(ctx, a.Runtime, tenant.Aggregate, es.PlatformTenant, id, at)
	if err != nil || !s.Exists() {
		return nil, err
	}
	return ShowTenant(proj.Tenant{ID: id, Name: s.Name, Version: s.Version, Created: created}), nil
}

// foldAt folds an aggregate up to a position and tells when it began.
func foldAt[S any](ctx context.Context, rt *es.Runtime, a es.Aggregate[S], tenant, id uuid.UUID, at es.Position) (s S, began time.Time, err error) {
	for env, err := range es.Events(ctx, rt, a.Stream(tenant, id), 0) {
		if err != nil {
			return s, began, err
		}
		if env.Position > at {
			break
		}
		if began.IsZero() {
			began = env.Meta.Time
		}
		s = a.Evolve(s, env)
	}
	return s, began, nil
}

// HistoryOfTenant is what happened to a tenant.
func (a *API) HistoryOfTenant(ctx context.Context, obj *gqlmodel.Tenant, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	return a.History.Of(ctx, tenant.Aggregate.Stream(es.PlatformTenant, obj.TenantID), first, after, nil)
}

// HistoryOfProject is what happened to a project.
func (a *API) HistoryOfProject(ctx context.Context, obj *gqlmodel.Project, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	return a.History.Of(ctx, project.Aggregate.Stream(v.Tenant, obj.ProjectID), first, after, nil)
}

// HistoryOfUser is what happened to a person, cut to what the viewer may know of
// them. What they were called comes from the person's own stream, and is gone
// with it (AUD-06).
func (a *API) HistoryOfUser(ctx context.Context, obj *gqlmodel.User, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	s, err := a.Users.Load(ctx, v.Tenant, obj.UserID)
	if err != nil {
		return nil, err
	}
	all := Reads(v, obj.UserID)
	return a.History.Read(ctx, history.Source{
		Streams: []es.StreamID{user.Aggregate.Stream(v.Tenant, obj.UserID), user.PersonStream(v.Tenant, s.Person)},
		Keep:    func(e es.Envelope) bool { return all || slices.Contains(user.PublicEvents, e.Name) },
		Changes: func(ctx context.Context, e es.Envelope) ([]es.Change, error) {
			if e.Stream.Category == user.PersonCategory {
				return a.Users.PersonChanges(ctx, e, all)
			}
			return e.Event.Changes(), nil
		},
	}, first, after)
}
