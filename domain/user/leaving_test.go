package user

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
)

// has are what users have, look by look.
type has [][]Belonging

func (h *has) Of(context.Context, uuid.UUID, uuid.UUID) ([]Belonging, error) {
	if len(*h) == 0 {
		return nil, nil
	}
	list := (*h)[0]
	*h = (*h)[1:]
	return list, nil
}

func TestRemove(t *testing.T) {
	w := newWorld(t)
	algorithm := Belonging{Ref: es.Ref{Kind: "algorithm", ID: uuid.New()}, Name: "resnet"}
	copying := Belonging{Ref: es.Ref{Kind: "operation", ID: uuid.New()}, Name: "COPY", Running: true}
	many := make([]Belonging, maxTold+7)
	for i := range many {
		many[i] = Belonging{Ref: es.Ref{Kind: "algorithm", ID: uuid.New()}, Name: fmt.Sprint("a", i)}
	}
	for _, c := range []struct {
		name      string
		suspended bool
		has       has
		faults    int
		state     Status
	}{
		{"TEN-05_who_has_nothing_goes", false, nil, 0, RemovedState},
		{"TEN-05_who_is_suspended_goes", true, nil, 0, RemovedState},
		{"TEN-05_who_owns_and_runs_something_stays", false, has{{algorithm, copying}}, 2, Active},
		{"TEN-05_what_came_in_between_keeps_them", false, has{nil, {algorithm}}, 1, Active},
		{"TEN-05_who_was_suspended_is_afterwards", true, has{nil, {algorithm}}, 1, SuspendedState},
		{"TEN-05_of_many_things_the_first_are_named", false, has{many}, maxTold + 1, Active},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := w.user(uuid.NewString(), access.Member)
			if c.suspended {
				if _, err := w.Suspend(t.Context(), w.by(w.admin, "suspendUser"), id); err != nil {
					t.Fatal(err)
				}
			}
			w.Belongings = &c.has
			_, err := w.Remove(t.Context(), w.by(w.admin, "removeUser"), id)
			faults, _ := fault.All(err)
			if len(faults) != c.faults || w.state(id).Status != c.state {
				t.Fatalf("%v; they are %s", err, w.state(id).Status)
			}
			for _, f := range faults {
				if f.Code != fault.CodeInUse || f.Field[0] != "userId" {
					t.Errorf("%+v", f)
				}
			}
			if c.state == Active && !w.rights(id).Active {
				t.Error("they may do nothing")
			}
			if c.faults == 2 && (faults[0].Details["kind"] != "algorithm" || faults[0].Details["id"] != algorithm.Ref.ID.String() || faults[1].Details["running"] != "true") {
				t.Errorf("%+v", faults)
			}
		})
	}
	w.Belongings = &has{}
	t.Run("TEN-05_TEN-07_tokens_and_roles_go_with_them", func(t *testing.T) {
		id := w.user("gone", access.Member)
		issued, err := w.IssueToken(t.Context(), w.by(id, "createApiToken"), NewToken{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Remove(t.Context(), w.by(w.admin, "removeUser"), id); err != nil {
			t.Fatal(err)
		}
		var f *fault.Fault
		if _, err := w.VerifyToken(t.Context(), issued.Refs.Token, w.clock.Now()); !errors.As(err, &f) || f.Kind != fault.Unauthenticated {
			t.Errorf("the token: %v", err)
		}
		if s := w.state(id); len(s.Roles) != 0 || len(s.Tokens) != 0 {
			t.Errorf("%+v", s)
		}
		if p, err := w.Person(t.Context(), w.tenant, w.state(id).Person); err != nil || p.LoginName != "gone" {
			t.Errorf("W25 the history lost the name: %+v %v", p, err)
		}
		for _, err := range []error{
			second(w.Reinstate(t.Context(), w.by(w.admin, "reinstateUser"), id)),
			second(w.GrantRole(t.Context(), w.by(w.admin, "grantRole"), id, Grant{Role: access.Auditor})),
		} {
			if !fault.Is(err, fault.CodeInvalidState) {
				t.Errorf("who was removed is changed: %v", err)
			}
		}
		if _, err := w.Remove(t.Context(), w.by(w.admin, "removeUser"), id); err != nil {
			t.Errorf("once more: %v", err)
		}
		if _, err := w.ErasePersonalData(t.Context(), w.by(w.admin, "erasePersonalData"), id); err != nil || w.state(id).Status != Erased {
			t.Errorf("erased later: %v", err)
		}
	})
	t.Run("TEN-11_the_last_admin_stays", func(t *testing.T) {
		_, err := w.Remove(t.Context(), w.by(w.admin, "removeUser"), w.admin)
		if !fault.Is(err, fault.CodeLastAdmin) || w.state(w.admin).Status != Active {
			t.Fatalf("%v", err)
		}
	})
	t.Run("TEN-02_by_tenant_admins_alone", func(t *testing.T) {
		id := w.user("victim")
		for by, code := range map[uuid.UUID]fault.Code{id: fault.CodeForbidden, w.user("audra", access.Auditor, access.TenantAdmin): fault.CodeForbidden, uuid.New(): fault.CodeNotFound} {
			if _, err := w.Remove(t.Context(), w.by(by, "removeUser"), id); !fault.Is(err, code) {
				t.Errorf("%v, want %s", err, code)
			}
		}
		if _, err := w.Remove(t.Context(), w.by(w.admin, "removeUser"), uuid.New()); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("nobody: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }
