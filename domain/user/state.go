package user

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
)

// Status tells whether a user may do anything.
type Status string

// Statuses of users.
const (
	Active         Status = "ACTIVE"
	SuspendedState Status = "SUSPENDED"
	RemovedState   Status = "REMOVED"
	Erased         Status = "ERASED"
)

// Grant is one role that a user holds.
type Grant struct {
	Role    access.Role
	Project uuid.UUID // nil for roles of the tenant
}

// Token is an API token that was neither revoked nor forgotten.
type Token struct {
	ID        uuid.UUID
	Digest    []byte
	ExpiresAt time.Time
}

// State is a user as its events leave it. States are shared between requests:
// what a slice holds is never changed, a change makes a new slice.
type State struct {
	Person uuid.UUID
	Status Status // empty: there is no such user
	Roles  []Grant
	Tokens []Token
	// Revoked are the ids of tokens that were revoked.
	Revoked []uuid.UUID
	// Followed are those of the roles that groups at an identity provider give,
	// since FollowedAt as they are.
	Followed   []Grant
	FollowedAt time.Time
	// Permissions are the named ones.
	Permissions []access.Permission
	// Scope is the business scope that was set; empty: none was.
	Scope access.BusinessScope
	// Quota bounds what runs for the user.
	Quota Quota
	// Version counts the changes; it tells two states of one user apart.
	Version int
}

// Exists tells whether the user was ever created.
func (s State) Exists() bool { return s.Status != "" }

// Aggregate folds users. It is cached: rights are asked for on every request.
var Aggregate = es.Aggregate[State]{Category: Category, Fold: 3, Cached: true, Evolve: evolve}

func evolve(s State, env es.Envelope) State {
	switch ev := env.Event.(type) {
	case Created:
		s.Person, s.Status = ev.Person, Active
	case RoleGranted:
		s.Roles = append(slices.Clip(s.Roles), Grant(ev))
		if env.Meta.Actor.Part == SignInPart {
			s.Followed, s.FollowedAt = append(slices.Clip(s.Followed), Grant(ev)), env.Meta.Time
		}
	case RoleRevoked:
		s.Roles = without(s.Roles, func(g Grant) bool { return g == Grant(ev) })
		s.Followed = without(s.Followed, func(g Grant) bool { return g == Grant(ev) })
		if env.Meta.Actor.Part == SignInPart {
			s.FollowedAt = env.Meta.Time
		}
	case PermissionGranted:
		s.Permissions = append(slices.Clip(s.Permissions), ev.Permission)
	case PermissionRevoked:
		s.Permissions = without(s.Permissions, func(p access.Permission) bool { return p == ev.Permission })
	case BusinessScopeSet:
		s.Scope = ev.To
	case QuotaSet:
		s.Quota = ev.To
	case Suspended:
		s.Status = SuspendedState
	case Reinstated:
		s.Status = Active
	case TokenIssued:
		s.Tokens = append(slices.Clip(s.Tokens), Token{ID: ev.ID, Digest: ev.Digest, ExpiresAt: ev.ExpiresAt})
	case TokenRevoked:
		s.Tokens = without(s.Tokens, func(t Token) bool { return t.ID == ev.ID })
		s.Revoked = append(slices.Clip(s.Revoked), ev.ID)
	case Removed:
		s.Status, s.Roles, s.Followed, s.Tokens, s.Permissions = RemovedState, nil, nil, nil, nil
	case PersonalDataErased:
		s.Status, s.Roles, s.Followed, s.Tokens, s.Permissions = Erased, nil, nil, nil, nil
	default:
		return s
	}
	s.Version++
	return s
}

// without is slices.DeleteFunc on a copy.
func without[T any](list []T, gone func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), gone)
}

// apply folds events that are not stored yet.
func (s State) apply(events []es.Event) State {
	for _, e := range events {
		s = evolve(s, es.Envelope{Event: e})
	}
	return s
}

// Holds tells whether the user has a role.
func (s State) Holds(g Grant) bool { return slices.Contains(s.Roles, g) }

// Grants are the user's rights. Of several roles in a project the strongest counts.
func (s State) Grants(tenant, user uuid.UUID) access.Grants {
	g := access.Grants{Tenant: tenant, User: user, Active: s.Status == Active, Projects: map[uuid.UUID]access.Role{}, Version: s.Version}
	g.Permissions, g.Scope = s.Permissions, s.Scope
	for _, held := range s.Roles {
		switch {
		case !held.Role.OfProject():
			g.Roles = append(g.Roles, held.Role)
		case held.Role == access.ProjectAdmin || g.Projects[held.Project] == "":
			g.Projects[held.Project] = held.Role
		}
	}
	return g
}

// governs tells whether the user can act as an admin of the tenant: one who is
// suspended or an auditor as well can't.
func (s State) governs() bool {
	g := s.Grants(uuid.Nil, uuid.Nil)
	return g.Admin() && g.Writes()
}

// token finds a token by its id.
func (s State) token(id uuid.UUID) (Token, bool) {
	i := slices.IndexFunc(s.Tokens, func(t Token) bool { return t.ID == id })
	if i < 0 {
		return Token{}, false
	}
	return s.Tokens[i], true
}

// same tells whether the token belongs to a secret's digest.
func (t Token) same(digest []byte) bool { return bytes.Equal(t.Digest, digest) }
