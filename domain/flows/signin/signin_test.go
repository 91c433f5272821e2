package signin_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/flows/devseed"
	"tallyard/domain/flows/signin"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/infra/eventstore"
	"tallyard/infra/eventstore/storetest"
)

// heldKeys keeps persons' keys in a map.
type heldKeys struct{ keys sync.Map }

func (k *heldKeys) Create(_ context.Context, _, person uuid.UUID) ([]byte, error) {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	had, _ := k.keys.LoadOrStore(person, key)
	return had.([]byte), nil
}

func (k *heldKeys) Get(_ context.Context, _, person uuid.UUID) ([]byte, error) {
	key, ok := k.keys.Load(person)
	if !ok {
		return nil, user.ErrErased
	}
	return key.([]byte), nil
}

func (k *heldKeys) Destroy(_ context.Context, _, person uuid.UUID) error {
	k.keys.Delete(person)
	return nil
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

// world is the development's tenants and people, and a provider of acme.
type world struct {
	*signin.Flow
	log    *eventstore.Log
	rules  signin.Rules
	acme   uuid.UUID
	vision uuid.UUID
}

const issuer = "https://login.example.com"

func newWorld(t *testing.T) *world {
	t.Helper()
	log := storetest.Open(t)
	registry, err := es.NewRegistry(es.Types, tenant.Types, project.Types, user.Types)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: log, Registry: registry, Clock: clock{}, IDs: es.RandomIDs{}, NameKey: []byte("names"),
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	users := &user.Handler{Runtime: rt, Keys: &heldKeys{}, Random: rand.Reader}
	projects, tenants := &project.Handler{Runtime: rt, Access: users}, &tenant.Handler{Runtime: rt, Access: users}
	users.Projects = projects
	if err := (devseed.Handlers{Runtime: rt, Tenants: tenants, Projects: projects, Users: users}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &world{
		Flow: &signin.Flow{Runtime: rt, Tenants: tenants, Projects: projects, Users: users},
		log:  log,
		rules: signin.Rules{Issuer: issuer, Tenant: "acme", Roles: []signin.RoleOfGroup{
			{Group: "researchers", Role: access.Member, Project: "vision"},
			{Group: "leads", Role: access.ProjectAdmin, Project: "vision"},
			{Group: "bosses", Role: access.TenantAdmin},
			{Group: "lost", Role: access.Member, Project: "closed long ago"},
		}},
	}
	w.acme, _, err = tenants.Find(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	if w.vision, _, err = projects.Find(t.Context(), w.acme, "vision"); err != nil {
		t.Fatal(err)
	}
	return w
}

// token is what a provider says of a person now.
func token(login string, groups ...string) signin.Identity {
	now := time.Now()
	return signin.Identity{
		Subject: "sub-" + login, Login: login, Name: "Name of " + login, Email: login + "@example.com",
		Groups: groups, IssuedAt: now, ExpiresAt: now.Add(time.Hour),
	}
}

func (w *world) in(t *testing.T, who signin.Identity) user.Session {
	t.Helper()
	s, err := w.Enter(t.Context(), w.rules, who)
	if err != nil {
		t.Fatal(err)
	}
	if !s.ExpiresAt.Equal(who.ExpiresAt) || s.Tenant != w.acme || s.Actor.Kind != es.ActorUser {
		t.Errorf("%+v", s)
	}
	return s
}

func (w *world) refused(t *testing.T, who signin.Identity) {
	t.Helper()
	if s, err := w.Enter(t.Context(), w.rules, who); !fault.Is(err, fault.CodeUnauthenticated) {
		t.Fatalf("%+v, %v", s, err)
	}
}

func (w *world) person(t *testing.T, s user.Session) user.Person {
	t.Helper()
	state, err := w.Users.Load(t.Context(), s.Tenant, s.Actor.User)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Users.Person(t.Context(), s.Tenant, state.Person)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) roles(t *testing.T, s user.Session) []user.Grant {
	t.Helper()
	state, err := w.Users.Load(t.Context(), s.Tenant, s.Actor.User)
	if err != nil {
		t.Fatal(err)
	}
	return state.Roles
}

// byAdmin is a command of somebody who may do it.
func (w *world) byAdmin(action string) es.Command {
	cmd := es.System(uuid.New(), "test", action, w.acme)
	cmd.Reason = "test"
	return cmd
}

func TestFirstSignIn(t *testing.T) {
	w := newWorld(t)
	t.Run("TEN-06_whoever_a_group_gives_a_role_becomes_a_user", func(t *testing.T) {
		s := w.in(t, token("erin", "researchers", "chess"))
		if !s.Grants.In(w.vision) || s.Grants.Admin() {
			t.Errorf("%+v", s.Grants)
		}
		p := w.person(t, s)
		if p.LoginName != "erin" || p.DisplayName != "Name of erin" || p.Email != "erin@example.com" {
			t.Errorf("%+v", p)
		}
		if again := w.in(t, token("erin", "researchers")); again.Actor != s.Actor {
			t.Errorf("%+v is another user than %+v", again.Actor, s.Actor)
		}
	})
	t.Run("TEN-06_nobody_else_does", func(t *testing.T) {
		w.refused(t, token("stranger", "chess"))
		w.refused(t, token("lost", "lost"))
		if _, ok, err := w.Users.Find(t.Context(), w.acme, "stranger"); ok || err != nil {
			t.Errorf("a user was made: %v", err)
		}
	})
	t.Run("TEN-06_unless_the_provider_may_make_users", func(t *testing.T) {
		rules := w.rules
		rules.Create = true
		s, err := w.Enter(t.Context(), rules, token("guest"))
		if err != nil || s.Grants.In(w.vision) {
			t.Errorf("%+v, %v", s.Grants, err)
		}
	})
	t.Run("TEN-06_twenty_first_sign_ins_at_once_make_one_user", func(t *testing.T) {
		var g sync.WaitGroup
		var mu sync.Mutex
		users := map[uuid.UUID]int{}
		for range 20 {
			g.Go(func() {
				s, err := w.Enter(t.Context(), w.rules, token("rush", "researchers", "leads"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				users[s.Actor.User]++
			})
		}
		g.Wait()
		if len(users) != 1 {
			t.Errorf("%d users", len(users))
		}
		if s := w.in(t, token("rush", "researchers", "leads")); len(w.roles(t, s)) != 2 {
			t.Errorf("%+v", w.roles(t, s))
		}
	})
	t.Run("TEN-06_a_login_name_that_is_taken_gets_a_number", func(t *testing.T) {
		s := w.in(t, token("alice", "researchers"))
		if alice, _, _ := w.Users.Find(t.Context(), w.acme, "alice"); alice == s.Actor.User {
			t.Fatal("the provider's alice got the account of another")
		}
		if p := w.person(t, s); p.LoginName != "alice-2" {
			t.Errorf("%+v", p)
		}
		other := token("alice", "researchers")
		other.Subject = "another alice"
		if p := w.person(t, w.in(t, other)); p.LoginName != "alice-3" {
			t.Errorf("%+v", p)
		}
	})
	t.Run("TEN-06_names_that_are_none_here_keep_nobody_out", func(t *testing.T) {
		for i, odd := range []signin.Identity{
			{Login: "<script>"}, {Login: strings.Repeat("x", 500)}, {Name: "a\x00b"}, {Email: "no address"}, {Login: "張偉@example.com", Name: "張偉"}, {},
		} {
			who := token("")
			who.Subject, who.Login, who.Name, who.Email = fmt.Sprint("odd ", i), odd.Login, odd.Name, odd.Email
			who.Groups = []string{"researchers"}
			p := w.person(t, w.in(t, who))
			if p.LoginName == "" || p.DisplayName == "" {
				t.Errorf("%+v became %+v", odd, p)
			}
			if odd.Name == "張偉" && (p.LoginName != "張偉" || p.DisplayName != "張偉") {
				t.Errorf("%+v became %+v", odd, p)
			}
		}
	})
	t.Run("TEN-01_a_provider_of_a_tenant_that_is_not_there_lets_nobody_in", func(t *testing.T) {
		rules := w.rules
		rules.Tenant = "nowhere"
		if s, err := w.Enter(t.Context(), rules, token("erin", "researchers")); err == nil {
			t.Errorf("%+v", s)
		}
	})
	t.Run("AUD-06_subjects_and_names_are_nowhere_in_clear", func(t *testing.T) {
		for e, err := range w.log.ReadWhole(t.Context(), es.StartPosition) {
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"sub-erin", "Name of erin", "erin@example.com"} {
				if bytes.Contains(e.Data, []byte(text)) || bytes.Contains(e.Metadata, []byte(text)) || strings.Contains(e.Stream, text) {
					t.Errorf("%s of %s tells %q", e.Type, e.Stream, text)
				}
			}
		}
	})
}

func TestGroups(t *testing.T) {
	w := newWorld(t)
	member, lead := user.Grant{Role: access.Member, Project: w.vision}, user.Grant{Role: access.ProjectAdmin, Project: w.vision}
	auditor := user.Grant{Role: access.Auditor}
	later := func(who signin.Identity, d time.Duration) signin.Identity {
		who.IssuedAt = who.IssuedAt.Add(d)
		return who
	}
	first := token("erin", "researchers")
	s := w.in(t, first)
	if _, err := w.Users.GrantRole(t.Context(), w.byAdmin("grantRole"), s.Actor.User, auditor); err != nil {
		t.Fatal(err)
	}
	t.Run("TEN-02_roles_follow_the_groups_and_what_was_granted_by_hand_stays", func(t *testing.T) {
		w.in(t, later(token("erin", "leads"), 2*time.Second))
		if got := w.roles(t, s); !slices.Contains(got, lead) || slices.Contains(got, member) || !slices.Contains(got, auditor) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("TEN-02_an_older_token_gives_nothing_back", func(t *testing.T) {
		first.IssuedAt = first.IssuedAt.Add(-time.Minute)
		w.in(t, first)
		if got := w.roles(t, s); slices.Contains(got, member) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("TEN-02_who_left_every_group_has_what_was_granted_by_hand", func(t *testing.T) {
		in := w.in(t, later(token("erin"), 4*time.Second))
		if got := w.roles(t, s); !slices.Equal(got, []user.Grant{auditor}) || in.Grants.In(w.vision) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("TEN-11_the_last_admin_stays_whatever_the_groups_say", func(t *testing.T) {
		w.in(t, later(token("boss", "bosses"), 2*time.Second))
		admin, _, err := w.Users.Find(t.Context(), w.acme, "admin")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Users.Suspend(t.Context(), w.byAdmin("suspendUser"), admin); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if in := w.in(t, later(token("boss", "researchers"), 4*time.Second)); !in.Grants.Admin() {
				t.Errorf("%+v", in.Grants)
			}
		}
	})
}

func TestWhoIsGone(t *testing.T) {
	w := newWorld(t)
	s := w.in(t, token("erin", "researchers"))
	t.Run("TEN-07_who_is_suspended_is_not_let_in", func(t *testing.T) {
		if _, err := w.Users.Suspend(t.Context(), w.byAdmin("suspendUser"), s.Actor.User); err != nil {
			t.Fatal(err)
		}
		w.refused(t, token("erin", "researchers"))
	})
	t.Run("AUD-06_who_was_erased_comes_back_as_somebody_new", func(t *testing.T) {
		if _, err := w.Users.ErasePersonalData(t.Context(), w.byAdmin("erasePersonalData"), s.Actor.User); err != nil {
			t.Fatal(err)
		}
		w.refused(t, token("erin", "chess"))
		if again := w.in(t, token("erin", "researchers")); again.Actor == s.Actor {
			t.Error("it is the same user")
		}
	})
}
