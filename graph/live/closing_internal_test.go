package live

import (
	"context"
	"errors"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/graph/authn"
	"tallyard/graph/relay"
	"tallyard/graph/transport"
)

type waiter struct{ err error }

func (w waiter) Await(context.Context, es.Position, ...string) error { return w.err }

// streamOf is a stream that has sent an item with the cursor "earlier".
func streamOf(t *testing.T, w waiter, src Source[int]) (*stream[int], es.Envelope) {
	t.Helper()
	sealer, err := relay.NewSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	h := &Hub{Sealer: sealer, Waiter: w, Store: uuid.New()}
	tenant := uuid.New()
	env := es.Envelope{ID: uuid.New(), Position: 7, Stream: es.StreamOf("algorithm", tenant, uuid.New())}
	return &stream[int]{hub: h, src: src, tenant: tenant, out: make(chan *int), feed: feed{hub: h}, cursor: "earlier"}, env
}

// somebody is the context of a viewer.
func somebody(t *testing.T) context.Context { return authn.With(t.Context(), authn.Viewer{}) }

func one(context.Context, access.Grants, es.Envelope, string) (*int, error) { return new(int), nil }

func TestClosing(t *testing.T) {
	t.Run("LIV-02_who_is_too_slow_resumes_with_the_item_that_was_not_sent", func(t *testing.T) {
		s, env := streamOf(t, waiter{}, Source[int]{Item: one})
		s.feed.replays = maxReplays + 1
		var end *transport.CloseError
		if err := s.event(somebody(t), env); !errors.As(err, &end) || end.Code != transport.CloseTooSlow || end.Reason != "earlier" {
			t.Errorf("closed with %v, want 4499 and the cursor of the last item that was sent", err)
		}
	})
	t.Run("LIV-02_the_cursor_moves_with_the_item", func(t *testing.T) {
		s, env := streamOf(t, waiter{}, Source[int]{Item: one})
		go func() { <-s.out }()
		if err := s.event(somebody(t), env); err != nil || s.cursor == "earlier" {
			t.Errorf("cursor %q, %v", s.cursor, err)
		}
	})
	t.Run("LIV-04_an_event_without_its_row_is_not_passed_over", func(t *testing.T) {
		none := func(context.Context, access.Grants, es.Envelope, string) (*int, error) { return nil, nil }
		s, env := streamOf(t, waiter{errors.New("behind")}, Source[int]{Item: none, FromRows: true})
		if err := s.event(somebody(t), env); !fault.Is(err, fault.CodeStaleRead) || s.cursor != "earlier" {
			t.Errorf("%v at cursor %q, want STALE_READ at the earlier one", err, s.cursor)
		}
		s.src.FromRows = false // what is folded from the log needs no rows
		if err := s.event(somebody(t), env); err != nil {
			t.Error(err)
		}
	})
	t.Run("LIV-02_no_snapshot_is_made_of_rows_that_are_behind", func(t *testing.T) {
		s, _ := streamOf(t, waiter{errors.New("behind")}, Source[int]{
			Snapshot: func(context.Context, access.Grants, es.Position, string) (*int, error) {
				return nil, errors.New("made all the same")
			},
		})
		if err := s.guarded(somebody(t), true, false); !fault.Is(err, fault.CodeStaleRead) {
			t.Errorf("ended with %v, want STALE_READ", err)
		}
	})
	t.Run("a_panic_ends_the_subscription_alone", func(t *testing.T) {
		s, _ := streamOf(t, waiter{}, Source[int]{
			Snapshot: func(context.Context, access.Grants, es.Position, string) (*int, error) { panic("a mistake") },
		})
		masked := errors.New("masked")
		ctx := graphql.WithOperationContext(somebody(t), &graphql.OperationContext{
			RecoverFunc: func(context.Context, any) error { return masked },
		})
		if err := s.guarded(ctx, true, false); !errors.Is(err, masked) {
			t.Errorf("ended with %v", err)
		}
	})
}
