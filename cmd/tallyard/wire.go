package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/cmd/internal/filework"
	"tallyard/domain/es"
	"tallyard/domain/flows/devseed"
	"tallyard/domain/flows/signin"
	"tallyard/graph"
	graphalgorithm "tallyard/graph/algorithm"
	graphapproval "tallyard/graph/approval"
	graphaudit "tallyard/graph/audit"
	"tallyard/graph/authn"
	"tallyard/graph/command"
	graphdataset "tallyard/graph/dataset"
	"tallyard/graph/generated"
	"tallyard/graph/history"
	graphimage "tallyard/graph/image"
	"tallyard/graph/live"
	"tallyard/graph/loader"
	graphmodel "tallyard/graph/model"
	graphoperation "tallyard/graph/operation"
	graphpeople "tallyard/graph/people"
	"tallyard/graph/problem"
	"tallyard/graph/relay"
	graphsetting "tallyard/graph/setting"
	graphstorage "tallyard/graph/storage"
	"tallyard/graph/transport"
	"tallyard/graph/transport/browser"
	transportfiles "tallyard/graph/transport/files"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/embedded"
	"tallyard/infra/files"
	"tallyard/infra/keys"
	"tallyard/infra/oidc"
	"tallyard/infra/postgres"
	"tallyard/processes/driver"
	"tallyard/processes/lifecycle"
	"tallyard/processes/operations"
	"tallyard/processes/repair"
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
	projstorage "tallyard/projections/storage"
)

// parts is the whole program, wired and not yet started.
type parts struct {
	config config
	logger *slog.Logger
	log    *eventstore.Log
	pool   *pgxpool.Pool
	disk   *files.Store
	store  uuid.UUID // identity of the event store
	domain *domain
	reader *runner.Reader
	runner *runner.Runner
	// projecting is what runner was made with.
	projecting runner.Config
	auth       *authn.Authenticator
	hub        *live.Hub
	graphql    *transport.Handler
	files      *transportfiles.Handler
	browser    *browser.Handler // nil: there is no identity provider
	worker     *operations.Worker
	services   []lifecycle.Service // in the order in which they start
	origins    origins
	accounts   accounts
	digests    digests
	events     *embedded.Server // nil: another event store
}

// build wires everything on stores that are up.
func build(ctx context.Context, c config, s *stores, logger *slog.Logger) (p *parts, err error) {
	p = &parts{config: c, logger: logger, events: s.server}
	if p.log, err = eventstore.Open(ctx, eventstore.Config{Address: s.eventStore, Logger: logger}); err != nil {
		return p, fmt.Errorf("event store: %w", err)
	}
	if p.pool, err = postgres.Open(ctx, s.database, postgres.Options{}); err != nil {
		return p, err
	}
	if err = postgres.Migrate(ctx, p.pool); err != nil {
		return p, err
	}
	master, err := masterKey(c)
	if err != nil {
		return p, err
	}
	held := postgres.NewPersonKeys(p.pool)
	persons, err := keys.NewPersons(master, held, es.SystemClock{})
	if err != nil {
		return p, err
	}
	reg, err := registry()
	if err != nil {
		return p, err
	}
	p.disk, err = files.Open(files.Config{
		SpacesDir: filepath.Join(c.dataDir, "spaces"), PublishedDir: filepath.Join(c.dataDir, "published"),
		CacheDir: filepath.Join(c.dataDir, "cache"), Logger: logger,
		CopyRate: c.copyRate,
	})
	if err != nil {
		return p, err
	}
	p.domain = newDomain(p.log, reg, p.pool, master, persons, p.disk, logger)
	p.domain.spaces.Limits = c.limits
	p.accounts = accounts{p.domain.spaces, postgres.NewSpaceUsage(p.pool), p.disk}
	p.digests = digests{postgres.NewFileDigests(p.pool)}
	p.disk.Account(p.accounts, p.digests)
	if p.store, err = es.Identity(ctx, p.domain.runtime); err != nil {
		return p, fmt.Errorf("event store: %w", err)
	}
	if err := p.belong(ctx, c, held); err != nil {
		return p, err
	}
	p.origins = origins{postgres.NewOrigins(p.pool)}
	set, err := projections(persons)
	if err != nil {
		return p, err
	}
	p.reader = runner.NewReader(p.pool, p.log, set)
	owned := newBelongings(p.log, p.reader)
	p.domain.users.Belongings, p.domain.projects.Contents, p.domain.models.Users = owned, owned, owned
	if err := p.buildProjector(set); err != nil {
		return p, err
	}
	if err := p.buildAPI(master, set); err != nil {
		return p, err
	}
	p.buildWorker()
	return p, nil
}

