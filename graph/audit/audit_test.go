package audit

import (
	"context"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/gqlmodel"
	"tallyard/graph/relay"
	proj "tallyard/projections/audit"
)

// things are seen by everybody, from inside by few.
type things struct{ inside bool }

func (things) Sees(context.Context, relay.ID) (bool, error) { return true, nil }

func (t things) Cut(context.Context, relay.ID) (proj.Cut, error) {
	return proj.Cut{Outside: !t.inside}, nil
}

func TestOutside(t *testing.T) {
	t.Run("AUD-02_what_is_inside_is_for_who_sees_it", func(t *testing.T) {
		sealer, err := relay.NewSealer(make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		subject := relay.Of(relay.Algorithm, uuid.New())
		in := &gqlmodel.AuditFilter{SubjectID: graphql.OmittableOf(&subject)}
		mixed := proj.Entry{Changes: []es.Change{es.Set("environment", "draft")}, Events: []string{"one", "two"}}
		for name, c := range map[string]struct {
			roles   []access.Role
			inside  bool
			outside bool
		}{
			"somebody else": {nil, false, true},
			"the owner":     {nil, true, false},
			"an admin":      {[]access.Role{access.TenantAdmin}, false, false},
		} {
			v := authn.Viewer{Session: user.Session{Tenant: uuid.New(), Grants: access.Grants{Active: true, Roles: c.roles}, Actor: es.Actor{Kind: es.ActorUser, User: uuid.New()}}}
			a := &API{Things: things{c.inside}, Sealer: sealer}
			f, err := a.filter(t.Context(), v, in)
			if err != nil || f.Outside != c.outside {
				t.Errorf("%s reads from outside: %t, %v", name, f.Outside, err)
			}
			if shown := len(a.show(v, mixed, f.Cut).Changes) > 0; shown == c.outside {
				t.Errorf("%s is shown the changes: %t", name, shown)
			}
			entry := proj.Entry{Tenant: v.Tenant, Actor: es.Actor{User: uuid.New()}, Subject: es.Ref{Kind: "algorithm", ID: uuid.New()}}
			may, cut, err := a.may(t.Context(), v, entry)
			if err != nil || !may || cut.Outside != c.outside {
				t.Errorf("%s reads one entry: %t, %+v, %v", name, may, cut, err)
			}
		}
	})
}
