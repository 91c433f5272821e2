package user

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/text"
)

// Limits of API tokens.
const (
	maxTokens = 50
	// MaxTokenLife is how long a token may live.
	MaxTokenLife = 366 * 24 * time.Hour
	// DefaultTokenLife is how long it lives when nothing is said.
	DefaultTokenLife = 90 * 24 * time.Hour
)

var tokenName = text.Line(0, 64)

// mustGovern refuses everybody but tenant admins.
func mustGovern(g access.Grants) error {
	switch {
	case !g.Active:
		return access.Missing()
	case !g.Writes():
		return access.ReadOnly()
	case !g.Admin():
		return forbidden("Only tenant admins may do this; ask one of them.")
	}
	return nil
}

// mustGrant refuses who may not give or take a role: tenant admins give those
// of their tenant, project admins those of their project. Operators reach over
// all tenants, so only an operator makes another one.
func mustGrant(g access.Grants, role Grant) error {
	switch {
	case !g.Active:
		return access.Missing()
	case !g.Writes():
		return access.ReadOnly()
	case role.Role == access.Operator && !g.Has(access.Operator):
		return forbidden("Only operators give and take this role; ask one of them.")
	case role.Role == access.Operator:
		return nil
	case role.Role.OfProject() && !g.In(role.Project) && !g.ReadsAll():
		return access.Missing().At("projectId")
	case role.Role.OfProject() && !g.Administers(role.Project):
		return forbidden("Only admins of the project or the tenant may do this; ask one of them.")
	case !role.Role.OfProject() && !g.Admin():
		return forbidden("Only tenant admins may do this; ask one of them.")
	}
	return nil
}

func forbidden(message string) *fault.Fault {
	return fault.New(fault.Forbidden, fault.CodeForbidden, message)
}

// check tells whether a role is one, and has a project when it needs one.
func (g Grant) check() error {
	switch {
	case !g.Role.Valid():
		return fault.New(fault.Invalid, fault.CodeInvalidValue, "There is no such role; choose one of the listed ones.").At("role")
	case g.Role.OfProject() && g.Project == uuid.Nil:
		return fault.New(fault.Invalid, fault.CodeRequired, "This role is held in a project; name the project.").At("projectId")
	case !g.Role.OfProject() && g.Project != uuid.Nil:
		return fault.New(fault.Invalid, fault.CodeNotAllowed, "This role is held in the whole tenant; leave the project out.").At("projectId")
	}
	return nil
}

// reason is needed wherever rights change hands.
func cleanReason(reason string) (string, error) {
	rule := text.Reason
	rule.Min, rule.Says = 1, "the reason, it is kept in the audit"
	clean, bad := rule.Clean(reason, "reason")
	if bad != nil {
		return "", bad
	}
	return clean, nil
}

func create(person uuid.UUID) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if s.Exists() {
			return nil, nil
		}
		return []es.Event{Created{Person: person}}, nil
	}
}

func grant(g Grant) es.Decide[State] {
	return onKnown(func(s State) ([]es.Event, error) {
		if s.Holds(g) {
			return nil, nil
		}
		return []es.Event{RoleGranted(g)}, nil
	})
}

func revoke(g Grant) es.Decide[State] {
	return onKnown(func(s State) ([]es.Event, error) {
		if !s.Holds(g) {
			return nil, nil
		}
		return []es.Event{RoleRevoked(g)}, nil
	})
}

func suspend(s State) ([]es.Event, error) {
	return onKnown(func(s State) ([]es.Event, error) {
		if s.Status == SuspendedState {
			return nil, nil
		}
		return []es.Event{Suspended{}}, nil
	})(s)
}

func reinstate(s State) ([]es.Event, error) {
	return onKnown(func(s State) ([]es.Event, error) {
		if s.Status == Active {
			return nil, nil
		}
		return []es.Event{Reinstated{}}, nil
	})(s)
}

// erased closes an erasure. It is told on whatever state it finds: the data is
// gone by then.
func erased(s State) ([]es.Event, error) {
	if !s.Exists() || s.Status == Erased {
		return nil, nil
	}
	return []es.Event{PersonalDataErased{Person: s.Person}}, nil
}

func issueToken(t TokenIssued, now time.Time) es.Decide[State] {
	return onKnown(func(s State) ([]es.Event, error) {
		if s.Status != Active {
			return nil, access.Missing()
		}
		if _, ok := s.token(t.ID); ok {
			return nil, nil
		}
		if n := len(slices.Collect(live(s.Tokens, now))); n >= maxTokens {
			return nil, fault.New(fault.Quota, fault.CodeQuotaExceeded, "You have as many tokens as are allowed; revoke one that is not used.")
		}
		return []es.Event{t}, nil
	})
}

func live(tokens []Token, now time.Time) func(func(Token) bool) {
	return func(yield func(Token) bool) {
		for _, t := range tokens {
			if t.ExpiresAt.After(now) && !yield(t) {
				return
			}
		}
	}
}

func revokeToken(id uuid.UUID) es.Decide[State] {
	return onKnown(func(s State) ([]es.Event, error) {
		if slices.Contains(s.Revoked, id) {
			return nil, nil
		}
		if _, ok := s.token(id); !ok {
			return nil, access.Missing().At("tokenId")
		}
		return []es.Event{TokenRevoked{ID: id}}, nil
	})
}

// onKnown refuses users that don't exist and those who were erased.
func onKnown(f es.Decide[State]) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		switch {
		case !s.Exists():
			return nil, access.Missing()
		case s.Status == RemovedState:
			return nil, fault.New(fault.State, fault.CodeInvalidState, "This person was removed; nothing can be changed any more.")
		case s.Status == Erased:
			return nil, fault.New(fault.State, fault.CodeInvalidState, "This person was erased; nothing can be changed any more.")
		}
		return f(s)
	}
}

// expiry gives when a token ends.
func expiry(asked, now time.Time) (time.Time, error) {
	switch {
	case asked.IsZero():
		return now.Add(DefaultTokenLife), nil
	case !asked.After(now), asked.After(now.Add(MaxTokenLife)):
		return time.Time{}, fault.New(fault.Invalid, fault.CodeOutOfRange, "A token ends in the future, at most 366 days from now; choose a time in between.").At("expiresAt")
	}
	return asked.UTC().Truncate(time.Microsecond), nil
}
