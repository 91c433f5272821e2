package algorithm_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	domainaccess "tallyard/domain/access"
	domain "tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/patch"
	"tallyard/domain/workload"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/access"
	"tallyard/projections/algorithm"
	"tallyard/projections/internal/projtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func fixed(last byte) uuid.UUID {
	id := uuid.MustParse("0198a000-0000-7000-8000-000000000000")
	id[15] = last
	return id
}

var (
	acme, globex         = fixed(1), fixed(2)
	vision, speech       = fixed(3), fixed(4)
	alice, bob, carol    = fixed(10), fixed(11), fixed(12)
	admin, aud, stranger = fixed(13), fixed(14), fixed(15)
	home                 = fixed(40)
)

var people = map[uuid.UUID]domainaccess.Grants{
	alice:    {Tenant: acme, User: alice, Active: true, Projects: map[uuid.UUID]domainaccess.Role{vision: domainaccess.Member}},
	bob:      {Tenant: acme, User: bob, Active: true, Projects: map[uuid.UUID]domainaccess.Role{vision: domainaccess.Member, speech: domainaccess.Member}},
	carol:    {Tenant: acme, User: carol, Active: true},
	admin:    {Tenant: acme, User: admin, Active: true, Roles: []domainaccess.Role{domainaccess.TenantAdmin}},
	aud:      {Tenant: acme, User: aud, Active: true, Roles: []domainaccess.Role{domainaccess.Auditor}},
	stranger: {Tenant: globex, User: stranger, Active: true, Roles: []domainaccess.Role{domainaccess.TenantAdmin}, Projects: map[uuid.UUID]domainaccess.Role{vision: domainaccess.Member}},
}

type grants struct{}

func (grants) Grants(_ context.Context, _, user uuid.UUID) (domainaccess.Grants, error) {
	return people[user], nil
}

type homes struct{}

func (homes) Script(_ context.Context, _, _ uuid.UUID, directory, script string) (domain.Script, error) {
	return domain.Script{Space: home, Directory: directory, Script: script}, nil
}

func (homes) Free(context.Context, uuid.UUID, uuid.UUID, string) (uuid.UUID, error) { return home, nil }

// openProjects says of every project that it is there.
type openProjects struct{}

func (openProjects) Exists(context.Context, uuid.UUID, uuid.UUID) (bool, error) { return true, nil }

type noApprovals struct{}

func (noApprovals) GlobalAlgorithmApprovalRequired(context.Context, uuid.UUID, uuid.UUID) (bool, error) {
	return false, nil
}

type noModels struct{}

func (noModels) Model(context.Context, domainaccess.Grants, uuid.UUID) (bool, error) {
	return true, nil
}

type world struct {
	*domain.Handler
	t       *testing.T
	queries algorithm.Queries
}

func newWorld(t *testing.T) *world {
	t.Helper()
	rt, reader := projtest.Open(t, algorithm.Projection, domain.Types)
	return &world{
		Handler: &domain.Handler{Runtime: rt, Access: grants{}, Projects: openProjects{}, Directories: homes{}, Models: noModels{}, Settings: noApprovals{}}, t: t,
		queries: algorithm.Queries{Reader: reader},
	}
}

func by(user uuid.UUID) es.Command {
	return es.Command{ID: uuid.New(), Action: "test", Tenant: people[user].Tenant, Actor: es.Actor{Kind: es.ActorUser, User: user}}
}

func system() es.Command { return es.System(uuid.New(), "test", "test", acme) }

func (w *world) create(user, project uuid.UUID, name string, in domain.VersionInput) domain.VersionRef {
	w.t.Helper()
	r, err := w.Create(w.t.Context(), by(user), domain.CreateInput{Project: project, Name: name, VersionInput: in})
	if err != nil {
		w.t.Fatal(err)
	}
	return domain.VersionRef{Algorithm: r.Refs.Algorithm, Version: r.Refs.Version}
}

func version(label, description string) domain.VersionInput {
	return domain.VersionInput{Label: label, Source: &domain.SourceInput{Command: "ls"}, Fields: domain.Fields{
		Description: patch.To(description), Image: patch.To(workload.Image{Framework: workload.PyTorch, Reference: "x"}),
	}}
}

func (w *world) publish(user uuid.UUID, r domain.VersionRef, v domainaccess.Visibility) {
	w.t.Helper()
	if _, err := w.PublishVersion(w.t.Context(), by(user), domain.PublishInput{VersionRef: r, Visibility: v}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) fold(id uuid.UUID) domain.State {
	w.t.Helper()
	l, err := es.Load(w.t.Context(), w.Runtime, domain.Aggregate, acme, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return l.State
}

// caughtUp waits until everything in the log is in the tables.
func (w *world) caughtUp() {
	w.t.Helper()
	for rec, err := range w.Runtime.Log.ReadAll(w.t.Context(), es.StartPosition, es.Backward, 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
		defer cancel()
		if err := w.queries.Reader.Await(ctx, rec.Position, algorithm.Projection.Name); err != nil {
			w.t.Fatal(err)
		}
	}
}

func viewer(user uuid.UUID) access.Filter { return access.FilterOf(people[user]) }

func ids[T any](list []T, id func(T) uuid.UUID) (out []uuid.UUID) {
	for _, x := range list {
		out = append(out, id(x))
	}
	return out
}

func sorted(list []uuid.UUID) []uuid.UUID {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return list
}
