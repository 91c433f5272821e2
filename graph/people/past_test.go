package people_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/patch"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/people"
	"tallyard/graph/relay"
)

func TestProjectsPast(t *testing.T) {
	w := newWorld(t)
	vision := relay.Of(relay.Project, w.ids["vision"])
	before := w.settle()
	member := user.Grant{Role: access.Member, Project: w.ids["vision"]}
	_, err := w.Handlers.Users.RevokeRole(t.Context(), w.by("admin", "revokeRole", "left"), w.ids["bob"], member)
	no(t, err)
	_, err = w.Handlers.Projects.Update(t.Context(), w.by("admin", "updateProject", "clearer"), w.ids["vision"], project.Update{Name: patch.To("sight")})
	no(t, err)
	_, err = w.Handlers.Users.GrantRole(t.Context(), w.by("admin", "grantRole", "helps"), w.ids["alice"], user.Grant{Role: access.ProjectAdmin, Project: w.ids["vision"]})
	no(t, err)
	now := w.settle()

	project := func(login string, when people.When) *gqlmodel.Project {
		t.Helper()
		p, err := w.GetProject(w.as(login), vision, when)
		no(t, err)
		return p
	}
	members := func(login string, p *gqlmodel.Project) []string {
		t.Helper()
		two := int32(2)
		var list []string
		args := relay.Args{First: &two}
		for {
			c, err := w.Members(w.as(login), p, args)
			no(t, err)
			for _, m := range c.Nodes {
				list = append(list, m.User.LoginName+" "+string(m.Role))
			}
			n, err := relay.Count(t.Context(), c.Count)
			no(t, err)
			if args.After = c.PageInfo.EndCursor; !c.PageInfo.HasNextPage {
				if int(n) != len(list) {
					t.Errorf("%d members are counted, %d listed", n, len(list))
				}
				return list
			}
		}
	}
	t.Run("AUD-03_a_project_with_its_name_and_members_of_then", func(t *testing.T) {
		then, today := project("carol", w.at("carol", before)), project("carol", people.When{})
		if then.Name != "vision" || today.Name != "sight" || !then.CreatedAt.Equal(today.CreatedAt) {
			t.Errorf("then %+v, today %+v", then, today)
		}
		if got, want := members("carol", then), []string{"alice MEMBER", "bob MEMBER", "carol PROJECT_ADMIN"}; !slices.Equal(got, want) {
			t.Errorf("then %v, want %v", got, want)
		}
		want := []string{"alice PROJECT_ADMIN", "carol PROJECT_ADMIN"}
		if got := members("carol", today); !slices.Equal(got, want) {
			t.Errorf("today %v, want %v", got, want)
		}
		if got := members("carol", project("carol", w.at("carol", now))); !slices.Equal(got, want) {
			t.Errorf("as of the last event %v, want %v", got, want)
		}
		long, short := time.Now().Add(time.Hour), then.CreatedAt.Add(-time.Microsecond)
		if p := project("carol", people.When{AsOf: &long}); p == nil || p.Name != "sight" {
			t.Errorf("as of a time: %+v", p)
		}
		if p := project("carol", people.When{AsOf: &short}); p != nil {
			t.Errorf("before it was: %+v", p)
		}
	})
	t.Run("AUD-03_its_history_tells_who_when_why_and_what", func(t *testing.T) {
		list := w.history(w.as("carol"), func(ctx context.Context, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
			return w.HistoryOfProject(ctx, project("carol", people.When{}), first, after)
		})
		if got, want := events(list), []string{"project.created.v1", "project.updated.v1"}; !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		n := list[1]
		if said(n) != `project.updated.v1 updateProject clearer name:"vision">"sight"` || n.Actor.UserID != w.ids["admin"] || n.At.IsZero() || n.RequestID == nil {
			t.Errorf("%s by %+v", said(n), n.Actor)
		}
		for i, want := range []string{"vision", "sight"} {
			if p := project("carol", people.When{AsOfPosition: &list[i].Position}); p == nil || p.Name != want {
				t.Errorf("as of entry %d: %+v", i, p)
			}
		}
	})
	t.Run("TEN-01_the_past_is_for_who_sees_the_project_today", func(t *testing.T) {
		for login, want := range map[string]bool{"carol": true, "audra": true, "admin": true, "bob": false, "oscar": false, "mallory": false} {
			if p := project(login, w.at(login, before)); (p != nil) != want {
				t.Errorf("%s: %+v", login, p)
			}
			rows, err := w.Queries.MembersOf(t.Context(), w.grants(login), []uuid.UUID{w.ids["vision"]}, before, page2)
			if n := len(rows[w.ids["vision"]].Items); err != nil || (n > 0) != want {
				t.Errorf("%s reads %d members, %v", login, n, err)
			}
		}
	})
}

func TestTenantsPast(t *testing.T) {
	w := newWorld(t)
	globex := relay.Of(relay.Tenant, w.tenants["globex"])
	before, to := w.settle(), "initech"
	_, err := w.Handlers.Tenants.Update(t.Context(), w.by("oscar", "updateTenant", "bought"), w.tenants["globex"], tenant.Update{Name: &to})
	no(t, err)
	w.settle()
	get := func(login string, when people.When) *gqlmodel.Tenant {
		t.Helper()
		n, err := w.GetTenant(w.as(login), globex, when)
		no(t, err)
		return n
	}
	for _, login := range []string{"mallory", "oscar"} {
		t.Run("AUD-03_a_tenant_as_it_was_and_what_happened_for_"+login, func(t *testing.T) {
			if then, today := get(login, w.at(login, before)), get(login, people.When{}); then == nil || then.Name != "globex" || today.Name != "initech" {
				t.Errorf("then %+v, today %+v", then, today)
			}
			list := w.history(w.as(login), func(ctx context.Context, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
				return w.HistoryOfTenant(ctx, get(login, people.When{}), first, after)
			})
			if len(list) != 2 || said(list[1]) != `tenant.renamed.v1 updateTenant bought name:"globex">"initech"` {
				t.Fatalf("%v", events(list))
			}
			// Things of the platform have no tenant; the position is the viewer's own all the same.
			if n := get(login, people.When{AsOfPosition: &list[0].Position}); n == nil || n.Name != "globex" {
				t.Errorf("as of the first entry: %+v", n)
			}
			// Whoever acts for the platform is of another tenant: mallory is told that somebody did.
			actor, err := w.User(w.as(login), list[1].Actor.UserID)
			if err != nil || (actor != nil) != (login == "oscar") {
				t.Errorf("the actor is shown as %+v, %v", actor, err)
			}
		})
	}
	t.Run("TEN-01_others_get_nothing", func(t *testing.T) {
		for _, login := range []string{"alice", "admin", "audra"} {
			for _, when := range []people.When{{}, w.at(login, before)} {
				if n := get(login, when); n != nil {
					t.Errorf("%s: %+v", login, n)
				}
			}
		}
	})
}

func TestPeoplesPast(t *testing.T) {
	w := newWorld(t)
	bob := relay.Of(relay.User, w.ids["bob"])
	before := w.settle()
	_, err := w.Handlers.Users.GrantRole(t.Context(), w.by("admin", "grantRole", "trusted"), w.ids["bob"], user.Grant{Role: access.Auditor})
	no(t, err)
	_, err = w.Handlers.Users.Suspend(t.Context(), w.by("admin", "suspendUser", "on leave"), w.ids["bob"])
	no(t, err)
	w.settle()
	get := func(login string, when people.When) *gqlmodel.User {
		t.Helper()
		u, err := w.GetUser(w.as(login), bob, when)
		no(t, err)
		return u
	}
	roles := func(login string, u *gqlmodel.User) (list []string) {
		t.Helper()
		held, err := w.Roles(w.as(login), u)
		no(t, err)
		for _, g := range held {
			list = append(list, string(g.Role))
		}
		slices.Sort(list)
		return list
	}
	history := func(login string) []*gqlmodel.HistoryEntry {
		t.Helper()
		return w.history(w.as(login), func(ctx context.Context, first *int32, after *string) (*gqlmodel.HistoryConnection, error) {
			return w.HistoryOfUser(ctx, get(login, people.When{}), first, after)
		})
	}
	public := []string{"person.described.v1", "user.created.v1", "user.suspended.v1"}
	t.Run("AUD-03_roles_and_state_of_then", func(t *testing.T) {
		then, today := get("admin", w.at("admin", before)), get("admin", people.When{})
		if then.State != gqlmodel.UserStateActive || today.State != gqlmodel.UserStateSuspended || then.LoginName != "bob" || then.DisplayName != "Bob Example" {
			t.Errorf("then %+v, today %+v", then, today)
		}
		if a, b := roles("admin", then), roles("admin", today); !slices.Equal(a, []string{"MEMBER"}) || !slices.Equal(b, []string{"AUDITOR", "MEMBER"}) {
			t.Errorf("then %v, today %v", a, b)
		}
	})
	t.Run("TEN-02_roles_and_addresses_of_then_are_kept_from_others", func(t *testing.T) {
		then := get("alice", w.at("alice", before))
		email, err := w.Email(w.as("alice"), then)
		if got := roles("alice", then); err != nil || email != nil || len(got) != 0 {
			t.Errorf("alice reads %v and %v, %v", got, email, err)
		}
	})
	t.Run("AUD-03_the_history_is_cut_to_what_the_viewer_may_know", func(t *testing.T) {
		all := history("admin")
		want := []string{"person.described.v1", "user.created.v1", "user.role_granted.v1", "user.role_granted.v1", "user.suspended.v1"}
		if got := events(all); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		if got := said(all[4]); got != `user.suspended.v1 suspendUser on leave state:"ACTIVE">"SUSPENDED"` || all[4].Actor.UserID != w.ids["admin"] {
			t.Errorf("%s", got)
		}
		if got, want := said(all[0]), `loginName:>"bob" displayName:>"Bob Example" email:>"bob@acme.example"`; !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		less := history("alice")
		if got := events(less); !slices.Equal(got, public) {
			t.Fatalf("alice reads %v, want %v", got, public)
		}
		if got := said(less[0]); strings.Contains(got, "@") || !strings.Contains(got, "Bob Example") {
			t.Errorf("alice reads %s", got)
		}
	})
	t.Run("TEN-01_nothing_for_another_tenant", func(t *testing.T) {
		for _, when := range []people.When{{}, w.at("mallory", before)} {
			if u := get("mallory", when); u != nil {
				t.Errorf("%+v", u)
			}
		}
	})
	t.Run("AUD-06_an_erased_person_has_no_name_at_any_moment", func(t *testing.T) {
		cursor := firstOf(t, w, get("admin", people.When{}))
		_, err := w.Handlers.Users.ErasePersonalData(t.Context(), w.by("admin", "erasePersonalData", "asked to"), w.ids["bob"])
		no(t, err)
		w.settle()
		for _, when := range []people.When{{}, w.at("admin", before)} {
			u := get("admin", when)
			email, err := w.Email(w.as("admin"), u)
			if u.LoginName != user.ErasedName || u.DisplayName != user.ErasedName || email != nil || err != nil {
				t.Errorf("%+v, %v", u, err)
			}
		}
		if then := get("admin", w.at("admin", before)); then.State != gqlmodel.UserStateActive || !slices.Equal(roles("admin", then), []string{"MEMBER"}) {
			t.Errorf("what they held then is gone: %+v", then)
		}
		list := history("admin")
		want := []string{"user.created.v1", "user.role_granted.v1", "user.role_granted.v1", "user.suspended.v1", "user.personal_data_erased.v1"}
		if got := events(list); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		for _, n := range list {
			if strings.Contains(strings.ToLower(said(n)), "bob") {
				t.Errorf("still named: %s", said(n))
			}
		}
		// A page that was begun before goes on behind what was read.
		many := int32(100)
		c, err := w.HistoryOfUser(w.as("admin"), get("admin", people.When{}), &many, &cursor)
		if err != nil || !slices.Equal(events(c.Nodes), want) {
			t.Errorf("%v, want %v, %v", events(c.Nodes), want, err)
		}
	})
	t.Run("AUD-06_the_key_alone_gone_the_entry_tells_of_nobody", func(t *testing.T) {
		id := w.ids["alice"]
		s, err := w.Handlers.Users.Load(t.Context(), w.tenants["acme"], id)
		no(t, err)
		no(t, w.Handlers.Users.Keys.Destroy(t.Context(), w.tenants["acme"], s.Person))
		for rec, err := range w.Handlers.Runtime.Log.ReadStream(t.Context(), user.PersonStream(w.tenants["acme"], s.Person).String(), 0, es.Forward, 1) {
			no(t, err)
			env, err := w.Handlers.Runtime.Registry.Decode(rec)
			no(t, err)
			changes, err := w.Handlers.Users.PersonChanges(t.Context(), env, true)
			if err != nil || len(changes) != 1 || string(changes[0].To) != `"erased person"` {
				t.Errorf("%+v, %v", changes, err)
			}
		}
	})
}

// firstOf is the cursor of the first entry of somebody's history.
func firstOf(t *testing.T, w *world, u *gqlmodel.User) string {
	t.Helper()
	one := int32(1)
	c, err := w.HistoryOfUser(w.as("admin"), u, &one, nil)
	no(t, err)
	return *c.PageInfo.EndCursor
}
