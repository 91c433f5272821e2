package people

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	proj "tallyard/projections/people"
)

// ShowTenant is a tenant of the read model.
func ShowTenant(t proj.Tenant) *gqlmodel.Tenant {
	return &gqlmodel.Tenant{ID: relay.Of(relay.Tenant, t.ID), Name: t.Name, CreatedAt: t.Created}
}

// ShowProject is a project of the read model.
func ShowProject(p proj.Project) *gqlmodel.Project {
	return &gqlmodel.Project{ID: relay.Of(relay.Project, p.ID), Name: p.Name, Description: p.Description, CreatedAt: p.Created}
}

// ShowUser is a person of the read model. The e-mail address is cut by [API.Email].
func ShowUser(u proj.User) *gqlmodel.User {
	return &gqlmodel.User{
		ID: relay.Of(relay.User, u.ID), LoginName: u.LoginName, DisplayName: u.DisplayName,
		Email: maybe(u.Email), State: gqlmodel.UserState(u.State), UserID: u.ID,
	}
}

// Tenant is a tenant that the viewer sees, by the loaders; nil for the nil id.
func (a *API) Tenant(ctx context.Context, id uuid.UUID) (*gqlmodel.Tenant, error) {
	return show(ctx, loader.From(ctx).Tenants, id, ShowTenant)
}

// Project is a project that the viewer sees, by the loaders; nil for the nil id.
func (a *API) Project(ctx context.Context, id uuid.UUID) (*gqlmodel.Project, error) {
	return show(ctx, loader.From(ctx).Projects, id, ShowProject)
}

// User is a person whom the viewer sees, by the loaders; nil for the nil id.
func (a *API) User(ctx context.Context, id uuid.UUID) (*gqlmodel.User, error) {
	return show(ctx, loader.From(ctx).Users, id, ShowUser)
}

func show[R, N any](ctx context.Context, by loader.ByID[R], id uuid.UUID, node func(R) *N) (*N, error) {
	if id == uuid.Nil {
		return nil, nil
	}
	row, err := by.Load(ctx, id)
	if err != nil || row == nil {
		return nil, err
	}
	return node(*row), nil
}

// Email is a person's e-mail address, for themselves and for who reads
// everything of the tenant.
func (a *API) Email(ctx context.Context, obj *gqlmodel.User) (*string, error) {
	v, err := authn.Must(ctx)
	if err != nil || !reads(v, obj.UserID) {
		return nil, err
	}
	return obj.Email, nil
}

// Roles are the roles that a person holds, for themselves and for who reads
// everything of the tenant; none for others.
func (a *API) Roles(ctx context.Context, obj *gqlmodel.User) ([]*gqlmodel.RoleGrant, error) {
	v, err := authn.Must(ctx)
	if err != nil || !reads(v, obj.UserID) {
		return []*gqlmodel.RoleGrant{}, err
	}
	if obj.Roles != nil {
		return obj.Roles, nil // as a command left them
	}
	held, err := loader.From(ctx).Roles.Load(ctx, obj.UserID)
	return showRoles(held), err
}

func showRoles(held []user.Grant) []*gqlmodel.RoleGrant {
	list := make([]*gqlmodel.RoleGrant, len(held))
	for i, g := range held {
		list[i] = &gqlmodel.RoleGrant{Role: gqlmodel.Role(g.Role), ProjectID: g.Project}
	}
	return list
}

// reads tells whether the viewer may know more of a person than their name.
func reads(v authn.Viewer, id uuid.UUID) bool {
	return v.Grants.Active && (v.User() == id || v.Grants.ReadsAll())
}

// Me is the query me.
func (a *API) Me(ctx context.Context) (*gqlmodel.Viewer, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.Viewer{CanReadAudit: v.Grants.ReadsAudit()}, nil
}

// Myself is the viewer's own user: from the log while the read model does not
// have a person who was made a moment ago.
func (a *API) Myself(ctx context.Context) (*gqlmodel.User, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	u, err := a.User(ctx, v.User())
	if err != nil || u != nil {
		return u, err
	}
	return a.userAt(ctx, v.Tenant, v.User(), newest)
}

// MyTenant is the viewer's tenant, from the log while the read model does not
// have it yet.
func (a *API) MyTenant(ctx context.Context) (*gqlmodel.Tenant, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	t, err := a.Tenant(ctx, v.Tenant)
	if err != nil || t != nil {
		return t, err
	}
	s, created, err := foldAt(ctx, a.Runtime, tenant.Aggregate, es.PlatformTenant, v.Tenant, newest)
	return ShowTenant(proj.Tenant{ID: v.Tenant, Name: s.Name, Created: created}), err
}

// MyProjects are the projects that the viewer belongs to.
func (a *API) MyProjects(ctx context.Context) ([]*gqlmodel.Project, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	found, err := loader.From(ctx).Projects.LoadAll(ctx, v.Grants.ProjectIDs())
	if err != nil {
		return nil, err
	}
	list := []*gqlmodel.Project{}
	for _, p := range found {
		if p != nil {
			list = append(list, ShowProject(*p))
		}
	}
	return list, nil
}

// newest is a position behind all that there are.
const newest = es.Position(math.MaxUint64)

// userAt is a person as the log had them at a position; nil when there was none.
// Names are those of now: they stand apart, so that they can be erased.
func (a *API) userAt(ctx context.Context, tenant, id uuid.UUID, at es.Position) (*gqlmodel.User, error) {
	s, _, err := foldAt(ctx, a.Runtime, user.Aggregate, tenant, id, at)
	if err != nil || !s.Exists() {
		return nil, err
	}
	p, err := a.Users.Person(ctx, tenant, s.Person)
	if err != nil {
		return nil, err
	}
	row := proj.User{ID: id, LoginName: p.LoginName, DisplayName: p.DisplayName, Email: p.Email, State: s.Status}
	if p.Erased {
		row.LoginName = user.ErasedName
	}
	u := ShowUser(row)
	u.Roles = showRoles(s.Roles)
	return u, nil
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

func maybe(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
