// Package operations carries out long operations (OPS): a bounded number at a
// time, the copies of one person one after the other, each to one of its ends.
//
// The worker is level-triggered. What is to be done is asked for again and
// again ([Config.Pending], from a read model) and checked against the log
// before anything happens; a hint only makes it ask sooner. So nothing is lost
// when a hint is, when the read model is behind, or when a worker dies: an
// operation that runs in the log and not here is simply gone on with, and the
// file layer takes over what the dead worker had finished (OPS-02).
package operations

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/es"
	"tallyard/domain/operation"
	"tallyard/processes/lifecycle"
)

// Ref names an operation.
type Ref struct{ Tenant, ID uuid.UUID }

// Job is an operation for those who do the work.
type Job struct {
	Ref
	Subject es.Ref
	Owner   uuid.UUID
	Work    operation.Work
}

// Progress is how far the work is. Totals may grow while it is still counting.
type Progress struct {
	DoneBytes, TotalBytes int64
	DoneFiles, TotalFiles int64
}

// Work does one kind of work.
type Work struct {
	// Do carries out the job. It may be called again for a job that was
	// interrupted or has failed, and does not repeat what is done then; for one
	// that is done it gives the same result. It returns soon after ctx ends and
	// leaves what is done for the next call. A fault is shown to people as it
	// is; any other error is logged and masked. It may call report often.
	Do func(ctx context.Context, job Job, report func(Progress)) (operation.Result, error)
	// Undo removes whatever Do left behind. It may be called again. Finished
	// says that Do was seen to succeed, so that its whole result is there and
	// nobody else's. It is nil for work that can't be undone.
	Undo func(ctx context.Context, job Job, finished bool) error
}

// Samples keeps how far running operations are: a table, never events.
type Samples interface {
	Record(ctx context.Context, ref Ref, p Progress) error
	// Forget drops the sample of an operation that has ended.
	Forget(ctx context.Context, ref Ref) error
}

// Config is what the worker works with.
type Config struct {
	Operations *operation.Handler
	// Pending lists operations that are queued or running, the running ones
	// first, then the queued ones in the order in which they were queued. It
	// need not be complete as long as no owner is left out, and may be behind.
	Pending func(ctx context.Context) ([]Ref, error)
	// Work has the doing of each kind of work.
	Work    map[operation.WorkKind]Work
	Samples Samples
	Logger  *slog.Logger

	Most int // at once; 0: 2
	Times
}

// Times are the worker's intervals; zero values are the usual ones.
type Times struct {
	Poll   time.Duration // between two looks for what is to be done; 2 s
	Soon   time.Duration // between looks shortly after a hint; 50 ms
	Sample time.Duration // between two samples of progress; 500 ms
	// Stall is how long work may go without progress before it is ended as
	// failed (GEN-08); 10 min.
	Stall time.Duration
	// GiveUp is how long undoing is tried before the operation fails instead
	// of being cancelled; 10 min.
	GiveUp time.Duration
	Pause  lifecycle.Backoff // between tries to write an end, and to undo
}

func (c Config) filled() Config {
	if c.Most == 0 {
		c.Most = 2
	}
	for _, d := range []struct {
		at    *time.Duration
		usual time.Duration
	}{
		{&c.Poll, 2 * time.Second},
		{&c.Soon, 50 * time.Millisecond},
		{&c.Sample, 500 * time.Millisecond},
		{&c.Stall, 10 * time.Minute},
		{&c.GiveUp, 10 * time.Minute},
	} {
		if *d.at == 0 {
			*d.at = d.usual
		}
	}
	return c
}
