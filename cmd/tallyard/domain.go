package main

import (
	"context"
	"crypto/rand"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/cmd/internal/filework"
	"tallyard/domain/access"
	"tallyard/domain/algorithm"
	"tallyard/domain/approval"
	"tallyard/domain/dataset"
	"tallyard/domain/es"
	"tallyard/domain/flows/artefact"
	"tallyard/domain/flows/datasets"
	"tallyard/domain/flows/onboarding"
	"tallyard/domain/flows/ownership"
	"tallyard/domain/flows/publication"
	"tallyard/domain/flows/spaces"
	"tallyard/domain/image"
	"tallyard/domain/model"
	"tallyard/domain/operation"
	"tallyard/domain/project"
	"tallyard/domain/setting"
	"tallyard/domain/storage"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/infra/files"
	"tallyard/infra/keys"
	"tallyard/infra/postgres"
	projaccess "tallyard/projections/access"
	projalgorithm "tallyard/projections/algorithm"
	projapproval "tallyard/projections/approval"
	projaudit "tallyard/projections/audit"
	projdataset "tallyard/projections/dataset"
	projimage "tallyard/projections/image"
	projmodel "tallyard/projections/model"
	projoperation "tallyard/projections/operation"
	projpeople "tallyard/projections/people"
	"tallyard/projections/runner"
	projsetting "tallyard/projections/setting"
	projstorage "tallyard/projections/storage"
)

// registry knows the events of every feature: one line each.
func registry() (*es.Registry, error) {
	return es.NewRegistry(
		es.Types,
		tenant.Types,
		project.Types,
		user.Types,
		setting.Types,
		storage.Types,
		dataset.Types,
		image.Types,
		operation.Types,
		algorithm.Types,
		model.Types,
		approval.Types,
	)
}

// projections are the read models of every feature: one line each.
func projections(persons user.PersonKeys) (*runner.Set, error) {
	return runner.NewSet(
		projpeople.Projection(persons),
		projaccess.Projection,
		projsetting.Projection,
		projstorage.Projection,
		projdataset.Projection,
		projimage.Projection,
		projoperation.Projection,
		projalgorithm.Projection,
		projmodel.Projection,
		projapproval.Projection,
		projaudit.Projection,
	)
}

// domain is every feature's handler, with what they need of each other.
type domain struct {
	runtime    *es.Runtime
	tenants    *tenant.Handler
	onboarding *onboarding.Flow
	ownership  *ownership.Flow
	projects   *project.Handler
	users      *user.Handler
	settings   *setting.Handler
	spaces     *storage.Handler
	operations *operation.Handler
	algorithms *algorithm.Handler
	models     *model.Handler
	artefacts  *artefact.Flow
	approvals  *approval.Handler
	publishing *publication.Flow
	sharing    *spaces.Flow
	dataSets   *dataset.Handler
	caches     *datasets.Flow
	images     *image.Handler
}

