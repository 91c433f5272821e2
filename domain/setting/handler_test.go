package setting

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/infra/eventstore/storetest"
)

// roles gives everybody the same roles in any tenant.
type roles []access.Role

func (r roles) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	return access.Grants{Tenant: tenant, User: user, Active: true, Roles: r}, nil
}

// projects are those of one tenant.
type projects struct{ tenant, id uuid.UUID }

func (p projects) Exists(_ context.Context, tenant, id uuid.UUID) (bool, error) {
	return projects{tenant, id} == p, nil
}

func TestSettings(t *testing.T) {
	registry, err := es.NewRegistry(es.Types, Types)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{},
		Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	acme, globex, vision, user := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	h := &Handler{Runtime: rt, Access: roles{access.TenantAdmin, access.Operator}, Projects: projects{acme, vision}}
	set := func(tenant uuid.UUID, target Target, k Key, v patch.Field[Value]) error {
		cmd := es.Command{ID: uuid.New(), Action: "updateSettings", Tenant: tenant, Reason: "test", Actor: es.Actor{Kind: es.ActorUser, User: user}}
		_, err := h.Update(t.Context(), cmd, target, Update{Settings: map[Key]patch.Field[Value]{k: v}})
		return err
	}
	approval := func(t *testing.T, tenant, project uuid.UUID, want bool) {
		t.Helper()
		got, err := h.GlobalAlgorithmApprovalRequired(t.Context(), tenant, project)
		if err != nil || got != want {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
	}
	t.Run("TEN-09_the_nearest_scope_counts_at_once", func(t *testing.T) {
		approval(t, acme, vision, false)
		for _, step := range []struct {
			target Target
			value  patch.Field[Value]
			want   bool
		}{
			{OfPlatform(), patch.To(Flag(true)), true},
			{OfTenant(acme), patch.To(Flag(false)), false},
			{OfProject(vision), patch.To(Flag(true)), true},
			{OfProject(vision), patch.Clear[Value](), false},
			{OfTenant(acme), patch.Clear[Value](), true},
		} {
			if err := set(acme, step.target, GlobalAlgorithmApprovalRequired, step.value); err != nil {
				t.Fatal(err)
			}
			approval(t, acme, vision, step.want)
		}
	})
	t.Run("TEN-01_another_tenant_has_its_own", func(t *testing.T) {
		if err := set(acme, OfTenant(acme), ApprovalExpiryDays, patch.To(Number(3))); err != nil {
			t.Fatal(err)
		}
		for tenant, want := range map[uuid.UUID]time.Duration{acme: 72 * time.Hour, globex: 720 * time.Hour} {
			if got, err := h.ApprovalExpiry(t.Context(), tenant); err != nil || got != want {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		}
		if err := set(globex, OfProject(vision), ModelApprovalRequired, patch.To(Flag(true))); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("a project of another tenant: %v", err)
		}
		if err := set(globex, OfTenant(acme), ModelApprovalRequired, patch.To(Flag(true))); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("another tenant: %v", err)
		}
	})
	t.Run("TEN-09_without_a_reason_nothing_changes", func(t *testing.T) {
		cmd := es.Command{ID: uuid.New(), Action: "updateSettings", Tenant: acme, Actor: es.Actor{Kind: es.ActorUser, User: user}}
		_, err := h.Update(t.Context(), cmd, OfTenant(acme), Update{Settings: map[Key]patch.Field[Value]{ModelPublishingEnabled: patch.To(Flag(true))}})
		if !fault.Is(err, fault.CodeRequired) {
			t.Fatalf("got %v", err)
		}
		if on, err := h.ModelPublishingEnabled(t.Context(), acme); on || err != nil {
			t.Fatalf("got %v, %v", on, err)
		}
	})
	t.Run("AUD-03_what_held_at_a_moment", func(t *testing.T) {
		var at es.Position
		for env, err := range es.Events(t.Context(), rt, Stream(acme, OfTenant(acme)), 0) {
			if err != nil {
				t.Fatal(err)
			}
			at = env.Position
			break
		}
		for until, want := range map[es.Position]bool{at - 1: true, at: false} {
			l, err := h.LevelsAt(t.Context(), acme, OfTenant(acme), until)
			if got := l.Effective(GlobalAlgorithmApprovalRequired).Value.On(); err != nil || got != want {
				t.Errorf("at %d: %v, %v", until, got, err)
			}
		}
	})
	t.Run("AUD-06_how_long_addresses_are_kept", func(t *testing.T) {
		if err := set(acme, OfPlatform(), ClientAddressRetentionDays, patch.To(Number(10))); err != nil {
			t.Fatal(err)
		}
		if err := set(acme, OfTenant(acme), ClientAddressRetentionDays, patch.To(Number(5))); err != nil {
			t.Fatal(err)
		}
		for tenant, days := range map[uuid.UUID]int{acme: 5, globex: 10, uuid.Nil: 10} {
			if got, err := h.ClientAddressRetention(t.Context(), tenant); err != nil || got != time.Duration(days)*24*time.Hour {
				t.Errorf("got %v, %v, want %d days", got, err, days)
			}
		}
	})
}
