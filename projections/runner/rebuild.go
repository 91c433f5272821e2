package runner

import (
	"context"
	"errors"

	"tallyard/domain/es"
)

// RebuildReport tells how a rebuild ended.
type RebuildReport struct {
	Generation int32 `json:"generation"`
	// Position is where it was when the rebuild ended.
	Position es.Position `json:"position,string"`
	Events   bool        `json:"events"` // false: the log has no events
	Halted   int         `json:"halted"` // projections that stand still in it
	Parked   int         `json:"parked"`
}

// rebuild makes a new generation from the first event on. The request
// remembers which one, so that the next leader goes on with it after a crash
// and does not build again when only the answer was missing.
func (t *term) rebuild(ctx context.Context, r Request) (RebuildReport, error) {
	var g *generation
	if r.generation != nil {
		list, err := t.generations(ctx)
		if err != nil {
			return RebuildReport{}, err
		}
		for i := range list {
			if list[i].id == *r.generation && list[i].digest == t.set.digest {
				g = &list[i]
			}
		}
	}
	if g == nil {
		created, err := t.create(ctx, building)
		if err != nil {
			return RebuildReport{}, err
		}
		g = &created
		if err := t.remember(ctx, r, g.id); err != nil {
			return RebuildReport{}, errors.Join(err, t.drop(ctx, *g))
		}
	}
	if g.state == building {
		if err := t.build(ctx, g); err != nil {
			return RebuildReport{}, err
		}
	}
	return t.rebuilt(ctx, g)
}

func (t *term) rebuilt(ctx context.Context, g *generation) (RebuildReport, error) {
	report := RebuildReport{Generation: g.id}
	f := t.live.Load()
	if f == nil {
		return report, nil
	}
	// A leader that only has to answer may come before its flow has read where
	// it is: there is nothing to see before that.
	if err := f.do(ctx, f.show); err != nil {
		return report, err
	}
	v := f.view.Load()
	for name, at := range v.at {
		if at > 0 {
			report.Events = true
		}
		report.Position = max(report.Position, at)
		report.Parked += v.parked[name]
	}
	report.Halted = len(v.halted)
	return report, nil
}

// remember notes on the request which generation it became.
func (t *term) remember(ctx context.Context, r Request, gen int32) error {
	_, err := t.db.Exec(ctx, `UPDATE tallyard.projection_requests SET generation = $2 WHERE id = $1`, r.ID, gen)
	return err
}
