package live

import (
	"context"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/user"
	"tallyard/graph/authn"
	"tallyard/graph/relay"
)

// turnPatience is how long a turn of rights waits for the rows that tell what
// it touches. Together with the wait of an event before it that is less than
// the five seconds in which a subscriber must hear of it, or be closed.
const turnPatience = 1500 * time.Millisecond

// rights are the viewer's at the place that a stream has come to. They decide
// what comes into view and goes out of it, so that it is told once, in order,
// also to who resumes later. What is shown must be in view at this moment, too.
type rights struct {
	stream es.StreamID // the viewer's own, whose events change them
	state  user.State
	then   access.Grants // those of the place; a suspension is none of them: it ends the stream
	own    access.Grants // the same, with it
}

// rightsAt folds a viewer's rights up to a place.
func rightsAt(ctx context.Context, rt *es.Runtime, v authn.Viewer, at es.Position) (rights, error) {
	r := rights{stream: user.Aggregate.Stream(v.Tenant, v.User())}
	l, err := es.Load(ctx, rt, user.Aggregate, v.Tenant, v.User()) // cached
	if err == nil && l.Position > at {
		l, err = es.LoadUntil(ctx, rt, user.Aggregate, v.Tenant, v.User(), at)
	}
	r.set(l.State, v)
	return r, err
}

func (r *rights) set(s user.State, v authn.Viewer) {
	r.state = s
	r.own = s.Grants(v.Tenant, v.User())
	r.then = r.own
	r.then.Active = true
	if !s.Exists() {
		// Who acts without a user of their own has the rights they came with.
		r.own, r.then = v.Grants, v.Grants
	}
}

// viewer puts the newest rights that are known into the context: those of the
// connection, or those of the place.
func (s *stream[T]) viewer(ctx context.Context) (context.Context, error) {
	v, err := authn.Must(ctx)
	if err != nil {
		return ctx, err
	}
	if s.rights.own.Version > v.Grants.Version {
		v.Grants = s.rights.own
	}
	return authn.With(ctx, v), nil
}

// turn tells what an event of the viewer's own brings into view and takes out
// of it. Part is the last thing that was told of before, where the stream
// resumes in the middle.
func (s *stream[T]) turn(ctx context.Context, env es.Envelope, part uuid.UUID) error {
	v, err := authn.Must(ctx)
	if err != nil {
		return err
	}
	was := s.rights.then
	s.rights.set(user.Aggregate.Evolve(s.rights.state, env), v)
	t := Turn{Was: was, Is: s.rights.then, Turned: was.Turned(s.rights.then), At: env.Position, After: part}
	if s.src.Turn == nil || t.Turned.None() {
		return nil
	}
	if err := s.hub.rows(ctx, env.Position, turnPatience, s.src.Projections); err != nil {
		return behind(ctx)
	}
	for {
		view, err := s.viewer(ctx)
		if err != nil {
			return err
		}
		parts, next, err := s.src.Turn(view, t)
		if err != nil {
			return err
		}
		for i, p := range parts {
			at := relay.Live{Position: env.Position, Event: env.ID}
			if next != uuid.Nil || i < len(parts)-1 {
				at.Part = p.Thing
			}
			cursor := s.sealed(at)
			if err := s.sendAt(ctx, p.Item(cursor), cursor); err != nil {
				return err
			}
		}
		if t.After = next; next == uuid.Nil {
			return nil
		}
	}
}
