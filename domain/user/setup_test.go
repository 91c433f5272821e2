package user

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/infra/eventstore/storetest"
)

// clock stands still until it is moved, or goes on by a step whenever it is asked.
type clock struct {
	mu   sync.Mutex
	at   time.Time
	step time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(c.step)
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// heldKeys keeps persons' keys in a map.
type heldKeys struct {
	mu   sync.Mutex
	keys map[uuid.UUID][]byte
}

func (k *heldKeys) Create(_ context.Context, _, person uuid.UUID) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys[person] == nil {
		key := make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
		k.keys[person] = key
	}
	return k.keys[person], nil
}

func (k *heldKeys) Get(_ context.Context, _, person uuid.UUID) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys[person] == nil {
		return nil, ErrErased
	}
	return k.keys[person], nil
}

func (k *heldKeys) Destroy(_ context.Context, _, person uuid.UUID) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.keys, person)
	return nil
}

// oneProject knows the project vision in every tenant.
type oneProject struct{}

func (oneProject) Exists(_ context.Context, _, id uuid.UUID) (bool, error) { return id == vision, nil }

// world is a tenant with an admin.
type world struct {
	*Handler
	t      *testing.T
	clock  *clock
	keys   *heldKeys
	tenant uuid.UUID
	admin  uuid.UUID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, storetest.Open(t))
}

// newWorldOn makes a tenant in a log that others may be in as well.
func newWorldOn(t *testing.T, log es.Log) *world {
	t.Helper()
	reg, err := es.NewRegistry(es.Types, Types)
	if err != nil {
		t.Fatal(err)
	}
	c, keys := &clock{at: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}, &heldKeys{keys: map[uuid.UUID][]byte{}}
	rt := &es.Runtime{
		Log: log, Registry: reg, Clock: c, IDs: es.RandomIDs{}, NameKey: []byte("key of the names"),
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	w := &world{
		Handler: &Handler{Runtime: rt, Projects: oneProject{}, Keys: keys, Random: rand.Reader},
		t:       t, clock: c, keys: keys, tenant: uuid.New(),
	}
	w.admin = w.person("admin")
	w.grant(w.system("grantRole"), w.admin, access.TenantAdmin)
	return w
}

func (w *world) system(action string) es.Command {
	cmd := es.System(uuid.New(), "test", action, w.tenant)
	cmd.Reason = "test"
	return cmd
}

// by is a command of a user.
func (w *world) by(user uuid.UUID, action string) es.Command {
	cmd := w.system(action)
	return es.Command{ID: cmd.ID, Action: action, Tenant: w.tenant, Reason: "test", Actor: es.Actor{Kind: es.ActorUser, User: user}}
}

func (w *world) person(login string) uuid.UUID {
	w.t.Helper()
	r, err := w.Create(w.t.Context(), w.system("createUser"), Person{LoginName: login, DisplayName: login + " Example", Email: login + "@acme.example"})
	if err != nil {
		w.t.Fatal(err)
	}
	return r.Refs.User
}

func (w *world) grant(cmd es.Command, user uuid.UUID, role access.Role) {
	w.t.Helper()
	g := Grant{Role: role}
	if role.OfProject() {
		g.Project = vision
	}
	if _, err := w.GrantRole(w.t.Context(), cmd, user, g); err != nil {
		w.t.Fatal(err)
	}
}

// user makes a person with roles.
func (w *world) user(login string, roles ...access.Role) uuid.UUID {
	w.t.Helper()
	id := w.person(login)
	for _, r := range roles {
		w.grant(w.system("grantRole"), id, r)
	}
	return id
}

func (w *world) state(user uuid.UUID) State {
	w.t.Helper()
	s, err := w.Load(w.t.Context(), w.tenant, user)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) rights(user uuid.UUID) access.Grants {
	w.t.Helper()
	g, err := w.Grants(w.t.Context(), w.tenant, user)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}
