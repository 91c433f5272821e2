package algorithm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	domainaccess "tallyard/domain/access"
	domain "tallyard/domain/algorithm"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/patch"
)

// TestRowsAreTheFold holds, over random histories, that the rows say what the
// fold of the events says.
func TestRowsAreTheFold(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	base := w.create(alice, vision, "base", domain.VersionInput{Label: "1", Source: &domain.SourceInput{Directory: "d", Script: "s"}, Fields: version("", "").Fields})
	w.publish(alice, base, domainaccess.Global)
	end := func(random *rand.Rand, r domain.VersionRef, v domain.Version) error {
		p := domain.Prepare
		switch v.Status {
		case domain.Publishing:
			p = domain.Publish
		case domain.Deleting:
			p = domain.Remove
		}
		st := domain.Step{VersionRef: r, Operation: v.Operation, By: alice, Files: domain.Files{Fingerprint: "f", Count: 1, Bytes: 2}, Problem: "gone"}
		switch random.IntN(4) {
		case 0:
			return w.Failed(ctx, system(), p, st)
		case 1:
			return w.Cancelled(ctx, system(), p, st)
		case 2:
			return w.Handler.Retry(ctx, by(alice), p, r, v.Operation, 1)
		}
		return w.Succeeded(ctx, system(), p, st)
	}
	done := domain.Step{VersionRef: base, Operation: w.fold(base.Algorithm).Versions[0].Operation, By: alice, Files: domain.Files{Fingerprint: "f"}}
	if err := w.Succeeded(ctx, system(), domain.Publish, done); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same histories each time
	var all []uuid.UUID
	seen := map[domain.Status]int{}
	for n := range 40 {
		first := w.create(alice, vision, fmt.Sprintf("n%d", n), domain.VersionInput{Label: "0", Source: &domain.SourceInput{Directory: "d", Script: "s"}, Fields: version("", "x").Fields})
		all = append(all, first.Algorithm)
		for range random.IntN(20) {
			s := w.fold(first.Algorithm)
			if s.Deleted {
				break
			}
			v := s.Versions[random.IntN(len(s.Versions))]
			r := domain.VersionRef{Algorithm: s.ID, Version: v.ID}
			var err error
			switch random.IntN(10) {
			case 0:
				in := version(fmt.Sprint(random.IntN(4)), "more")
				if random.IntN(2) == 0 {
					in.Source, in.BasedOn = nil, &base
				}
				_, err = w.CreateVersion(ctx, by(alice), s.ID, in)
			case 1:
				f := domain.Fields{Description: patch.Clear[string](), Environment: patch.To([]domain.Pair{{Name: "A", Value: fmt.Sprint(random.IntN(3))}}), Model: patch.To(home)}
				_, err = w.UpdateVersion(ctx, by(admin), domain.UpdateInput{VersionRef: r, Fields: f})
			case 2:
				in := domain.UpdateInput{VersionRef: r, Source: &domain.SourceInput{Directory: "e", Script: "s"}, Fields: domain.Fields{Environment: patch.Clear[[]domain.Pair](), Model: patch.Clear[uuid.UUID]()}}
				if random.IntN(2) == 0 {
					in.Source, in.BasedOn = nil, &base
				}
				_, err = w.UpdateVersion(ctx, by(alice), in)
			case 3, 4:
				_, err = w.PublishVersion(ctx, by(alice), domain.PublishInput{VersionRef: r, Visibility: []domainaccess.Visibility{domainaccess.Private, domainaccess.Group, domainaccess.Global}[random.IntN(3)]})
			case 5:
				_, err = w.DeleteVersion(ctx, by(alice), r, nil)
			case 6:
				use := domain.Use{By: es.Ref{Kind: "workflow", ID: home}, Name: "w"}
				if err = w.RegisterUse(ctx, by(alice), people[alice], r, use); err == nil && random.IntN(2) == 0 {
					err = w.ReleaseUse(ctx, system(), r, use.By)
				}
			default:
				err = end(random, r, v)
			}
			if _, refused := fault.All(err); err != nil && !refused {
				t.Fatal(err)
			}
		}
	}
	w.caughtUp()
	rows, err := w.queries.ByIDs(ctx, viewer(admin), all)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range all {
		fold := w.fold(id)
		row, there := rows[id]
		if there == fold.Deleted {
			t.Errorf("deleted %v, a row is there %v", fold.Deleted, there)
		}
		for _, v := range fold.Versions {
			seen[v.Status]++
			got, err := w.queries.VersionsByIDs(ctx, viewer(admin), []uuid.UUID{v.ID})
			if err != nil {
				t.Fatal(err)
			}
			v.Before = "" // for the fold alone
			if a, b := string(es.ValueOf(got[v.ID].Version)), string(es.ValueOf(v)); a != b {
				t.Errorf("row  %s\nfold %s", a, b)
			}
		}
		if fold.Deleted {
			seen[domain.Deleted]++
			continue
		}
		fold.Versions = nil
		if a, b := string(es.ValueOf(row)), string(es.ValueOf(fold)); a != b {
			t.Errorf("row  %s\nfold %s", a, b)
		}
	}
	if len(seen) < 8 {
		t.Errorf("the histories end in %v only", seen)
	}
}
