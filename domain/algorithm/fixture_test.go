package algorithm

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/domain/workload"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fixed(last byte) uuid.UUID {
	id := uuid.MustParse("0198a000-0000-7000-8000-000000000000")
	id[15] = last
	return id
}

var (
	acme, globex          = fixed(1), fixed(2)
	vision, speech        = fixed(3), fixed(4) // projects
	alice, bob, carol     = fixed(10), fixed(11), fixed(12)
	admin, audra, mallory = fixed(13), fixed(14), fixed(15)
	theAlgorithm          = fixed(20)
	v1, v2                = fixed(21), fixed(22)
	op1, op2              = fixed(31), fixed(32)
	home                  = fixed(40)
	at                    = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
)

// people are who works here: alice and bob in vision, carol in speech, an
// admin, an auditor who is an admin too, and mallory of another tenant.
var people = map[uuid.UUID]access.Grants{
	alice:   {Tenant: acme, User: alice, Active: true, Projects: map[uuid.UUID]access.Role{vision: access.Member}},
	bob:     {Tenant: acme, User: bob, Active: true, Projects: map[uuid.UUID]access.Role{vision: access.ProjectAdmin}},
	carol:   {Tenant: acme, User: carol, Active: true, Projects: map[uuid.UUID]access.Role{speech: access.Member}},
	admin:   {Tenant: acme, User: admin, Active: true, Roles: []access.Role{access.TenantAdmin}},
	audra:   {Tenant: acme, User: audra, Active: true, Roles: []access.Role{access.Auditor, access.TenantAdmin}},
	mallory: {Tenant: globex, User: mallory, Active: true, Roles: []access.Role{access.TenantAdmin}},
}

type source struct{}

func (source) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	if g, ok := people[user]; ok && g.Tenant == tenant {
		return g, nil
	}
	return access.Grants{Tenant: tenant, User: user}, nil
}

// disk stands for the owners' homes: every home has code/main.py, and what is
// in taken besides.
type disk struct{ taken []string }

func (d *disk) Script(_ context.Context, _, _ uuid.UUID, directory, script string) (Script, error) {
	if directory != "code" || script != "main.py" {
		return Script{}, fault.New(fault.Invalid, fault.CodeInvalidPath, "No such directory.").At("source", "script", "directory")
	}
	return Script{Space: home, Directory: directory, Script: script}, nil
}

func (d *disk) Free(_ context.Context, _, _ uuid.UUID, path string) (uuid.UUID, error) {
	if slices.Contains(d.taken, path) {
		return uuid.Nil, fault.New(fault.Conflict, fault.CodeNameTaken, "Taken.").At("label")
	}
	return home, nil
}

type someModels []uuid.UUID

func (m someModels) Model(_ context.Context, _ access.Grants, id uuid.UUID) (bool, error) {
	return slices.Contains(m, id), nil
}

type projects []uuid.UUID

func (p projects) Exists(_ context.Context, _, id uuid.UUID) (bool, error) {
	return slices.Contains(p, id), nil
}

// asks tells whether publications to the whole tenant wait for an approval.
type asks bool

func (a asks) GlobalAlgorithmApprovalRequired(context.Context, uuid.UUID, uuid.UUID) (bool, error) {
	return bool(a), nil
}

type world struct {
	*Handler
	t    *testing.T
	disk *disk
}

func newWorld(t *testing.T) *world {
	t.Helper()
	registry, err := es.NewRegistry(es.Types, Types)
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{}
	return &world{t: t, disk: d, Handler: &Handler{Access: source{}, Projects: projects{vision, speech}, Directories: d, Models: someModels{v2}, Settings: asks(false), Runtime: &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, NameKey: []byte("k"),
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}}}
}

// by is a command of a person.
func by(user uuid.UUID) es.Command {
	return es.Command{ID: uuid.New(), Action: "test", Tenant: people[user].Tenant, Actor: es.Actor{Kind: es.ActorUser, User: user}}
}

// create makes an algorithm, of a script or of a command.
func (w *world) create(user uuid.UUID, name string, in VersionInput) VersionRef {
	w.t.Helper()
	r, err := w.Create(w.t.Context(), by(user), CreateInput{Project: vision, Name: name, VersionInput: in})
	if err != nil {
		w.t.Fatal(err)
	}
	return VersionRef{Algorithm: r.Refs.Algorithm, Version: r.Refs.Version}
}

func scripted(label string) VersionInput {
	return VersionInput{Label: label, Source: &SourceInput{Directory: "code", Script: "main.py"}, Fields: imaged()}
}

func commanded(label string) VersionInput {
	return VersionInput{Label: label, Source: &SourceInput{Command: "python -V"}, Fields: imaged()}
}

