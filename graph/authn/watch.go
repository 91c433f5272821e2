package authn

import (
	"context"
	"time"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/user"
)

// watchTick is how often expired credentials are looked for, and checks tried
// again that failed; well under the 5 s of TEN-07.
const watchTick = time.Second

// Changes follows the log; an es.Log is one.
type Changes interface {
	Subscribe(ctx context.Context, start es.Start, filter es.Filter) (es.Subscription, error)
}

// Run follows the users' streams until ctx ends: open contexts get the rights
// that were granted or taken, and end when there are none any more.
func (a *Authenticator) Run(ctx context.Context, log Changes) error {
	sub, err := log.Subscribe(ctx, es.FromEnd(), es.Filter{StreamPrefixes: []string{user.Category + "-"}})
	if err != nil {
		return err
	}
	defer sub.Close()
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case m, ok := <-sub.Messages():
			if !ok {
				if ctx.Err() != nil {
					return nil
				}
				return sub.Err()
			}
			a.noticed(m)
		case <-a.sessions.wake:
			a.recheckDue(ctx)
		case <-tick.C:
			a.sessions.expire(a.clock.Now())
			a.recheckDue(ctx)
		}
	}
}

func (a *Authenticator) noticed(m es.Message) {
	switch m.Kind {
	case es.MessageCaughtUp:
		// Contexts that were opened before the subscription stood missed changes.
		a.sessions.touchAll()
	case es.MessageEvent:
		stream, err := es.ParseStream(m.Event.Stream)
		if err != nil {
			return
		}
		id, err := stream.UUID()
		if err != nil {
			return
		}
		a.sessions.touch(who{stream.Tenant, id})
	case es.MessageCheckpoint:
	}
}

func (a *Authenticator) recheckDue(ctx context.Context) {
	for id, open := range a.sessions.takeDue() {
		for _, one := range open {
			v, err := a.Recheck(ctx, *one.viewer.Load())
			switch {
			case err == nil:
				one.viewer.Store(&v)
			case fault.Is(err, fault.CodeUnauthenticated):
				one.end(err)
			default:
				a.logger.WarnContext(ctx, "rights of an open connection not checked, trying again", "user", id.user, "error", err)
				a.sessions.again(id)
			}
		}
	}
}
