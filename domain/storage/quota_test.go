package storage

import (
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

func TestQuota(t *testing.T) {
	five, six, negative, one := int64(5), int64(6), int64(-1), 1
	project := State{Tenant: acme, Kind: OfProject, Project: vision, Quota: &five}
	home := State{Tenant: acme, Kind: Personal, Owner: alice}
	for _, x := range []struct {
		name  string
		who   access.Grants
		space State
		in    QuotaInput
		code  fault.Code
		event bool
	}{
		{"STO-01_a_tenant_admin_sets_it", grants(bob, false, access.TenantAdmin), project, QuotaInput{Bytes: &six}, "", true},
		{"STO-01_of_a_home_too", grants(bob, false, access.TenantAdmin), home, QuotaInput{Bytes: &six}, "", true},
		{"STO-01_null_is_the_installations", grants(bob, false, access.TenantAdmin), project, QuotaInput{}, "", true},
		{"STO-01_the_same_changes_nothing", grants(bob, false, access.TenantAdmin), project, QuotaInput{Bytes: &five}, "", false},
		{"STO-01_not_below_zero", grants(bob, false, access.TenantAdmin), project, QuotaInput{Bytes: &negative}, fault.CodeOutOfRange, false},
		{"GEN-04_another_version_is_refused", grants(bob, false, access.TenantAdmin), project, QuotaInput{Bytes: &six, ExpectedVersion: &one}, fault.CodeVersionConflict, false},
		{"STO-01_a_member_does_not", grants(alice, true), project, QuotaInput{Bytes: &six}, fault.CodeForbidden, false},
		{"STO-01_nobody_their_own_home", grants(alice, false), home, QuotaInput{Bytes: &six}, fault.CodeForbidden, false},
		{"TEN-02_an_auditor_changes_nothing", grants(bob, false, access.TenantAdmin, access.Auditor), project, QuotaInput{Bytes: &six}, fault.CodeForbidden, false},
		{"TEN-01_who_is_outside_learns_nothing", grants(bob, false), project, QuotaInput{Bytes: &six}, fault.CodeNotFound, false},
		{"TEN-01_what_is_missing_is_missing", grants(bob, false, access.TenantAdmin), State{}, QuotaInput{Bytes: &six}, fault.CodeNotFound, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			events, err := setQuota(es.Command{}, x.who, x.in)(x.space)
			if x.code != "" && !fault.Is(err, x.code) || x.code == "" && err != nil || (len(events) == 1) != x.event {
				t.Fatalf("%+v, %v", events, err)
			}
			if !x.event {
				return
			}
			s := evolve(x.space, es.Envelope{Event: events[0]})
			if !equal(s.Quota, x.in.Bytes) || s.Version != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
	t.Run("STO-01_the_installations_go_by_kind", func(t *testing.T) {
		l := Limits{Home: 1, Project: 2}
		for kind, want := range map[Kind]int64{Personal: 1, OfProject: 2, OfTenant: 0} {
			if most, limited := l.Limit(State{ID: uuid.New(), Kind: kind}); most != want || limited != (want > 0) {
				t.Errorf("%s: %d, %v", kind, most, limited)
			}
		}
		zero := int64(0)
		if most, limited := l.Limit(State{Kind: OfTenant, Quota: &zero}); most != 0 || !limited {
			t.Errorf("%d, %v", most, limited)
		}
	})
}