func imaged() Fields {
	return Fields{Image: patch.To(workload.Image{Framework: workload.PyTorch, Reference: "pytorch:2.6"})}
}

func (w *world) state(r VersionRef) (State, Version) {
	w.t.Helper()
	l, err := es.Load(w.t.Context(), w.Runtime, Aggregate, acme, r.Algorithm)
	if err != nil {
		w.t.Fatal(err)
	}
	v, _ := l.State.Version(r.Version)
	return l.State, v
}

func (w *world) publish(user uuid.UUID, r VersionRef, vis access.Visibility) error {
	_, err := w.PublishVersion(w.t.Context(), by(user), PublishInput{VersionRef: r, Visibility: vis})
	return err
}

// published makes a version that is published with its files.
func (w *world) published(name string, vis access.Visibility) VersionRef {
	w.t.Helper()
	r := w.create(alice, name, scripted("1"))
	if err := w.publish(alice, r, vis); err != nil {
		w.t.Fatal(err)
	}
	_, v := w.state(r)
	st := Step{VersionRef: r, Operation: v.Operation, By: alice, Files: Files{Fingerprint: "f", Count: 1, Bytes: 2}}
	if err := w.Succeeded(w.t.Context(), es.System(uuid.New(), "test", "done", acme), Publish, st); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// fold gives the state after events of alice.
func fold(events ...es.Event) State {
	var s State
	for i, e := range events {
		s = evolve(s, es.Envelope{
			Stream: Aggregate.Stream(acme, theAlgorithm), Revision: es.Revision(i), Event: e,
			Meta: es.Metadata{Tenant: acme, Actor: es.Actor{Kind: es.ActorUser, User: alice}, Time: at.Add(time.Duration(i) * time.Second)},
		})
	}
	return s
}

func settings() Settings {
	return Settings{
		Description: "sorts", Image: workload.Image{Framework: workload.PyTorch, Reference: "pytorch:2.6"},
		Source:    Source{Script: &Script{Space: home, Directory: "code", Script: "main.py"}},
		Resources: workload.Resources{Workers: 1}, Deployment: workload.Single,
	}
}

// inState is the history of an algorithm with one version in a state.
func inState(status Status) []es.Event {
	created := AlgorithmCreated{Name: "sort", Owner: alice, Project: vision}
	plain := VersionAdded{OfVersion: OfVersion{v1}, Label: "1", Settings: settings()}
	copied := plain
	copied.Copy = &Copy{Operation: op1, Artefact: v2}
	start := PublicationStarted{OfVersion: OfVersion{v1}, Visibility: access.Group, Operation: op1, From: Created}
	done := VersionPublished{OfVersion: OfVersion{v1}, Visibility: access.Group, Fingerprint: "sha256:1", Files: &Files{"f", 1, 2}, From: Publishing, By: alice}
	switch status {
	case Creating:
		return []es.Event{created, copied}
	case CreateFailed:
		return []es.Event{created, copied, PreparationFailed{OfVersion{v1}, "gone"}}
	case Created:
		return []es.Event{created, plain}
	case ApprovalPending:
		return []es.Event{created, plain, ApprovalRequested{OfVersion{v1}, access.Global, op1, Version{Settings: plain.Settings}.Digest(), Created}}
	case Publishing:
		return []es.Event{created, plain, start}
	case PublishFailed:
		return []es.Event{created, plain, start, PublicationFailed{OfVersion{v1}, "gone"}}
	case Published:
		return []es.Event{created, plain, start, done}
	case Deleting:
		return []es.Event{created, plain, start, done, DeletionStarted{OfVersion{v1}, op2, Published}}
	case Deleted:
		return []es.Event{created, plain, VersionDeleted{OfVersion{v1}, "1", Created}, AlgorithmDeleted{"sort", vision}}
	}
	return nil
}

// names are the types of events, for comparison.
func names(events []es.Event) string {
	registry, err := es.NewRegistry(Types)
	if err != nil {
		panic(err)
	}
	list := make([]string, len(events))
	for i, e := range events {
		raw, err := registry.Encode(e, es.Metadata{})
		if err != nil {
			panic(err)
		}
		list[i] = strings.TrimSuffix(strings.TrimPrefix(raw.Type, "algorithm."), ".v1")
	}
	return strings.Join(list, " ")
}

// outcome is what a decision came to: events, "nothing", or a code.
func outcome(events []es.Event, err error) string {
	faults, ok := fault.All(err)
	switch {
	case ok:
		codes := make([]string, len(faults))
		for i, f := range faults {
			codes[i] = string(f.Code)
		}
		return strings.Join(codes, " ")
	case err != nil:
		return err.Error()
	case len(events) == 0:
		return "nothing"
	}
	return names(events)
}
