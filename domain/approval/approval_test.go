package approval

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/internal/golden"
)

var (
	acme, globex = fixed(1), fixed(2)
	vision       = fixed(3)
	request      = fixed(4)
	alice, bob   = fixed(10), fixed(11)
	admin, boss  = fixed(12), fixed(13)
	audra, eve   = fixed(14), fixed(15)
	now          = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	subject      = Subject{Ref: es.Ref{Kind: "algorithmVersion", ID: fixed(20), Parent: fixed(21)}, Action: Publish, Digest: "sha256:ab"}
)

func fixed(last byte) uuid.UUID {
	id := uuid.MustParse("0198a000-0000-7000-8000-000000000000")
	id[15] = last
	return id
}

var people = map[uuid.UUID]access.Grants{
	alice: {Tenant: acme, User: alice, Active: true, Projects: map[uuid.UUID]access.Role{vision: access.Member}},
	bob:   {Tenant: acme, User: bob, Active: true, Projects: map[uuid.UUID]access.Role{vision: access.ProjectAdmin}},
	admin: {Tenant: acme, User: admin, Active: true, Roles: []access.Role{access.TenantAdmin}},
	boss:  {Tenant: acme, User: boss, Active: true, Roles: []access.Role{access.TenantAdmin}},
	audra: {Tenant: acme, User: audra, Active: true, Roles: []access.Role{access.Auditor, access.TenantAdmin}},
	eve:   {Tenant: globex, User: eve, Active: true, Roles: []access.Role{access.TenantAdmin}},
}

func opened() Requested {
	return Requested{Subject: subject, Requester: alice, Project: vision, Expires: now.Add(time.Hour)}
}

func TestEventsKeepTheirShape(t *testing.T) {
	golden.Check(t, Types, opened(), Approved{}, Rejected{}, Withdrawn{}, Expired{})
}

// of is a request of a person, after some events.
func of(requester uuid.UUID, events ...es.Event) State {
	r := opened()
	r.Requester = requester
	var s State
	for _, e := range append([]es.Event{r}, events...) {
		s = Aggregate.Evolve(s, es.Envelope{Stream: Aggregate.Stream(acme, request), Event: e, Meta: es.Metadata{Tenant: acme, Time: now, Reason: "because"}})
	}
	return s
}

func outcome(events []es.Event, err error) string {
	if faults, ok := fault.All(err); ok {
		return string(faults[0].Code)
	}
	if err != nil {
		return err.Error()
	}
	if len(events) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%T", events[0])[len("approval."):]
}

// TestDecisions holds APR-01, APR-02, APR-03 and APR-05 over every state and
// everybody.
func TestDecisions(t *testing.T) {
	fresh := facts{now: now, current: subject.Digest}
	for name, c := range map[string]struct {
		s    State
		by   uuid.UUID
		f    facts
		want [3]string // approve, reject, withdraw
	}{
		"APR-02_requester":                 {of(alice), alice, fresh, [3]string{"FORBIDDEN", "FORBIDDEN", "Withdrawn"}},
		"APR-01_another_person":            {of(alice), bob, fresh, [3]string{"NOT_FOUND", "NOT_FOUND", "NOT_FOUND"}},
		"APR-02_tenant_admin":              {of(alice), admin, fresh, [3]string{"Approved", "Rejected", "FORBIDDEN"}},
		"APR-02_nobody_decides_their_own":  {of(admin), admin, fresh, [3]string{"FORBIDDEN", "FORBIDDEN", "Withdrawn"}},
		"APR-02_another_admin_does":        {of(admin), boss, fresh, [3]string{"Approved", "Rejected", "FORBIDDEN"}},
		"TEN-02_auditor_changes_nothing":   {of(alice), audra, fresh, [3]string{"FORBIDDEN", "FORBIDDEN", "FORBIDDEN"}},
		"TEN-01_another_tenant":            {of(alice), eve, fresh, [3]string{"NOT_FOUND", "NOT_FOUND", "NOT_FOUND"}},
		"APR-03_approved":                  {of(alice, Approved{}), admin, fresh, [3]string{"INVALID_STATE", "INVALID_STATE", "FORBIDDEN"}},
		"APR-03_rejected":                  {of(alice, Rejected{}), admin, fresh, [3]string{"INVALID_STATE", "INVALID_STATE", "FORBIDDEN"}},
		"APR-03_withdrawn":                 {of(alice, Withdrawn{}), admin, fresh, [3]string{"INVALID_STATE", "INVALID_STATE", "FORBIDDEN"}},
		"APR-03_decided_cannot_be_retired": {of(alice, Approved{}), alice, fresh, [3]string{"FORBIDDEN", "FORBIDDEN", "INVALID_STATE"}},
		"APR-01_withdrawn_twice":           {of(alice, Withdrawn{}), alice, fresh, [3]string{"FORBIDDEN", "FORBIDDEN", "nothing"}},
		"APR-01_expired":                   {of(alice, Expired{}), admin, fresh, [3]string{"INVALID_STATE", "INVALID_STATE", "FORBIDDEN"}},
		"APR-01_about_to_expire":           {of(alice), admin, facts{now: now.Add(time.Hour), current: subject.Digest}, [3]string{"INVALID_STATE", "INVALID_STATE", "FORBIDDEN"}},
		"APR-05_changed":                   {of(alice), admin, facts{now: now, current: "sha256:cd"}, [3]string{"CONFLICT", "Rejected", "FORBIDDEN"}},
		"APR-05_gone":                      {of(alice), admin, facts{now: now}, [3]string{"CONFLICT", "Rejected", "FORBIDDEN"}},
		"missing":                          {State{}, admin, fresh, [3]string{"NOT_FOUND", "NOT_FOUND", "NOT_FOUND"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := people[c.by]
			got := [3]string{outcome(approve(g, c.f)(c.s)), outcome(reject(g, c.f)(c.s)), outcome(withdraw(g)(c.s))}
			if got != c.want {
				t.Errorf("came to %v, want %v", got, c.want)
			}
			if awaits := c.s.Awaits(g); awaits && got[1] != "Rejected" && c.f.now.Before(c.s.Expires) {
				t.Error("it awaits a decision that is refused")
			}
		})
	}
}

func TestOnlyAdminIsTold(t *testing.T) {
	_, alone := approve(people[admin], facts{now: now, current: subject.Digest, alone: true})(of(admin))
	_, others := approve(people[admin], facts{now: now, current: subject.Digest})(of(admin))
	if alone == nil || others == nil || alone.Error() == others.Error() {
		t.Errorf("TEN-02: the only admin hears %v, one of several %v", alone, others)
	}
}

func TestEnds(t *testing.T) {
	t.Run("APR-01_expires_when_its_time_has_come", func(t *testing.T) {
		if got := outcome(expire(now.Add(time.Hour - 1))(of(alice))); got != "nothing" {
			t.Errorf("before: %s", got)
		}
		if got := outcome(expire(now.Add(time.Hour))(of(alice))); got != "Expired" {
			t.Errorf("then: %s", got)
		}
		if got := outcome(expire(now.Add(2 * time.Hour))(of(alice, Approved{}))); got != "nothing" {
			t.Errorf("decided: %s", got)
		}
	})
	t.Run("APR-05_lapses_with_what_it_was_for", func(t *testing.T) {
		if got := outcome(lapse(of(alice))); got != "Withdrawn" {
			t.Errorf("pending: %s", got)
		}
		if got := outcome(lapse(of(alice, Rejected{}))); got != "nothing" {
			t.Errorf("decided: %s", got)
		}
	})
	t.Run("opens_once", func(t *testing.T) {
		if got := outcome(open(opened())(State{})); got != "Requested" {
			t.Errorf("first: %s", got)
		}
		if got := outcome(open(opened())(of(alice))); got != "nothing" {
			t.Errorf("again: %s", got)
		}
		other := opened()
		other.Subject.Digest = "sha256:cd"
		if _, err := open(other)(of(alice)); err == nil {
			t.Error("one id stands for two requests")
		}
	})
	t.Run("keeps_the_words", func(t *testing.T) {
		if s := of(alice, Rejected{}); s.Reason != "because" || s.Answer != "because" || !s.Ended.Equal(now) {
			t.Errorf("%+v", s)
		}
	})
}
