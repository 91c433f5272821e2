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

// looks are what lives in a project, look by look.
type looks [][]Content

func (l *looks) In(context.Context, uuid.UUID, uuid.UUID) ([]Content, error) {
	if len(*l) == 0 {
		return nil, nil
	}
	list := (*l)[0]
	*l = (*l)[1:]
	return list, nil
}

func TestClose(t *testing.T) {
	registry, err := es.NewRegistry(es.Types, Types)
	if err != nil {
		t.Fatal(err)
	}
	rt := &es.Runtime{
		Log: storetest.Open(t), Registry: registry, Clock: es.SystemClock{}, IDs: es.RandomIDs{},
		NameKey: []byte("names"), Logger: slog.New(slog.DiscardHandler), Refusals: es.NewRefusals(),
	}
	h := &Handler{Runtime: rt, Access: rights{access.TenantAdmin}}
	acme, user := uuid.New(), uuid.New()
	by := func(action string) es.Command {
		return es.Command{ID: uuid.New(), Action: action, Tenant: acme, Reason: "test", Actor: es.Actor{Kind: es.ActorUser, User: user}}
	}
	resnet := []Content{{Ref: es.Ref{Kind: "algorithm", ID: uuid.New()}, Name: "resnet"}}
	make1 := func(name string) uuid.UUID {
		t.Helper()
		r, err := h.Create(t.Context(), by("createProject"), Create{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return r.Refs.Project
	}
	for _, c := range []struct {
		name   string
		looks  looks
		faults int
		open   bool
		free   bool // the name
	}{
		{"TEN-11_an_empty_project_is_closed", nil, 0, false, true},
		{"TEN-11_what_lives_in_it_is_named", looks{resnet}, 1, true, false},
		{"TEN-11_what_came_in_between_opens_it_again", looks{nil, resnet}, 1, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.Contents = &c.looks
			name := "p" + uuid.NewString()[:8]
			id := make1(name)
			_, err := h.Close(t.Context(), by("closeProject"), id, nil)
			faults, _ := fault.All(err)
			if len(faults) != c.faults || c.faults > 0 && (faults[0].Code != fault.CodeInUse || faults[0].Details["name"] != "resnet") {
				t.Fatalf("%v", err)
			}
			if open, err := h.Exists(t.Context(), acme, id); open != c.open || err != nil {
				t.Errorf("open: %v %v", open, err)
			}
			if _, taken, err := h.Find(t.Context(), acme, name); taken == c.free || err != nil {
				t.Errorf("the name is taken: %v %v", taken, err)
			}
		})
	}
	t.Run("TEN-11_a_closed_project_does_not_change", func(t *testing.T) {
		h.Contents = &looks{}
		id := make1("over")
		one := 1
		if _, err := h.Close(t.Context(), by("closeProject"), id, &one); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Update(t.Context(), by("updateProject"), id, Update{Name: patch.To("again")}); !fault.Is(err, fault.CodeInvalidState) {
			t.Errorf("%v", err)
		}
		if _, taken, err := h.Find(t.Context(), acme, "again"); taken || err != nil {
			t.Errorf("the name that it did not get is taken: %v %v", taken, err)
		}
		if _, err := h.Close(t.Context(), by("closeProject"), id, &one); !fault.Is(err, fault.CodeVersionConflict) {
			t.Errorf("GEN-04 %v", err)
		}
		if _, err := h.Close(t.Context(), by("closeProject"), id, nil); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	})
	t.Run("TEN-02_by_tenant_admins_alone", func(t *testing.T) {
		id := make1("kept")
		others := &Handler{Runtime: rt, Access: rights{access.Auditor}, Contents: &looks{}}
		if _, err := others.Close(t.Context(), by("closeProject"), id, nil); !fault.Is(err, fault.CodeForbidden) {
			t.Errorf("%v", err)
		}
	})
}
