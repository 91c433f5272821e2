// Package signin lets in whom an identity provider vouches for: it finds or
// makes the user, and gives the roles of the groups that the provider names.
package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/domain/user"
)

// Rules are what a provider may decide: whose people they are and which roles
// its groups give.
type Rules struct {
	Issuer string
	// Tenant is the name of the tenant.
	Tenant string
	// Create makes a user of whoever the provider knows; otherwise only of those
	// to whom a group gives a role.
	Create bool
	Roles  []RoleOfGroup
}

// RoleOfGroup gives the members of a group a role, in a project by its name
// where the role is one of a project.
type RoleOfGroup struct {
	Group   string      `json:"group"`
	Role    access.Role `json:"role"`
	Project string      `json:"project"`
}

// Identity is who a provider says somebody is. All but the times is personal data.
type Identity struct {
	Subject, Login, Name, Email string
	Groups                      []string
	// IssuedAt is when the provider said it; ExpiresAt is until when it holds.
	IssuedAt, ExpiresAt time.Time
}

// Flow lets people in.
type Flow struct {
	Runtime  *es.Runtime
	Tenants  *tenant.Handler
	Projects *project.Handler
	Users    *user.Handler
	// Shown waits, for a while, until what events wrote at a position can be
	// read: whoever is new asks next who they are. Nil: nobody waits.
	Shown func(ctx context.Context, at es.Position, events []string)

	found sync.Map // outside → member; only who exists, so that guesses take no room
	stuck sync.Map // member → when following their groups was refused last
}

// stuckFor is how long groups that can't be followed are left alone: a token is
// looked at on every request, and each refusal is recorded.
const stuckFor = 10 * time.Minute

type outside struct {
	tenant string
	user.Outside
}

type member struct{ tenant, user uuid.UUID }

// Enter gives the session of a person, or user.Unauthenticated when they may not in.
func (f *Flow) Enter(ctx context.Context, rules Rules, who Identity) (user.Session, error) {
	key := outside{rules.Tenant, user.Outside{Issuer: rules.Issuer, Subject: who.Subject}}
	m, known, err := f.find(ctx, key)
	if err != nil {
		return user.Session{}, err
	}
	if m.tenant == uuid.Nil {
		return user.Session{}, fmt.Errorf("sign-in by %s: there is no tenant %q", rules.Issuer, rules.Tenant)
	}
	given, err := f.given(ctx, m.tenant, rules, who)
	if err != nil {
		return user.Session{}, err
	}
	if !known {
		if !rules.Create && len(given) == 0 {
			return user.Session{}, user.Unauthenticated()
		}
		if m.user, err = f.create(ctx, m.tenant, key, who); err != nil {
			return user.Session{}, err
		}
		f.found.Store(key, m)
	}
	return f.session(ctx, rules, m, given, who, func() { f.found.Delete(key) })
}

func (f *Flow) find(ctx context.Context, key outside) (member, bool, error) {
	if m, ok := f.found.Load(key); ok {
		return m.(member), true, nil //nolint:forcetypeassert // only this flow stores
	}
	id, ok, err := f.Tenants.Find(ctx, key.tenant)
	if err != nil || !ok {
		return member{}, false, err
	}
	u, ok, err := f.Users.FindOutside(ctx, id, key.Outside)
	if err != nil || !ok {
		return member{tenant: id}, false, err
	}
	// Reserved and not made: whoever makes the user is on the way, or died there
	// and is finished by create.
	s, err := f.Users.Load(ctx, id, u)
	if err != nil || !s.Exists() {
		return member{tenant: id}, false, err
	}
	m := member{id, u}
	f.found.Store(key, m)
	return m, true, nil
}

// given are the roles that somebody's groups give. A project that is not there
// gives none.
func (f *Flow) given(ctx context.Context, tenant uuid.UUID, rules Rules, who Identity) ([]user.Grant, error) {
	var given []user.Grant
	for _, r := range rules.Roles {
		if !slices.Contains(who.Groups, r.Group) {
			continue
		}
		g := user.Grant{Role: r.Role}
		if r.Role.OfProject() {
			id, ok, err := f.Projects.Find(ctx, tenant, r.Project)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			g.Project = id
		}
		if !slices.Contains(given, g) {
			given = append(given, g)
		}
	}
	return given, nil
}

// maxTries is how many times it is tried to make somebody new: their login name
// may be somebody else's here, and who they were here may have been erased.
const maxTries = 20

