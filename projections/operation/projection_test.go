package operation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	domainaccess "tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	domain "tallyard/domain/operation"
	"tallyard/infra/postgres/pgtest"
	"tallyard/projections/access"
	"tallyard/projections/internal/projtest"
	"tallyard/projections/operation"
	"tallyard/projections/page"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	acme  = uuid.MustParse("0198a000-0000-7000-8000-000000000001")
	alice = uuid.MustParse("0198a000-0000-7000-8000-00000000000a")
	bob   = uuid.MustParse("0198a000-0000-7000-8000-00000000000b")
)

type everybody struct{}

func (everybody) Grants(_ context.Context, tenant, user uuid.UUID) (domainaccess.Grants, error) {
	return domainaccess.Grants{Tenant: tenant, User: user, Active: true}, nil
}

type agreeing struct{}

func (agreeing) Retry(context.Context, es.Command, domain.State) error { return nil }

func (agreeing) MayRetry(context.Context, domainaccess.Grants, domain.State) error { return nil }

// world is a log with operations in it and their read model.
type world struct {
	*domain.Handler
	t       *testing.T
	queries operation.Queries
}

func newWorld(t *testing.T) *world {
	t.Helper()
	rt, reader := projtest.Open(t, operation.Projection, domain.Types)
	return &world{
		Handler: &domain.Handler{Runtime: rt, Access: everybody{}, Subjects: agreeing{}}, t: t,
		queries: operation.Queries{Reader: reader},
	}
}

func (w *world) system() es.Command { return es.System(w.Runtime.IDs.New(), "test", "test", acme) }

func (w *world) by(user uuid.UUID) es.Command {
	return es.Command{ID: w.Runtime.IDs.New(), Action: "test", Tenant: acme, Actor: es.Actor{Kind: es.ActorUser, User: user}}
}

func (w *world) queue(owner uuid.UUID) uuid.UUID {
	w.t.Helper()
	id := w.Runtime.IDs.New()
	spec := domain.Spec{
		Kind: domain.PublishAlgorithm, Owner: owner, Project: uuid.New(), Subject: es.Ref{Kind: "algorithmVersion", ID: uuid.New(), Parent: uuid.New()},
		Work: domain.Work{Kind: domain.CopyOut, Space: uuid.New(), Path: "code", Artefact: uuid.New()},
	}
	if _, err := w.Queue(w.t.Context(), w.system(), id, spec); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// caughtUp waits until everything in the log is in the tables.
func (w *world) caughtUp() {
	w.t.Helper()
	for rec, err := range w.Runtime.Log.ReadAll(w.t.Context(), es.StartPosition, es.Backward, 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
		defer cancel()
		if err := w.queries.Reader.Await(ctx, rec.Position, operation.Projection.Name); err != nil {
			w.t.Fatal(err)
		}
	}
}

func viewer(user uuid.UUID, roles ...domainaccess.Role) access.Filter {
	return access.FilterOf(domainaccess.Grants{Tenant: acme, User: user, Active: true, Roles: roles})
}

// TestRowsAreTheFold holds, over random histories, that a row says what the
// fold of the operation's events says.
func TestRowsAreTheFold(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same histories each time
	var ids []uuid.UUID
	for range 40 {
		id := w.queue(alice)
		ids = append(ids, id)
		for range random.IntN(8) {
			s, err := w.Load(ctx, acme, id)
			if err != nil {
				t.Fatal(err)
			}
			amount := domain.Amount{DoneBytes: random.Int64N(100), TotalBytes: 100}
			switch random.IntN(7) {
			case 0, 1:
				_, err = w.Start(ctx, w.system(), id)
			case 2:
				_, err = w.Succeed(ctx, w.system(), id, s.Attempt, domain.Result{Fingerprint: "ab", Files: 3, Bytes: 100}, amount)
			case 3:
				_, err = w.Fail(ctx, w.system(), id, s.Attempt, domain.Failure{Code: fault.CodeNotFound, Message: "gone"}, amount)
			case 4:
				if _, err = w.Cancel(ctx, w.by(alice), id); err == nil {
					_, err = w.EndCancelled(ctx, w.system(), id)
				}
			case 5:
				_, err = w.Requeue(ctx, w.system(), id, 0)
			case 6:
				_, err = w.Dismiss(ctx, w.by(alice), []uuid.UUID{id})
			}
			if _, refused := fault.All(err); err != nil && !refused {
				t.Fatal(err)
			}
		}
	}
	w.caughtUp()
	rows, err := w.queries.ByIDs(ctx, viewer(alice), ids)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[domain.Status]int{}
	for _, id := range ids {
		fold, err := w.Load(ctx, acme, id)
		if err != nil {
			t.Fatal(err)
		}
		seen[fold.Status]++
		fold.Work = domain.Work{Kind: fold.Work.Kind} // the rows have no more of it
		if row := rows[id]; text(row) != text(fold) {
			t.Errorf("row  %s\nfold %s", text(row), text(fold))
		}
	}
	if len(seen) < 5 {
		t.Errorf("the histories end in %v only", seen)
	}
}

func text(s domain.State) string {
	failure := domain.Failure{}
	if s.Failure != nil {
		failure = *s.Failure
	}
	s.Failure = nil
	return fmt.Sprintf("%+v %+v", s, failure)
}

func TestList(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	var mine []uuid.UUID
	for range 7 {
		mine = append(mine, w.queue(alice))
	}
	other := w.queue(bob)
	if _, err := w.Dismiss(ctx, w.by(alice), mine[:1]); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(ctx, w.system(), mine[1]); err != nil {
		t.Fatal(err)
	}
	w.caughtUp()
	list := func(v access.Filter, f operation.Filter, p page.Page) page.Rows[domain.State] {
		t.Helper()
		rows, err := w.queries.List(ctx, v, f, operation.Newest, p)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	ids := func(rows page.Rows[domain.State]) (out []uuid.UUID) {
		for _, s := range rows.Items {
			out = append(out, s.ID)
		}
		return out
	}
	newest := slices.Clone(mine[1:])
	slices.Reverse(newest)

	t.Run("GEN-02_pages_do_not_shift_while_rows_come", func(t *testing.T) {
		first := list(viewer(alice), operation.Filter{}, page.Page{First: 2})
		late := w.queue(alice)
		w.caughtUp()
		key := operation.Key(first.Items[1])
		rest := list(viewer(alice), operation.Filter{}, page.Page{First: 10, After: &key})
		if got := append(ids(first), ids(rest)...); !slices.Equal(got, newest) || !first.HasNext || rest.HasNext {
			t.Errorf("got %v, want %v", got, newest)
		}
		if _, err := w.Dismiss(ctx, w.by(alice), []uuid.UUID{late}); err != nil {
			t.Fatal(err)
		}
		w.caughtUp()
	})
	t.Run("TEN-01_others_are_not_listed_and_admins_see_all", func(t *testing.T) {
		if got := ids(list(viewer(bob), operation.Filter{}, page.Page{First: 10})); !slices.Equal(got, []uuid.UUID{other}) {
			t.Errorf("bob sees %v", got)
		}
		if got := list(viewer(bob, domainaccess.Auditor), operation.Filter{}, page.Page{First: 10}); len(got.Items) != 7 {
			t.Errorf("an auditor sees %d", len(got.Items))
		}
		if n, err := w.queries.Count(ctx, viewer(bob), operation.Filter{}); n != 1 || err != nil {
			t.Errorf("counted %d, %v", n, err)
		}
		stranger := viewer(alice)
		stranger.Tenant = uuid.New()
		if got, err := w.queries.ByIDs(ctx, stranger, mine); len(got) != 0 || err != nil {
			t.Errorf("another tenant sees %v, %v", got, err)
		}
	})
	t.Run("OPS-03_dismissed_are_off_the_list", func(t *testing.T) {
		if got := list(viewer(alice), operation.Filter{Dismissed: true}, page.Page{First: 20}); len(got.Items) != 8 {
			t.Errorf("with the dismissed ones %d", len(got.Items))
		}
	})
	t.Run("OPS-01_filters", func(t *testing.T) {
		first := list(viewer(alice), operation.Filter{}, page.Page{First: 1}).Items[0]
		for name, x := range map[string]struct {
			f operation.Filter
			n int
		}{
			"running": {operation.Filter{Statuses: []domain.Status{domain.Running}}, 1},
			"both":    {operation.Filter{Statuses: []domain.Status{domain.Running, domain.Queued}, Kinds: []domain.Kind{domain.PublishAlgorithm}}, 6},
			"kind":    {operation.Filter{Kinds: []domain.Kind{domain.CopyAlgorithm}}, 0},
			"subject": {operation.Filter{Subject: first.Subject.ID}, 1},
			"parent":  {operation.Filter{Subject: first.Subject.Parent}, 1},
			"project": {operation.Filter{Project: first.Project}, 1},
			"owner":   {operation.Filter{Owner: bob}, 0},
		} {
			if got := list(viewer(alice), x.f, page.Page{First: 20}); len(got.Items) != x.n {
				t.Errorf("%s: %d, want %d", name, len(got.Items), x.n)
			}
		}
	})
	t.Run("OPS-01_the_worker_is_told_what_runs_then_what_waits_of_everybody", func(t *testing.T) {
		got, err := w.queries.Pending(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want := []operation.Ref{{Tenant: acme, ID: mine[1]}}
		for _, id := range append(slices.Clone(mine[2:6]), other) {
			want = append(want, operation.Ref{Tenant: acme, ID: id})
		}
		if !slices.Equal(got, want) {
			t.Errorf("pending %v\nwant    %v", got, want)
		}
	})
}
