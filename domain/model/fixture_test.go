package model

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/infra/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fixed(last byte) uuid.UUID {
	id := uuid.MustParse("0198a000-0000-7000-8000-000000000000")
	id[15] = last
	return id
}

var (
	acme, vision      = fixed(1), fixed(3)
	alice, bob, admin = fixed(10), fixed(11), fixed(13)
	home              = fixed(40)
	v1                = fixed(21)
)

// people are alice and bob in vision, and an admin.
var people = map[uuid.UUID]access.Grants{
	alice: {Tenant: acme, User: alice, Active: true, Projects: map[uuid.UUID]access.Role{vision: access.Member}},
	bob:   {Tenant: acme, User: bob, Active: true, Projects: map[uuid.UUID]access.Role{vision: access.Member}},
	admin: {Tenant: acme, User: admin, Active: true, Roles: []access.Role{access.TenantAdmin}},
}

// surroundings stand for the other features: every home has weights/run.py.
type surroundings struct{ uses []Use }

func (surroundings) Grants(_ context.Context, _, user uuid.UUID) (access.Grants, error) {
	return people[user], nil
}

func (surroundings) Exists(_ context.Context, _, id uuid.UUID) (bool, error) {
	return id == vision, nil
}

func (surroundings) Model(_ context.Context, _, _ uuid.UUID, directory, script string) (Directory, error) {
	if directory != "weights" {
		return Directory{}, fault.New(fault.Invalid, fault.CodeInvalidPath, "No such directory.").At("directory")
	}
	if script != "" && script != "run.py" {
		return Directory{}, fault.New(fault.Invalid, fault.CodeInvalidPath, "No such script.").At("script")
	}
	return Directory{Space: home, Path: directory}, nil
}

func (s *surroundings) Using(context.Context, uuid.UUID, uuid.UUID) ([]Use, error) {
	return s.uses, nil
}

type world struct {
	*Handler
	around *surroundings
}

func newWorld(t *testing.T) *world {
	t.Helper()
	registry, err := es.NewRegistry(es.Types, Types)
	if err != nil {
		t.Fatal(err)
	}
	s := &surroundings{}
	return &world{around: s, Handler: &Handler{Access: s, Projects: s, Directories: s, Users: s, Runtime: &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{}, NameKey: []byte("k"),
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}}}
}

func (w *world) by(user uuid.UUID, action string) es.Command {
	return es.Command{ID: w.Runtime.IDs.New(), Action: action, Tenant: acme, Actor: es.Actor{Kind: es.ActorUser, User: user}}
}

func imports(name string, number int, more ...func(*ImportInput)) ImportInput {
	in := ImportInput{Project: vision, Name: name, Number: number, Directory: "weights", Fields: Fields{Scenario: patch.To("vision")}}
	for _, f := range more {
		f(&in)
	}
	return in
}

// codes are the faults of an error with their fields, in order.
func codes(err error) string {
	faults, _ := fault.All(err)
	list := make([]string, len(faults))
	for i, f := range faults {
		list[i] = strings.TrimSpace(string(f.Code) + " " + strings.Join(f.Field, "."))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
