package runner

import (
	"context"
	"time"

	"tallyard/domain/es"
)

// Lag is how far a projection is behind the log.
type Lag struct {
	Events int `json:"events"`
	// More says that there are more than Events; counting stops somewhere.
	More bool `json:"more,omitempty"`
	// Seconds is the age of the oldest event that is not projected.
	Seconds float64 `json:"seconds"`
}

// lagMost is how many events are counted at most.
const lagMost = 1_000

// lags measures several positions with as few reads as possible.
func lags(ctx context.Context, log es.Log, positions map[string]es.Position) (map[string]Lag, error) {
	head, err := headOf(ctx, log)
	if err != nil {
		return nil, err
	}
	byPosition := map[es.Position]Lag{}
	found := make(map[string]Lag, len(positions))
	for name, at := range positions {
		lag, ok := byPosition[at]
		if !ok && at < head {
			if lag, err = lagAt(ctx, log, at); err != nil {
				return nil, err
			}
			byPosition[at] = lag
		}
		found[name] = lag
	}
	return found, nil
}

func lagAt(ctx context.Context, log es.Log, at es.Position) (Lag, error) {
	var lag Lag
	for rec, err := range log.ReadAll(ctx, at, es.Forward, lagMost+1) {
		if err != nil {
			return lag, err
		}
		if lag.Events == 0 {
			if t, ok := recordedTime(&rec); ok {
				lag.Seconds = max(time.Since(t).Seconds(), 0)
			}
		}
		if lag.Events == lagMost {
			lag.More = true
			break
		}
		lag.Events++
	}
	return lag, nil
}

// Gauge is the state of one projection for the metrics.
type Gauge struct {
	Projection string
	Lag        Lag
	Parked     int
	Halted     bool
	// Stalled says for how long transactions have been failing.
	Stalled time.Duration
}

// watch measures the live flow until the term ends. It does so apart from the
// flow, so that one that hangs shows.
func (t *term) watch(ctx context.Context) {
	for sleep(ctx, t.times.Look) == nil {
		f := t.live.Load()
		if f == nil {
			f = t.beside.Load()
		}
		if f == nil || f.view.Load() == nil {
			continue
		}
		v := f.view.Load()
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		found, err := lags(limited, t.log, v.at)
		cancel()
		if err != nil {
			continue // the store is away: its own metric says so
		}
		gauges := make([]Gauge, 0, len(v.at))
		for _, p := range t.set.list {
			g := Gauge{Projection: p.Name, Lag: found[p.Name], Parked: v.parked[p.Name], Halted: v.halted[p.Name] != ""}
			if v.trouble != "" {
				g.Stalled = time.Since(v.since)
			}
			gauges = append(gauges, g)
		}
		t.gauges.Store(&gauges)
	}
}
