package authn

import (
	"context"
	"strings"
	"sync"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/user"
)

// DevPrefix begins the tokens of the development sign-in: "dev-alice".
const DevPrefix = "dev-"

// Tenants finds tenants by name; domain/tenant has it.
type Tenants interface {
	Find(ctx context.Context, name string) (uuid.UUID, bool, error)
}

// Users finds users by login name and gives their rights; domain/user has it.
type Users interface {
	Find(ctx context.Context, tenant uuid.UUID, login string) (uuid.UUID, bool, error)
	Grants(ctx context.Context, tenant, user uuid.UUID) (access.Grants, error)
}

// Dev lets everybody in by name, without a secret. It is wired in the
// single-machine mode only, on loopback (TEN-06).
type Dev struct {
	Tenants Tenants
	Users   Users
	// Order names the tenants to look for the name in, the first one that has
	// it counts.
	Order []string

	found sync.Map // name → devUser; only who exists, so that guesses take no room
}

type devUser struct{ tenant, user uuid.UUID }

// Verify implements Verifier.
func (d *Dev) Verify(ctx context.Context, token string) (Viewer, error) {
	name, ok := strings.CutPrefix(token, DevPrefix)
	if !ok {
		return Viewer{}, ErrNotMine
	}
	who, err := d.find(ctx, name)
	if err != nil {
		return Viewer{}, err
	}
	grants, err := d.Users.Grants(ctx, who.tenant, who.user)
	if err != nil {
		return Viewer{}, err
	}
	if !grants.Active {
		d.found.Delete(name) // the name may be somebody else's by now
		return Viewer{}, user.Unauthenticated()
	}
	return Viewer{user.Session{
		Tenant: who.tenant, Actor: es.Actor{Kind: es.ActorUser, User: who.user}, Grants: grants,
	}}, nil
}

func (d *Dev) find(ctx context.Context, name string) (devUser, error) {
	if who, ok := d.found.Load(name); ok {
		return who.(devUser), nil //nolint:forcetypeassert // only this function stores
	}
	for _, tenant := range d.Order {
		id, ok, err := d.Tenants.Find(ctx, tenant)
		if err != nil {
			return devUser{}, err
		}
		if !ok {
			continue
		}
		u, ok, err := d.Users.Find(ctx, id, name)
		if err != nil {
			return devUser{}, err
		}
		if ok {
			who := devUser{id, u}
			d.found.Store(name, who)
			return who, nil
		}
	}
	return devUser{}, user.Unauthenticated()
}