// create makes the user of somebody new. The command has a key of its own for
// each subject: many sign-ins at once, or one that died half way, make one user.
func (f *Flow) create(ctx context.Context, tenant uuid.UUID, key outside, who Identity) (uuid.UUID, error) {
	digest := sha256.Sum256([]byte(key.Issuer + " " + key.Subject))
	short := hex.EncodeToString(digest[:8])
	p := user.Person{LoginName: login(who, short), DisplayName: name(who, short), Email: who.Email, Outside: key.Outside}
	wanted, number := p.LoginName, 1
	for n := range maxTries {
		cmd := f.command(tenant, "createUser", key.Issuer)
		cmd.Key = fmt.Sprintf("%s/%x/%d", user.SignInPart, digest, n)
		made, err := f.Users.Create(ctx, cmd, p)
		switch {
		case err == nil:
			s, err := f.Users.Load(ctx, tenant, made.Refs.User)
			if err != nil || s.Status != user.Erased {
				f.shown(ctx, made.Position, made.Events)
				return made.Refs.User, err
			}
			// That was their life before; this is the answer of then.
		case fault.Is(err, fault.CodeNameTaken):
			// Perhaps by another sign-in of the same person, at another of the tries.
			if id, ok, err := f.Users.FindOutside(ctx, tenant, key.Outside); err != nil || ok {
				return id, err
			}
			number++
			p.LoginName = fmt.Sprintf("%.58s-%d", wanted, number)
		case invalid(err) && p != unnamed(short, key):
			// Providers have names of all kinds: what isn't one here is left out.
			p = unnamed(short, key)
			wanted, number = p.LoginName, 1
		default:
			return uuid.Nil, err
		}
	}
	return uuid.Nil, fault.New(fault.Conflict, fault.CodeNameTaken, "Every login name that was tried for you is taken; ask an admin to make you a user.")
}

// invalid tells whether it is the input that was refused.
func invalid(err error) bool {
	faults, ok := fault.All(err)
	return ok && !slices.ContainsFunc(faults, func(f *fault.Fault) bool { return f.Kind != fault.Invalid })
}

// unnamed is somebody of whom nothing is known that is a name here.
func unnamed(short string, key outside) user.Person {
	return user.Person{LoginName: plain(short), DisplayName: plain(short), Outside: key.Outside}
}

func plain(short string) string { return "user-" + short }

// login is the login name to try first.
func login(who Identity, short string) string {
	l, _, _ := strings.Cut(who.Login, "@")
	if l == "" {
		l, _, _ = strings.Cut(who.Email, "@")
	}
	if l == "" {
		return plain(short)
	}
	return l
}

func name(who Identity, short string) string {
	for _, n := range []string{who.Name, who.Login} {
		if n != "" {
			return n
		}
	}
	return plain(short)
}

// session gives the session, after the roles follow the groups.
func (f *Flow) session(ctx context.Context, rules Rules, m member, given []user.Grant, who Identity, forget func()) (user.Session, error) {
	s, err := f.Users.Load(ctx, m.tenant, m.user)
	if err != nil {
		return user.Session{}, err
	}
	if s.Status != user.Active {
		forget() // the subject may be somebody else's by now
		return user.Session{}, user.Unauthenticated()
	}
	if !s.Follows(given, who.IssuedAt) {
		if err := f.follow(ctx, rules, m, given, who); err != nil {
			return user.Session{}, err
		}
	}
	grants, err := f.Users.Grants(ctx, m.tenant, m.user)
	if err != nil {
		return user.Session{}, err
	}
	return user.Session{
		Tenant: m.tenant, Actor: es.Actor{Kind: es.ActorUser, User: m.user}, Grants: grants, ExpiresAt: who.ExpiresAt,
	}, nil
}

func (f *Flow) follow(ctx context.Context, rules Rules, m member, given []user.Grant, who Identity) error {
	now := f.Runtime.Now()
	if at, ok := f.stuck.Load(m); ok && now.Sub(at.(time.Time)) < stuckFor { //nolint:forcetypeassert // only this function stores
		return nil
	}
	done, err := f.Users.FollowGroups(ctx, f.command(m.tenant, "followGroups", rules.Issuer), m.user, given, who.IssuedAt)
	if fault.Is(err, fault.CodeLastAdmin) {
		// The last admin stays one, whatever the groups say.
		f.stuck.Store(m, now)
		return nil
	}
	f.stuck.Delete(m)
	f.shown(ctx, done.Position, done.Events)
	return err
}

func (f *Flow) shown(ctx context.Context, at es.Position, events []string) {
	if f.Shown != nil && at > es.StartPosition {
		f.Shown(ctx, at, events)
	}
}

func (f *Flow) command(tenant uuid.UUID, action, issuer string) es.Command {
	cmd := es.System(f.Runtime.IDs.New(), user.SignInPart, action, tenant)
	cmd.Reason = "As " + issuer + " says."
	return cmd
}