func newDomain(log es.Log, reg *es.Registry, pool *pgxpool.Pool, master *keys.Master, persons user.PersonKeys, disk *files.Store, logger *slog.Logger) *domain {
	rt := &es.Runtime{
		Log: log, Registry: reg, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, Snapshots: postgres.NewSnapshots(pool),
		NameKey: master.Derive("names"), Logger: logger, Refusals: es.NewRefusals(),
	}
	d := &domain{runtime: rt}
	d.users = &user.Handler{Runtime: rt, Keys: persons, Random: rand.Reader}
	d.tenants = &tenant.Handler{Runtime: rt, Access: d.users}
	d.onboarding = &onboarding.Flow{Runtime: rt, Tenants: d.tenants, Users: d.users}
	d.projects = &project.Handler{Runtime: rt, Access: d.users}
	d.users.Projects = d.projects
	d.settings = &setting.Handler{Runtime: rt, Access: d.users, Projects: d.projects}
	d.spaces = &storage.Handler{Runtime: rt, Access: d.users, Files: filework.Spaces{Store: disk}}
	d.operations = &operation.Handler{Runtime: rt, Access: d.users}
	d.models = &model.Handler{Runtime: rt, Access: d.users, Projects: d.projects, Directories: directories{d.spaces, disk}}
	d.algorithms = &algorithm.Handler{
		Runtime: rt, Access: d.users, Projects: d.projects, Directories: directories{d.spaces, disk}, Models: models{d.models},
		Settings: d.settings,
	}
	d.ownership = &ownership.Flow{Runtime: rt, Users: d.users, Movers: map[string]ownership.Mover{algorithm.Category: d.algorithms, model.Category: d.models}}
	d.approvals = &approval.Handler{Runtime: rt, Access: d.users, Admins: d.users, Settings: d.settings}
	d.publishing = &publication.Flow{Runtime: rt, Approvals: d.approvals, Publishers: map[string]publication.Publisher{
		algorithm.VersionKind: publication.Algorithms{Handler: d.algorithms},
	}}
	d.approvals.Subjects = d.publishing
	d.artefacts = &artefact.Flow{Runtime: rt, Algorithms: d.algorithms, Operations: d.operations}
	d.sharing = &spaces.Flow{Runtime: rt, Spaces: d.spaces, Operations: d.operations}
	d.spaces.Operations = d.sharing
	d.dataSets = &dataset.Handler{
		Runtime: rt, Access: d.users, Projects: d.projects, Directories: directories{d.spaces, disk}, Users: workloads{},
	}
	d.caches = &datasets.Flow{Runtime: rt, DataSets: d.dataSets, Operations: d.operations}
	d.dataSets.Operations = d.caches
	d.images = &image.Handler{Runtime: rt, Access: d.users, Projects: d.projects, Users: imageUsers{}}
	d.ownership.Movers[dataset.Category], d.ownership.Movers[image.Category] = d.dataSets, d.images
	d.operations.Subjects = subjects(d.artefacts, d.sharing, d.caches)
	return d
}

// subjects are the flows that know what operations are done for.
func subjects(flows ...interface {
	operation.Subjects
	Kinds() []operation.Kind
},
) operation.SubjectsByKind {
	byKind := operation.SubjectsByKind{}
	for _, f := range flows {
		for _, k := range f.Kinds() {
			byKind[k] = f
		}
	}
	return byKind
}

// bearers are the things that can be given another name: one line each.
func (d *domain) bearers() map[string]es.Bearer {
	return map[string]es.Bearer{
		tenant.NameKind:  d.tenants.Bearer(),
		project.NameKind: d.projects.Bearer(),
		dataset.NameKind: d.dataSets.Bearer(),
		image.NameKind:   d.images.Bearer(),
	}
}

// bootstrap makes a tenant with a project and its first admin, and a token for
// them. Run again it makes nothing twice and gives another token.
func (d *domain) bootstrap(ctx context.Context, tenantName, projectName string, admin user.Person) (token string, err error) {
	cmd := func(action, key string, in uuid.UUID) es.Command {
		c := es.System(d.runtime.IDs.New(), "bootstrap", action, in)
		c.Key, c.Digest = "bootstrap/"+key, []byte(key)
		c.Reason = "First set-up of the installation."
		return c
	}
	made, err := d.tenants.Create(ctx, cmd("createTenant", tenantName, es.PlatformTenant), tenantName)
	if err != nil {
		return "", err
	}
	id := made.Refs.Tenant
	person, err := d.users.Create(ctx, cmd("createUser", admin.LoginName, id), admin)
	if err != nil {
		return "", err
	}
	for _, role := range []access.Role{access.TenantAdmin, access.Operator} {
		if _, err := d.users.GrantRole(ctx, cmd("grantRole", admin.LoginName+"/"+string(role), id), person.Refs.User, user.Grant{Role: role}); err != nil {
			return "", err
		}
	}
	home, err := d.projects.Create(ctx, cmd("createProject", projectName, id), project.Create{Name: projectName})
	if err != nil {
		return "", err
	}
	member := user.Grant{Role: access.ProjectAdmin, Project: home.Refs.Project}
	if _, err := d.users.GrantRole(ctx, cmd("grantRole", admin.LoginName+"/"+string(member.Role), id), person.Refs.User, member); err != nil {
		return "", err
	}
	issue := es.Command{ID: d.runtime.IDs.New(), Action: "createApiToken", Tenant: id, Actor: es.Actor{Kind: es.ActorUser, User: person.Refs.User}}
	issued, err := d.users.IssueToken(ctx, issue, user.NewToken{Name: "bootstrap"})
	return issued.Refs.Token, err
}
