package transporttest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"tallyard/domain/fault"
)

// Resolvers answers the test schema. Its fields let a test look inside.
type Resolvers struct {
	// Written counts the mutations that ran to their end.
	Written atomic.Int64
	// Cancelled counts resolvers that saw their context end.
	Cancelled atomic.Int64
	// Streams counts the subscriptions whose source runs.
	Streams atomic.Int64
	// Entered gets a value when a mutation or slow query has begun.
	Entered chan struct{}
	// Release lets mutations end, when it is set.
	Release chan struct{}
	// End is what a subscription is ended with through the context.
	End func(ctx context.Context, code int)
}

// Schema makes the executable schema.
func (r *Resolvers) Schema() graphql.ExecutableSchema {
	return NewExecutableSchema(Config{Resolvers: root{r}})
}

type root struct{ *Resolvers }

func (r root) Query() QueryResolver               { return query(r) }
func (r root) Mutation() MutationResolver         { return mutation(r) }
func (r root) Subscription() SubscriptionResolver { return subscription(r) }
func (r root) Nested() NestedResolver             { return nested(r) }
func (r root) Nested2() Nested2Resolver           { return nested2(r) }

type (
	query        root
	mutation     root
	subscription root
	nested       root
	nested2      root
)

// WhoAmI tells which token came.
func (query) WhoAmI(ctx context.Context) (string, error) { return Actor(ctx), nil }

func (query) Hello(_ context.Context, name *string) (string, error) {
	if name != nil {
		return "Hello, " + *name, nil
	}
	return "Hello", nil
}

func (query) Number(_ context.Context, v int32) (int32, error)    { return v, nil }
func (query) Long(_ context.Context, v int64) (int64, error)      { return v, nil }
func (query) Text(_ context.Context, v string) (string, error)    { return v, nil }
func (query) Float(_ context.Context, v float64) (float64, error) { return v, nil }
func (query) ID(_ context.Context, v string) (string, error)      { return v, nil }
func (query) Colour(_ context.Context, v Colour) (Colour, error)  { return v, nil }

func (query) Choice(_ context.Context, v Choice) (string, error) {
	if v.Name != nil {
		return *v.Name, nil
	}
	return "number", nil
}

func (query) Search(_ context.Context, filter *Filter) (string, error) {
	if filter == nil {
		return "all", nil
	}
	return strings.Join(filter.Words, " "), nil
}

func (query) Nested(context.Context) (*Nested, error) { return &Nested{Name: "root"}, nil }

func (q query) Slow(ctx context.Context) (string, error) {
	q.enter()
	<-ctx.Done()
	q.Cancelled.Add(1)
	return "", ctx.Err()
}

func (query) Broken(context.Context) (string, error) {
	return "", errors.New(`pq: relation "secrets" does not exist at /srv/app/db.go:12`)
}

func (query) BrokenNullable(context.Context) (*string, error) {
	return nil, fault.New(fault.NotFound, fault.CodeNotFound, "There is no such thing.")
}

func (query) Panics(context.Context) (*string, error) { panic("a secret in a panic") }

func (m mutation) Write(ctx context.Context, value string) (string, error) {
	m.enter()
	if m.Release != nil {
		select {
		case <-m.Release:
		case <-ctx.Done():
			m.Cancelled.Add(1)
			return "", ctx.Err()
		}
	}
	m.Written.Add(1)
	return value, nil
}

func (nested) Nested(_ context.Context, obj *Nested) (*Nested, error) {
	return &Nested{Name: obj.Name + "."}, nil
}

func (nested) List(_ context.Context, obj *Nested, first int32) ([]*Nested, error) {
	list := make([]*Nested, first)
	for i := range list {
		list[i] = &Nested{Name: obj.Name}
	}
	return list, nil
}

func (nested2) Value(context.Context, *Nested2) (*string, error) {
	return nil, fault.New(fault.NotFound, fault.CodeNotFound, "There is no value.")
}

func (s subscription) Count(ctx context.Context, to int32) (<-chan int32, error) {
	return stream(ctx, s.Resolvers, func(i int32) (int32, bool) { return i, i <= to }, 0), nil
}

func (s subscription) Forever(ctx context.Context) (<-chan int32, error) {
	return stream(ctx, s.Resolvers, func(i int32) (int32, bool) { return i, true }, 20*time.Millisecond), nil
}

// Silent has nothing to say, as most subscriptions most of the time.
func (subscription) Silent(ctx context.Context) (<-chan int32, error) {
	out := make(chan int32)
	context.AfterFunc(ctx, func() { close(out) })
	return out, nil
}

func (s subscription) Flood(ctx context.Context, bytes int32) (<-chan string, error) {
	text := strings.Repeat("x", int(bytes))
	return stream(ctx, s.Resolvers, func(int32) (string, bool) { return text, true }, 0), nil
}

func (subscription) Refused(context.Context) (<-chan int32, error) {
	return nil, fault.New(fault.Forbidden, fault.CodeForbidden, "This is not yours to watch.")
}

func (s subscription) Closes(ctx context.Context, code int32) (<-chan int32, error) {
	out := make(chan int32, 1)
	out <- 1
	go func() {
		defer close(out)
		select {
		case <-time.After(20 * time.Millisecond):
			if s.End != nil {
				s.End(ctx, int(code))
			}
		case <-ctx.Done():
		}
	}()
	return out, nil
}

func (s subscription) NestedErrors(ctx context.Context) (<-chan *Nested2, error) {
	return stream(ctx, s.Resolvers, func(i int32) (*Nested2, bool) { return &Nested2{}, i <= 1 }, 0), nil
}

func (subscription) Panics(context.Context) (<-chan int32, error) { panic("a secret in a panic") }

func (r *Resolvers) enter() {
	if r.Entered != nil {
		r.Entered <- struct{}{}
	}
}

func stream[T any](ctx context.Context, r *Resolvers, next func(int32) (T, bool), pause time.Duration) <-chan T {
	out := make(chan T)
	r.Streams.Add(1)
	go func() {
		defer r.Streams.Add(-1)
		defer close(out)
		for i := int32(1); ; i++ {
			v, more := next(i)
			if !more {
				return
			}
			select {
			case out <- v:
			case <-ctx.Done():
				return
			}
			if pause > 0 {
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}
