package runner

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// failure says what an error of a transaction is about.
type failure int

const (
	// failureEvent: this event can't be projected; trying again won't help.
	failureEvent failure = iota
	// failurePassing: Postgres is away, full, locked or being stopped. It is
	// tried again for ever: no event is to blame.
	failurePassing
	// failureFence: somebody else moved the checkpoint.
	failureFence
)

func (f failure) String() string {
	return [...]string{"event", "postgres", "fence"}[f]
}

// fenceCode is raised by tallyard.advance_checkpoints.
const fenceCode = "TY001"

// handlerError is an error that a projection's handler returned.
type handlerError struct{ err error }

func (e handlerError) Error() string { return e.err.Error() }
func (e handlerError) Unwrap() error { return e.err }

// classify tells what an error is about. What isn't clearly about the event is
// taken as passing: parking streams because Postgres is ill would be worse than waiting.
func classify(err error, conn *pgx.Conn) failure {
	var fromHandler handlerError
	if errors.As(err, &fromHandler) {
		return failureEvent
	}
	// Before the connection is looked at: statements that were queued before the
	// one that can't be sent cost it.
	if unsendable(err) {
		return failureEvent
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case pg.Code == fenceCode:
			return failureFence
		case pg.Code == "42501": // privileges: no event can be projected
			return failurePassing
		}
		switch pg.Code[:min(2, len(pg.Code))] {
		case "21", "22", "23", "42", "54":
			return failureEvent
		}
		return failurePassing
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || conn == nil || conn.IsClosed() {
		return failurePassing
	}
	// The connection works: the client could not encode an argument of a
	// statement that was sent alone.
	return failureEvent
}

// unsendable tells whether the client could not encode the arguments of a
// statement of a batch. The library has a type for that and for statements that
// could not be prepared, which may be Postgres' fault, and tells them apart in
// its text alone.
func unsendable(err error) bool {
	var pre pgx.ErrPreprocessingBatch
	return errors.As(err, &pre) && strings.HasPrefix(pre.Error(), "error preprocessing batch (build)")
}

// wait is a back-off that doubles, with jitter.
type wait struct{ next, most time.Duration }

func (w *wait) pause(ctx context.Context) error {
	d := w.next/2 + rand.N(w.next/2+1) //nolint:gosec // spreads retries, guards nothing
	w.next = min(2*w.next, w.most)
	return sleep(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
