package runner

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"tallyard/domain/es"
)

// Config is what a [Runner] works with.
type Config struct {
	DB       *pgxpool.Pool
	Log      es.Log
	Registry *es.Registry
	Set      *Set
	// Store is the identity of the event store, from [es.Identity].
	Store uuid.UUID
	// Lead runs work while this process is the only one that does, as a leader
	// lock does; it tries again when work fails, until ctx ends.
	Lead func(ctx context.Context, work func(context.Context) error) error
	// Reader, when given, hears at once what this process projects.
	Reader  *Reader
	Metrics Metrics      // nil: none
	Logger  *slog.Logger // nil: slog.Default
	Times   Times
}

// Times are the runner's intervals; zero values are the usual ones.
type Times struct {
	// Retry is the first wait before something is tried again (50 ms), RetryMost the longest (5 s).
	Retry, RetryMost time.Duration
	// MoveIdle and MoveBusy are how often checkpoints of projections that had
	// nothing to do are stored: when the log is quiet (20 ms) and when it is not (500 ms).
	MoveIdle, MoveBusy time.Duration
	// Keep is how long a generation stays after it was replaced (60 s).
	Keep time.Duration
	// Look is how often the leader looks for requests and measures the lag (1 s).
	Look time.Duration
	// Transaction bounds one transaction of a projection (60 s).
	Transaction time.Duration
}

func (t Times) filled() Times {
	for _, d := range []struct {
		at    *time.Duration
		usual time.Duration
	}{
		{&t.Retry, 50 * time.Millisecond},
		{&t.RetryMost, 5 * time.Second},
		{&t.MoveIdle, 20 * time.Millisecond},
		{&t.MoveBusy, 500 * time.Millisecond},
		{&t.Keep, time.Minute},
		{&t.Look, time.Second},
		{&t.Transaction, time.Minute},
	} {
		if *d.at == 0 {
			*d.at = d.usual
		}
	}
	return t
}

// Metrics hears what the runner does. Its methods return at once.
type Metrics interface {
	// BatchDone: a projection's transaction was committed.
	BatchDone(projection string, events int, took time.Duration)
	// BatchFailed: a transaction failed; it is tried again, or the event parked.
	BatchFailed(projection, kind string)
}

type noMetrics struct{}

func (noMetrics) BatchDone(string, int, time.Duration) {}
func (noMetrics) BatchFailed(string, string)           {}

// Errors of the package.
var (
	// ErrOtherStore: the read model was made from another event store, or from
	// one that held more than this one.
	ErrOtherStore = errors.New("the read model was made from another event store")
	// ErrStale: a projection did not reach the position in time. What was done
	// is done; the read model will show it later.
	ErrStale = errors.New("the read model is behind")
	// ErrNotReady: there is no live generation of this program's tables yet.
	ErrNotReady = errors.New("the read model is being built")
)
