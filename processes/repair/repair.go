// Package repair frees names that nothing bears: a command reserves a name
// first and makes or renames its thing after, and may die in between.
package repair

import (
	"context"
	"time"

	"tallyard/domain/es"
	"tallyard/processes/driver"
)

// Name is the process's name.
const Name = "repair"

// Process frees names. Bearers are, by the kind of their names, the things that
// can be given another one; of all others only those names are freed whose
// holder never came to be.
//
// It looks at each name once a command can no more be at work on it: a while
// after it was reserved, and a while after its thing left it. Events come in
// the order of their times (but for the differences of several machines'
// clocks), so waiting for the oldest holds up none that is due.
func Process(rt *es.Runtime, bearers map[string]es.Bearer) es.Process {
	p := es.Process{Name: Name, On: map[string]func(context.Context, es.Envelope) error{
		"name.reserved.v1": func(ctx context.Context, env es.Envelope) error {
			reserved, _ := env.Event.(es.NameReserved)
			return release(ctx, rt, env, env.Stream, bearers[reserved.Kind].Bears)
		},
	}}
	for _, b := range bearers {
		for event, left := range b.Left {
			p.On[event] = func(ctx context.Context, env es.Envelope) error {
				name, ok := left(env)
				if !ok {
					return nil
				}
				return release(ctx, rt, env, rt.NameStream(env.Stream.Tenant, name), b.Bears)
			}
		}
	}
	return p
}

func release(ctx context.Context, rt *es.Runtime, env es.Envelope, name es.StreamID, bears es.Bears) error {
	due := env.Meta.Time.Add(es.OrphanAfter)
	if wait := due.Sub(rt.Now()); wait > 0 {
		// A clock that was set back must not hold up names for longer than the rule says.
		if wait > es.OrphanAfter {
			due = rt.Now().Add(es.OrphanAfter)
		}
		return driver.NotBefore(due)
	}
	cmd := es.Caused(Name, "releaseName", env)
	// Freeing looks at what is there, so it needs no id to be recognised by;
	// the same id twice in one stream would be two events with one id.
	cmd.ID = rt.IDs.New()
	released, err := rt.ReleaseUnborne(ctx, cmd, name, bears)
	if released {
		rt.Logger.InfoContext(ctx, "freed a name that nothing bears",
			"since", env.Meta.Time.Format(time.RFC3339), "requestId", env.Meta.Request)
	}
	return err
}
