package approval

import (
	"fmt"
	"time"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// open makes the request; making the same again changes nothing.
func open(r Requested) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		switch {
		case !s.Exists():
			return []es.Event{r}, nil
		case s.Subject == r.Subject && s.Requester == r.Requester:
			return nil, nil
		}
		// An id is drawn for one purpose; a second one is a mistake of the program.
		return nil, fmt.Errorf("request %s was made for something else", s.ID)
	}
}

// facts are what a decision rests on beside the request itself.
type facts struct {
	now time.Time
	// current is the digest of the subject as it stands; empty when it is gone.
	current string
	// alone: nobody but the requester could decide.
	alone bool
}

// approve is the yes (APR-02): of another person, about what was asked for.
func approve(g access.Grants, f facts) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if err := mayDecide(g, s, f); err != nil {
			return nil, err
		}
		switch f.current {
		case s.Subject.Digest:
			return []es.Event{Approved{}}, nil
		case "":
			return nil, stale("What this request was made for is gone; there is nothing left to approve.")
		}
		return nil, stale("What is to be approved was changed since the request was made; have it withdrawn and made anew, or reject it.")
	}
}

// reject is the no (APR-02). What changed in between can still be refused.
func reject(g access.Grants, f facts) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if err := mayDecide(g, s, f); err != nil {
			return nil, err
		}
		return []es.Event{Rejected{}}, nil
	}
}

// withdraw is the requester's.
func withdraw(g access.Grants) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if err := mustSee(g, s); err != nil {
			return nil, err
		}
		switch {
		case !g.Writes():
			return nil, access.ReadOnly()
		case s.Requester != g.User:
			return nil, fault.New(fault.Forbidden, fault.CodeForbidden, "Only who made a request withdraws it; reject it instead.").At("id")
		case s.Status == StatusWithdrawn:
			return nil, nil
		case s.Status != Pending:
			return nil, over(s)
		}
		return []es.Event{Withdrawn{}}, nil
	}
}

// lapse ends a request whose subject is gone.
func lapse(s State) ([]es.Event, error) {
	if s.Status != Pending {
		return nil, nil
	}
	return []es.Event{Withdrawn{}}, nil
}

// expire ends a request whose time has come.
func expire(now time.Time) es.Decide[State] {
	return func(s State) ([]es.Event, error) {
		if s.Status != Pending || now.Before(s.Expires) {
			return nil, nil
		}
		return []es.Event{Expired{}}, nil
	}
}

// mayDecide holds APR-02 and APR-03: a tenant admin, not the requester, and
// only while nobody decided.
func mayDecide(g access.Grants, s State, f facts) error {
	if err := mustSee(g, s); err != nil {
		return err
	}
	switch {
	case !g.Writes():
		return access.ReadOnly()
	case !g.Admin():
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Tenant admins decide requests; wait for one of them.").At("id")
	case s.Status != Pending:
		return over(s)
	case s.Requester == g.User && f.alone:
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Nobody decides their own request, and you are the only tenant admin: nobody else can approve. Give another person the role first.").At("id")
	case s.Requester == g.User:
		return fault.New(fault.Forbidden, fault.CodeForbidden, "Nobody decides their own request; ask another tenant admin.").At("id")
	case !f.now.Before(s.Expires):
		return fault.New(fault.State, fault.CodeInvalidState, "This request has expired; have it made anew.").At("id").With("state", string(StatusExpired))
	}
	return nil
}

func mustSee(g access.Grants, s State) error {
	if !s.Exists() {
		return access.Missing()
	}
	return access.MustSee(g, s.Thing())
}

// over tells of the decision that counts.
func over(s State) *fault.Fault {
	how := map[Status]string{
		StatusApproved: "approved", StatusRejected: "rejected", StatusWithdrawn: "withdrawn",
	}[s.Status]
	if how == "" {
		return fault.New(fault.State, fault.CodeInvalidState, "This request has expired; have it made anew.").At("id").With("state", string(s.Status))
	}
	return fault.New(fault.State, fault.CodeInvalidState, "This request was "+how+" already; look at it again.").At("id").With("state", string(s.Status))
}

func stale(message string) *fault.Fault {
	return fault.New(fault.Conflict, fault.CodeConflict, message).At("id")
}
