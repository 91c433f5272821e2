package runner

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"

	"tallyard/domain/es"
)

// Status is all that can be said about the read model.
type Status struct {
	Digest  string `json:"digest"`
	Leading bool   `json:"leading"` // this process projects
	// Trouble is why nothing moves now, as the leading process knows it.
	Trouble     string             `json:"trouble,omitempty"`
	Head        es.Position        `json:"head,string"`
	Generations []GenerationStatus `json:"generations"`
	Projections []ProjectionStatus `json:"projections"` // of the live generation
	Parked      []Parked           `json:"parked"`
	Requests    []Request          `json:"requests"` // still to be done
}

// GenerationStatus is one set of tables.
type GenerationStatus struct {
	ID        int32     `json:"id"`
	State     string    `json:"state"`
	Digest    string    `json:"digest"`
	Ours      bool      `json:"ours"` // made by this program's projections
	CreatedAt time.Time `json:"createdAt"`
	// Percent is how much of the log its slowest projection has done.
	Percent float64 `json:"percent"`
}

// ProjectionStatus is one projection of the live generation.
type ProjectionStatus struct {
	Name      string      `json:"name"`
	Position  es.Position `json:"position,string"`
	Lag       Lag         `json:"lag"`
	Parked    int         `json:"parked"`
	Halted    string      `json:"halted,omitempty"`
	UpdatedAt time.Time   `json:"updatedAt"`
}

// status gathers what any process can know.
func (c *core) status(ctx context.Context) (Status, error) {
	s := Status{Digest: c.set.digest, Projections: []ProjectionStatus{}, Parked: []Parked{}, Requests: []Request{}}
	var err error
	if s.Head, err = c.head(ctx); err != nil {
		return s, fmt.Errorf("head of the log: %w", err)
	}
	list, err := c.generations(ctx)
	if err != nil {
		return s, err
	}
	for _, g := range list {
		projections, slowest, err := c.projectionStatus(ctx, g)
		if err != nil {
			return s, err
		}
		gs := GenerationStatus{ID: g.id, State: g.state, Digest: g.digest, Ours: g.digest == c.set.digest, CreatedAt: g.createdAt, Percent: 100}
		if s.Head > 0 {
			gs.Percent = min(100, 100*float64(slowest)/float64(s.Head))
		}
		s.Generations = append(s.Generations, gs)
		if g.state == live {
			s.Projections = projections
			if s.Parked, err = c.parkedStreams(ctx, g.id); err != nil {
				return s, err
			}
		}
	}
	if err := c.addLags(ctx, s.Projections); err != nil {
		return s, err
	}
	s.Requests, err = c.openRequests(ctx)
	return s, err
}

func (c *core) projectionStatus(ctx context.Context, g generation) (list []ProjectionStatus, slowest es.Position, err error) {
	rows, err := c.db.Query(ctx, `SELECT c.projection, c.position, c.halted, c.updated_at,
			(SELECT count(*) FROM tallyard.parked_streams p WHERE p.generation = c.generation AND p.projection = c.projection)
		FROM tallyard.checkpoints c WHERE c.generation = $1 ORDER BY 1`, g.id)
	if err != nil {
		return nil, 0, err
	}
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p ProjectionStatus, err error) {
		var at int64
		err = row.Scan(&p.Name, &at, &p.Halted, &p.UpdatedAt, &p.Parked)
		p.Position = position(at)
		return p, err
	})
	for i, p := range list {
		if i == 0 || p.Position < slowest {
			slowest = p.Position
		}
	}
	return list, slowest, err
}

func (c *core) addLags(ctx context.Context, list []ProjectionStatus) error {
	positions := make(map[string]es.Position, len(list))
	for _, p := range list {
		positions[p.Name] = p.Position
	}
	found, err := lags(ctx, c.log, positions)
	if err != nil {
		return fmt.Errorf("measure lag: %w", err)
	}
	for i := range list {
		list[i].Lag = found[list[i].Name]
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return nil
}

// Status gathers the state of the read model. While Postgres is away it says
// what this process remembers, if it leads.
func (r *Runner) Status(ctx context.Context) (Status, error) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s, err := r.status(limited)
	t := r.term.Load()
	if t == nil {
		return s, err
	}
	s.Leading = true
	f := t.live.Load()
	if f == nil {
		f = t.beside.Load()
	}
	if f == nil || f.view.Load() == nil {
		return s, err
	}
	v := f.view.Load()
	s.Trouble = v.trouble
	if err == nil {
		return s, nil
	}
	s.Trouble = err.Error()
	s.Projections = s.Projections[:0]
	for name, at := range v.at {
		s.Projections = append(s.Projections, ProjectionStatus{Name: name, Position: at, Halted: v.halted[name], Parked: v.parked[name]})
	}
	return s, r.addLags(ctx, s.Projections)
}