func (p *parts) buildProjector(set *runner.Set) (err error) {
	leader := &postgres.Leader{Pool: p.pool, Logger: p.logger}
	p.projecting = runner.Config{
		DB: p.pool, Log: p.log, Registry: p.domain.runtime.Registry, Set: set, Store: p.store, Reader: p.reader, Logger: p.logger,
		Lead: func(ctx context.Context, work func(context.Context) error) error {
			return leader.Lead(ctx, "projector", work)
		},
	}
	p.runner, err = runner.New(p.projecting)
	return err
}

func (p *parts) buildAPI(master *keys.Master, set *runner.Set) error {
	sealer, err := relay.NewSealer(master.Derive("cursors"))
	if err != nil {
		return err
	}
	rt, d := p.domain.runtime, p.domain
	verifiers, err := p.verifiers()
	if err != nil {
		return err
	}
	p.auth = authn.New(d.users, rt.Clock, p.logger, verifiers...)
	p.hub = &live.Hub{Runtime: rt, Sealer: sealer, Waiter: p.reader, Logger: p.logger, Store: p.store}
	commands := &command.Gateway{
		IDs: rt.IDs, Clock: rt.Clock, Origins: p.origins, Waiter: p.reader, Sealer: sealer, Projections: set.Names(),
	}
	past := &history.Reader{Runtime: rt, Sealer: sealer, Index: p.reader}
	algorithms := projalgorithm.Queries{Reader: p.reader}
	models := projmodel.Queries{Reader: p.reader}
	running := progress{postgres.NewOperationProgress(p.pool)}
	queries := loader.Queries{
		Algorithms: algorithms, Approvals: projapproval.Queries{Reader: p.reader}, Models: models, Operations: projoperation.Queries{Reader: p.reader},
		People: projpeople.Queries{Reader: p.reader}, Progress: running,
		Access: projaccess.Queries{Reader: p.reader}, Storage: projstorage.Queries{Reader: p.reader},
		Usage: used{p.accounts.usage}, DataSets: projdataset.Queries{Reader: p.reader}, Images: projimage.Queries{Reader: p.reader},
	}
	find := &graph.Finder{
		Algorithms: &graphalgorithm.API{Runtime: rt, Handler: d.algorithms, Queries: algorithms, Commands: commands, Sealer: sealer, History: past, Live: p.hub},
		Models:     &graphmodel.API{Runtime: rt, Handler: d.models, Queries: models, Commands: commands, Sealer: sealer, History: past},
		Approvals:  &graphapproval.API{Runtime: rt, Handler: d.approvals, Queries: queries.Approvals, Commands: commands, Sealer: sealer, History: past, Live: p.hub},
		Operations: &graphoperation.API{Runtime: rt, Handler: d.operations, Queries: queries.Operations, Progress: running, Commands: commands, Sealer: sealer, History: past, Live: p.hub},
		People:     &graphpeople.API{Runtime: rt, Users: d.users, Projects: d.projects, Tenants: d.tenants, Onboarding: d.onboarding, Ownership: d.ownership, Queries: queries.People, Commands: commands, Sealer: sealer, History: past},
		Setting:    &graphsetting.API{Runtime: rt, Handler: d.settings, Commands: commands, History: past},
		Storage: &graphstorage.API{
			Runtime: rt, Handler: d.spaces, Queries: projstorage.Queries{Reader: p.reader},
			Disk: disk{p.disk}, Usage: queries.Usage, Sources: sources{algorithms, models}, Commands: commands, Sealer: sealer, History: past,
		},
	}
	find.DataSets = &graphdataset.API{Runtime: rt, Handler: d.dataSets, Queries: queries.DataSets, Commands: commands, Sealer: sealer, History: past}
	find.Images = &graphimage.API{Runtime: rt, Handler: d.images, Queries: queries.Images, Commands: commands, Sealer: sealer, History: past}
	find.Audit = &graphaudit.API{Queries: projaudit.Queries{Reader: p.reader}, Commands: commands, Sealer: sealer, Live: p.hub, Things: find}
	requestID := func(ctx context.Context) string { return transport.RequestInfoFrom(ctx).RequestID }
	p.graphql, err = transport.New(transport.Config{
		Schema: generated.NewExecutableSchema(generated.Config{Schema: publicSchema(), Resolvers: &graph.Resolver{
			Algorithms: find.Algorithms, Approvals: find.Approvals, Audit: find.Audit, Models: find.Models, Operations: find.Operations, People: find.People,
			Setting: find.Setting, Storage: find.Storage,
			DataSets: find.DataSets, Images: find.Images, Find: find,
		}}),
		Extensions:    []graphql.HandlerExtension{loader.Extension{Queries: queries}},
		Authenticator: p.auth, Present: problem.Presenter(p.logger, requestID), Logger: p.logger,
		Origins: p.config.origins, Loopback: p.config.dev, Introspection: p.config.introspect,
	})
	if err != nil {
		return err
	}
	moves := transfers{d.spaces, p.disk, p.origins, rt.Clock}
	p.files = transportfiles.New(transportfiles.Config{
		Authenticate: func(ctx context.Context, token string) (context.Context, error) {
			ctx, err := p.auth.Authenticate(ctx, token)
			return ctx, problem.Outage(err)
		},
		Spaces: moves, Store: p.disk, Sums: p.digests, Logger: p.logger,
		Recorder: moves,
	})
	return nil
}

