// Package repair frees names whose holder never came to be: a command reserves
// a name first and makes the thing after, and may die in between.
package repair

import (
	"context"
	"time"

	"tallyard/domain/es"
	"tallyard/processes/driver"
)

// Name is the process's name.
const Name = "repair"

// Process frees orphaned names. Events come in the order of their times (but
// for the differences of several machines' clocks), so waiting for the oldest
// holds up none that is due.
func Process(rt *es.Runtime) es.Process {
	return es.Process{
		Name: Name,
		On: map[string]func(context.Context, es.Envelope) error{
			"name.reserved.v1": func(ctx context.Context, env es.Envelope) error { return release(ctx, rt, env) },
		},
	}
}

func release(ctx context.Context, rt *es.Runtime, env es.Envelope) error {
	due := env.Meta.Time.Add(es.OrphanAfter)
	if wait := due.Sub(rt.Now()); wait > 0 {
		// A clock that was set back must not hold up names for longer than the rule says.
		if wait > es.OrphanAfter {
			due = rt.Now().Add(es.OrphanAfter)
		}
		return driver.NotBefore(due)
	}
	cmd := es.Caused(Name, "releaseOrphan", env)
	// Freeing looks at what is there, so it needs no id to be recognised by;
	// the same id twice in one stream would be two events with one id.
	cmd.ID = rt.IDs.New()
	released, err := rt.ReleaseOrphan(ctx, cmd, env.Stream)
	if released {
		rt.Logger.InfoContext(ctx, "freed a name whose holder never came to be",
			"reserved", env.Meta.Time.Format(time.RFC3339), "requestId", env.Meta.Request)
	}
	return err
}
