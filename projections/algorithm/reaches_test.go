package algorithm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"

	domainaccess "tallyard/domain/access"
	domain "tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/projections/algorithm"
)

// TestTouched asks, at every place of a random history, whose view a turn of
// rights touches, and wants what the fold up to that place says.
func TestTouched(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same history each time
	owners := map[uuid.UUID]uuid.UUID{alice: vision, bob: speech}
	ids := []uuid.UUID{}
	for n := range 20 {
		owner := []uuid.UUID{alice, bob}[n%2]
		first := w.create(owner, owners[owner], fmt.Sprintf("t%d", n), version("0", "x"))
		ids = append(ids, first.Algorithm)
		for range 2 + random.IntN(10) {
			s := w.fold(first.Algorithm)
			if s.Deleted {
				break
			}
			r := domain.VersionRef{Algorithm: s.ID, Version: s.Versions[random.IntN(len(s.Versions))].ID}
			var err error
			switch random.IntN(5) {
			case 0:
				_, err = w.CreateVersion(ctx, by(owner), s.ID, version(fmt.Sprint(random.IntN(9)), "more"))
			case 4: // what follows is refused, unless it is by the new owner
				_, err = w.Transfer(ctx, by(owner), s.ID, s.Owner, map[uuid.UUID]uuid.UUID{alice: bob, bob: alice}[s.Owner])
			case 1:
				_, err = w.DeleteVersion(ctx, by(owner), r, nil)
			default:
				_, err = w.PublishVersion(ctx, by(owner), domain.PublishInput{VersionRef: r, Visibility: []domainaccess.Visibility{domainaccess.Private, domainaccess.Group, domainaccess.Global}[random.IntN(3)]})
			}
			if _, refused := fault.All(err); err != nil && !refused {
				t.Fatal(err)
			}
		}
	}
	w.caughtUp()
	var places []es.Position
	for rec, err := range w.Runtime.Log.ReadAll(ctx, es.StartPosition, es.Forward, es.Everything) {
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, rec.Position)
	}
	// text tells who sees what of an algorithm.
	text := func(s domain.State) string {
		var list []string
		for _, v := range s.Versions {
			list = append(list, fmt.Sprint(v.ID, s.Thing(v)))
		}
		slices.Sort(list)
		return fmt.Sprint(s.ID, list)
	}
	touched := func(turn domainaccess.Turned, at es.Position, limit int) (out []string) {
		var after uuid.UUID
		for {
			list, err := w.queries.Touched(ctx, algorithm.Turn{Tenant: acme, User: bob, Turned: turn, At: at, After: after, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 {
				return out
			}
			for _, s := range list {
				out, after = append(out, text(s)), s.ID
			}
		}
	}
	seen := map[string]int{}
	for name, turn := range map[string]domainaccess.Turned{
		"LIV-03_who_read_everything": {All: true},
		"LIV-03_a_member":            {Projects: []uuid.UUID{vision}},
		"LIV-03_both":                {All: true, Projects: []uuid.UUID{speech}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, at := range places {
				var want []string
				for _, id := range sorted(ids) {
					l, err := es.LoadUntil(ctx, w.Runtime, domain.Aggregate, acme, id, at)
					if err != nil {
						t.Fatal(err)
					}
					s := l.State
					if slices.ContainsFunc(s.Versions, func(v domain.Version) bool {
						thing := s.Thing(v)
						return turn.All && thing.Visibility != domainaccess.Global && s.Owner != bob ||
							thing.Visibility == domainaccess.Group && slices.Contains(turn.Projects, s.Project)
					}) {
						want = append(want, text(s))
					}
				}
				if got := touched(turn, at, 3); !slices.Equal(got, want) {
					t.Fatalf("at %d:\n%v, want\n%v", at, got, want)
				}
				seen[name] += len(want)
			}
			if seen[name] == 0 {
				t.Error("the history shows nothing of it")
			}
		})
	}
	t.Run("TEN-01_of_the_tenant_alone", func(t *testing.T) {
		list, err := w.queries.Touched(ctx, algorithm.Turn{Tenant: globex, Turned: domainaccess.Turned{All: true, Projects: []uuid.UUID{vision, speech}}, At: places[len(places)-1], Limit: 100})
		if err != nil || len(list) > 0 {
			t.Errorf("%v %v", list, err)
		}
	})
}
