package repair_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/patch"
	"tallyard/domain/project"
	"tallyard/domain/tenant"
	"tallyard/infra/eventstore/storetest"
	"tallyard/processes/driver"
	"tallyard/processes/internal/proctest"
	"tallyard/processes/repair"
)

// everything gives everybody all rights.
type everything struct{}

func (everything) Grants(_ context.Context, tenant, user uuid.UUID) (access.Grants, error) {
	return access.Grants{Tenant: tenant, User: user, Active: true, Roles: []access.Role{access.Operator, access.TenantAdmin}}, nil
}

var errCrash = errors.New("the program died")

// dying fails every append from the n-th on, which it may have carried out.
type dying struct {
	es.Log
	left  int
	after bool
}

func (d *dying) Append(ctx context.Context, stream string, expected es.Expected, events ...es.Raw) (es.Written, error) {
	d.left--
	if d.left > 0 || d.left == 0 && d.after {
		w, err := d.Log.Append(ctx, stream, expected, events...)
		if d.left > 0 || err != nil {
			return w, err
		}
	}
	return es.Written{}, errCrash
}

// renaming is one rename that died and was never repeated.
type renaming struct {
	id       uuid.UUID
	from, to string
	holds    func(name string) (uuid.UUID, bool)
	bears    func() string
	again    func() error // the same command with its key
	another  func(name string) error
}

// held are those of the two names that the thing holds.
func (r renaming) held() []string {
	var list []string
	for _, n := range []string{r.from, r.to} {
		if by, taken := r.holds(n); taken && by == r.id {
			list = append(list, n)
		}
	}
	return list
}

// stage makes things and lets a rename of each die at another append.
type stage struct {
	t        *testing.T
	rt       *es.Runtime
	tenants  *tenant.Handler
	projects *project.Handler
	acme     uuid.UUID
}

func (s *stage) command(action, key string) es.Command {
	return es.Command{
		ID: uuid.New(), Action: action, Key: key, Digest: []byte(key), Tenant: s.acme,
		Actor: es.Actor{Kind: es.ActorUser, User: s.acme},
	}
}

func must[T any](s *stage) func(T, error) T {
	return func(v T, err error) T {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
		return v
	}
}

func (s *stage) tenant(from, to string) renaming {
	id := must[es.Result[tenant.Refs]](s)(s.tenants.Create(s.t.Context(), s.command("createTenant", ""), from)).Refs.Tenant
	cmd := s.command("updateTenant", uuid.NewString())
	return renaming{
		id: id, from: from, to: to,
		holds: func(name string) (uuid.UUID, bool) {
			id, ok, err := s.tenants.Find(s.t.Context(), name)
			must[bool](s)(ok, err)
			return id, ok
		},
		bears: func() string { return must[tenant.State](s)(s.tenants.Load(s.t.Context(), id)).Name },
		again: func() error {
			_, err := s.tenants.Update(s.t.Context(), cmd, id, tenant.Update{Name: &to})
			return err
		},
		another: func(name string) error {
			_, err := s.tenants.Create(s.t.Context(), s.command("createTenant", ""), name)
			return err
		},
	}
}

func (s *stage) project(from, to string) renaming {
	id := must[es.Result[project.Refs]](s)(s.projects.Create(s.t.Context(), s.command("createProject", ""), project.Create{Name: from})).Refs.Project
	cmd := s.command("updateProject", uuid.NewString())
	return renaming{
		id: id, from: from, to: to,
		holds: func(name string) (uuid.UUID, bool) {
			id, ok, err := s.projects.Find(s.t.Context(), s.acme, name)
			must[bool](s)(ok, err)
			return id, ok
		},
		bears: func() string { return must[project.State](s)(s.projects.Load(s.t.Context(), s.acme, id)).Name },
		again: func() error {
			_, err := s.projects.Update(s.t.Context(), cmd, id, project.Update{Name: patch.To(to)})
			return err
		},
		another: func(name string) error {
			_, err := s.projects.Create(s.t.Context(), s.command("createProject", ""), project.Create{Name: name})
			return err
		},
	}
}

// TestRenames lets a rename die at every append, before it and after it. It is
// not repeated: only the name that the thing bears stays reserved.
func TestRenames(t *testing.T) {
	clock, log := proctest.NewClock(), storetest.Open(t)
	rt := proctest.Runtime(t, log, clock, tenant.Types, project.Types)
	s := &stage{
		t: t, rt: rt, acme: uuid.New(),
		tenants: &tenant.Handler{Runtime: rt, Access: everything{}}, projects: &project.Handler{Runtime: rt, Access: everything{}},
	}
	died := map[string]renaming{}
	both := 0
	for kind, make := range map[string]func(from, to string) renaming{"tenant": s.tenant, "project": s.project} {
		for n := 1; n <= 5; n++ { // accepted, new name reserved, renamed, old name freed, completed
			for _, after := range []bool{false, true} {
				at := fmt.Sprintf("%s-%d-%v", kind, n, after)
				r := make("from-"+at, "to-"+at)
				rt.Log = &dying{Log: log, left: n, after: after}
				err := r.again()
				rt.Log = log
				if !errors.Is(err, errCrash) {
					t.Fatalf("%s: no crash: %v", at, err)
				}
				if len(r.held()) == 2 {
					both++
				}
				died[at] = r
			}
		}
	}
	if both < 6 { // reserved and not renamed, renamed and not freed: of both kinds
		t.Fatalf("only %d renames left two names reserved; there is nothing to repair", both)
	}

	d := driver.New(rt, repair.Process(rt, map[string]es.Bearer{tenant.NameKind: s.tenants.Bearer(), project.NameKind: s.projects.Bearer()}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	clock.Move(es.OrphanAfter)
	for at, r := range died {
		t.Run("TEN-11_"+at, func(t *testing.T) {
			s.t = t
			name, other := r.bears(), r.to
			if name == r.to {
				other = r.from
			}
			proctest.Eventually(t, "the other name is free", func() bool { _, taken := r.holds(other); return !taken })
			if by, taken := r.holds(name); !taken || by != r.id {
				t.Errorf("the name that it bears is not held: %v %v", by, taken)
			}
			if err := r.another(other); err != nil {
				t.Errorf("the free name can't be taken: %v", err)
			}
		})
	}
	s.t = t
	t.Run("GEN-03_the_command_is_finished_after_the_repair", func(t *testing.T) {
		s.t = t
		r := s.project("late-from", "late-to")
		rt.Log = &dying{Log: log, left: 2, after: true} // the new name is reserved
		err := r.again()
		rt.Log = log
		if !errors.Is(err, errCrash) || len(r.held()) != 2 {
			t.Fatalf("%v, held %v", err, r.held())
		}
		clock.Move(es.OrphanAfter)
		proctest.Eventually(t, "the new name is free", func() bool { return len(r.held()) == 1 })
		if err := r.again(); err != nil {
			t.Fatal(err)
		}
		if held := r.held(); r.bears() != "late-to" || len(held) != 1 || held[0] != "late-to" {
			t.Errorf("bears %s, holds %v", r.bears(), held)
		}
		seen := map[uuid.UUID]bool{}
		for rec, err := range log.ReadStream(t.Context(), rt.NameStream(s.acme, es.Name{Kind: project.NameKind, Value: "late-to"}).String(), 0, es.Forward, es.Everything) {
			if err != nil || seen[rec.ID] {
				t.Errorf("event %s comes twice in a stream, %v", rec.ID, err)
			}
			seen[rec.ID] = true
		}
		if len(seen) != 3 { // reserved, freed, reserved
			t.Errorf("%d events", len(seen))
		}
	})
}
