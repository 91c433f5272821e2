package project

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
	"tallyard/infra/eventstore/storetest"
)

// rights gives everybody the same role in any tenant.
type rights struct{ role access.Role }

func (r rights) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	return access.Grants{Tenant: tenant, User: user, Active: true, Roles: []access.Role{r.role}}, nil
}

func TestProjects(t *testing.T) {
	registry, err := es.NewRegistry(es.Types, Types)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{},
		NameKey: []byte("names"), Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	h := &Handler{Runtime: rt, Access: rights{access.TenantAdmin}}
	acme, globex, user := uuid.New(), uuid.New(), uuid.New()
	by := func(tenant uuid.UUID, action string) es.Command {
		return es.Command{ID: uuid.New(), Action: action, Tenant: tenant, Actor: es.Actor{Kind: es.ActorUser, User: user}}
	}
	first, err := h.Create(t.Context(), by(acme, "createProject"), Create{Name: "vision"})
	if err != nil {
		t.Fatal(err)
	}
	vision := first.Refs.Project

	t.Run("TEN-11_a_name_is_unique_in_the_tenant", func(t *testing.T) {
		if _, err := h.Create(t.Context(), by(acme, "createProject"), Create{Name: "vision"}); !fault.Is(err, fault.CodeNameTaken) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-01_another_tenant_has_its_own_names_and_sees_no_project", func(t *testing.T) {
		if _, err := h.Create(t.Context(), by(globex, "createProject"), Create{Name: "vision"}); err != nil {
			t.Fatal(err)
		}
		if ok, err := h.Exists(t.Context(), globex, vision); ok || err != nil {
			t.Fatalf("got %v, %v", ok, err)
		}
		_, err := h.Update(t.Context(), by(globex, "updateProject"), vision, Update{Description: patch.To("x")})
		if !fault.Is(err, fault.CodeNotFound) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("TEN-11_an_update_moves_the_name_and_keeps_the_rest", func(t *testing.T) {
		if _, err := h.Update(t.Context(), by(acme, "updateProject"), vision, Update{Name: patch.To("sight")}); err != nil {
			t.Fatal(err)
		}
		id, ok, err := h.Find(t.Context(), acme, "sight")
		if err != nil || !ok || id != vision {
			t.Fatalf("got %v %v %v", id, ok, err)
		}
		if _, ok, _ := h.Find(t.Context(), acme, "vision"); ok {
			t.Fatal("the old name is still held")
		}
	})
	t.Run("TEN-02_auditor_changes_nothing_and_the_refusal_is_on_record", func(t *testing.T) {
		auditors := &Handler{Runtime: rt, Access: rights{access.Auditor}}
		if _, err := auditors.Create(t.Context(), by(acme, "createProject"), Create{Name: "mine"}); !fault.Is(err, fault.CodeForbidden) {
			t.Fatalf("got %v", err)
		}
		refusals := 0
		for env, err := range es.Events(t.Context(), rt, es.StreamOf(es.RefusalCategory, acme, user), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if ev, ok := env.Event.(es.CommandRefused); ok && ev.Faults[0].Code == fault.CodeForbidden {
				refusals++
			}
		}
		if refusals != 1 {
			t.Fatalf("%d refusals on record", refusals)
		}
	})
}
