package people

import (
	"context"

	"github.com/google/uuid"

	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/loader"
	"tallyard/graph/relay"
	proj "tallyard/projections/people"
)

// ShowTenant is a tenant of the read model.
func ShowTenant(t proj.Tenant) *gqlmodel.Tenant {
	return &gqlmodel.Tenant{
		ID: relay.Of(relay.Tenant, t.ID), Name: t.Name, CreatedAt: t.Created, TenantID: t.ID,
		Version: int32(t.Version), //nolint:gosec // far below 2^31
	}
}

// ShowProject is a project of the read model.
func ShowProject(p proj.Project) *gqlmodel.Project {
	return &gqlmodel.Project{
		ID: relay.Of(relay.Project, p.ID), Name: p.Name, Description: p.Description, CreatedAt: p.Created, ProjectID: p.ID, State: projectState(p.Closed != nil),
		Version: int32(p.Version), //nolint:gosec // far below 2^31
	}
}

func projectState(closed bool) gqlmodel.ProjectState {
	if closed {
		return gqlmodel.ProjectStateClosed
	}
	return gqlmodel.ProjectStateActive
}

// ShowUser is a person of the read model. The e-mail address is cut by [API.Email].
func ShowUser(u proj.User) *gqlmodel.User {
	return &gqlmodel.User{
		ID: relay.Of(relay.User, u.ID), LoginName: u.LoginName, DisplayName: u.DisplayName,
		Email: gqlmodel.NotEmpty(u.Email), State: gqlmodel.UserState(u.State), UserID: u.ID,
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
	if err != nil || !Reads(v, obj.UserID) {
		return nil, err
	}
	return obj.Email, nil
}

// Roles are the roles that a person holds, for themselves and for who reads
// everything of the tenant; none for others.
func (a *API) Roles(ctx context.Context, obj *gqlmodel.User) ([]*gqlmodel.RoleGrant, error) {
	v, err := authn.Must(ctx)
	if err != nil || !Reads(v, obj.UserID) {
		return []*gqlmodel.RoleGrant{}, err
	}
	if obj.Roles != nil {
		return obj.Roles, nil // as a command left them, or as they were
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

// Reads tells whether the viewer may know more of a person than their name and
// where they stand.
func Reads(v authn.Viewer, id uuid.UUID) bool {
	return v.Grants.Active && (v.User() == id || v.Grants.ReadsAll())
}

// Me is the query me.
func (a *API) Me(ctx context.Context) (*gqlmodel.Viewer, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return nil, err
	}
	return &gqlmodel.Viewer{
		Permissions: usable(v.Grants), BusinessScope: scopeOf(v.Grants.Scope), CanReadAudit: v.Grants.ReadsAudit(), CanReadPlatformAudit: v.Grants.ReadsPlatform(),
	}, nil
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
	return a.tenantAt(ctx, v.Tenant, newest)
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