// verifiers are the ways to sign in.
func (p *parts) verifiers() ([]authn.Verifier, error) {
	v := []authn.Verifier{authn.Tokens{Source: p.domain.users, Clock: p.domain.runtime.Clock}}
	if p.config.dev {
		v = append(v, &authn.Dev{Tenants: p.domain.tenants, Users: p.domain.users, Order: devseed.Tenants})
	}
	if p.config.providers == "" {
		return v, nil
	}
	providers, err := readProviders(p.config.providers)
	if err != nil {
		return nil, err
	}
	o := outsiders{
		verifier: oidc.New(providers, p.domain.runtime.Clock.Now), logger: p.logger,
		flow: &signin.Flow{Runtime: p.domain.runtime, Tenants: p.domain.tenants, Projects: p.domain.projects, Users: p.domain.users, Shown: p.shown},
	}
	sessions := p.newBrowsers()
	if err := p.buildBrowser(providers, o, sessions); err != nil {
		return nil, err
	}
	return append(v, sessions, o), nil
}

// buildWorker makes the loops that turn events into commands and work on files.
// They run in one process at a time.
func (p *parts) buildWorker() {
	rt := p.domain.runtime
	p.worker = operations.New(operations.Config{
		Operations: p.domain.operations, Pending: pending(projoperation.Queries{Reader: p.reader}),
		Work: filework.Work(p.disk), Samples: filework.Samples{Table: postgres.NewOperationProgress(p.pool)}, Logger: p.logger,
	})
	lead := func(ctx context.Context, name string, f func(context.Context) error) error {
		return (&postgres.Leader{Pool: p.pool, Logger: p.logger}).Lead(ctx, name, f)
	}
	worker := lifecycle.Under(lead, "worker",
		driver.New(rt, p.domain.artefacts.Process()),
		driver.New(rt, p.domain.publishing.Process()),
		driver.New(rt, p.domain.sharing.Process()),
		driver.New(rt, p.domain.caches.Process()),
		driver.New(rt, repair.Process(rt, p.domain.bearers())),
		p.worker,
		p.expiry(),
	)
	if p.config.has(roleProjector) {
		p.services = append(p.services, p.projector())
	}
	p.services = append(p.services,
		loop("refusals", func(ctx context.Context) error { return rt.Refusals.Run(ctx, rt) }, p.logger),
		loop("addresses", p.forgetAddresses, p.logger),
	)
	if p.config.has(roleAPI) {
		p.services = append(p.services, loop("live", p.hub.Run, p.logger), loop("sessions", func(ctx context.Context) error { return p.auth.Run(ctx, p.log) }, p.logger))
	}
	if p.config.has(roleWorker) {
		p.services = append(p.services, lifecycle.NewLoop(worker, p.logger), loop("uploads", p.sweepUploads, p.logger), loop("accounts", p.countSpaces, p.logger))
	}
}

// close lets go of what build opened, in the other order.
func (p *parts) close() error {
	if p.disk != nil {
		if err := p.disk.Close(); err != nil {
			p.logger.Warn("files not closed", "error", err)
		}
	}
	if p.pool != nil {
		p.pool.Close()
	}
	if p.log != nil {
		return p.log.Close()
	}
	return nil
}
